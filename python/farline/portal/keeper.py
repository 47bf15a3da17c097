"""The process that copies for a service: `python -m farline.portal.keeper FOLDER ATTEMPT`.

It belongs to no terminal and outlives the service that started it. Whoever comes second finds the
folder locked, or the attempt ended, and leaves without doing anything: nothing is copied twice.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from farline.cluster import copy_job
from farline.copying import CopyJob, CopyRequest, CopyResult
from farline.copying.event_lines import line_of
from farline.copying.meter import Meter
from farline.errors import FarlineError, InternalError
from farline.portal.job_folder import JobFolder, redacted
from farline.tools import Stop
from farline.tools.events import Event, FileSettled, Progress, RetryScheduled, SessionEnded, Stages
from farline.tools.signals import handled_by

DENSE_S, DENSE_EACH_S, LATER_EACH_S = 600.0, 1.0, 5.0
"""Progress is kept once a second for ten minutes, then every five: a week is 120,000 lines."""

LOOK_EACH_S = 0.2
FULL, EMPTY = 0.8, 0.2
"""Share of a queue that is taken, from which on it is full, and up to which it is empty."""


class EventLog:
    """Writes the lines of a job's events."""

    def __init__(self, folder: JobFolder) -> None:
        """Goes on where an earlier process was killed, in the middle of a line too."""
        self._file = folder.events.open("ab", buffering=0)
        if self._file.tell() and not _ends_whole(folder.events):
            self._file.write(b"\n")

    def write(self, name: str, data: Any) -> None:
        """Writes a line."""
        line = redacted(json.dumps({"event": name, "data": data}, separators=(", ", ": ")))
        self._file.write(line.encode() + b"\n")


class Teller:
    """Turns the events of a copy into lines: fewer of them, with what people ask of progress."""

    def __init__(self, log: EventLog, job: CopyJob) -> None:
        """Nothing was said yet."""
        self._log, self._job, self._meter = log, job, Meter()
        self._began_s = self._said_s = time.monotonic()
        self._run: str | None = None
        self._limit: str | None = None
        self._said = False

    def tell(self, event: Event) -> None:
        """One event."""
        match event:
            case Progress(report):
                self._meter.add(report)
                self._tell_run()
                self._progress()
            case Stages(report):
                self._limit = limit_now(report)
            case FileSettled(settled):
                if settled["status"] in ("failed", "skipped"):
                    self._log.write("file", settled)
            case SessionEnded():
                self._limit = None
                self._progress(at_once=True)
                self._meter.begin()
            case _ if (line := line_of(event)) is not None:
                if isinstance(event, RetryScheduled):
                    self._meter.begin(event.wait_s)
                self._log.write(*line)

    def _tell_run(self) -> None:
        """The session that runs now, by whose name it can be changed."""
        run = self._job.adjusting.run_id
        if run is not None and run != self._run:
            self._run = run
            self._log.write("session", {"run_id": run})

    def _progress(self, at_once: bool = False) -> None:
        now, one = time.monotonic(), self._meter.latest
        each_s = DENSE_EACH_S if now - self._began_s < DENSE_S else LATER_EACH_S
        if one is None or (self._said and not at_once and now - self._said_s < each_s):
            return
        self._said, self._said_s = True, now
        self._log.write(
            "progress",
            {
                "at": round(time.time(), 3),
                "elapsed_s": round(self._meter.elapsed_s, 3),
                "files": one["settled_files"], "found_files": one["found_files"],
                "bytes": one["settled_bytes"], "found_bytes": one["found_bytes"],
                "all_found": one["all_found"], "failed_files": one["failed_files"],
                "rate_bps": round(self._meter.rate_now_bps()),
                "left_s": _rounded(self._meter.left_s()),
                "streams": one["busy_streams"], "limit": self._limit,
            },
        )  # fmt: skip


def limit_now(stages: Any) -> str | None:
    """The stage that the others wait for, by the queues between them; None where these are none."""
    sent = _taken(stages.get("send_queue_frames"), stages.get("send_room_frames"))
    received = _taken(stages.get("receive_queue_frames"), stages.get("receive_room_frames"))
    if received is not None and received >= FULL:
        return "writing at the destination"
    if sent is not None and sent <= EMPTY:
        return "reading at the source"
    return "the network" if sent is not None and sent >= FULL else None


def _taken(frames: int | None, room: int | None) -> float | None:
    return frames / room if frames is not None and room else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


class StopQuestion:
    """Whether to stop: the file is there, or somebody sent a signal."""

    def __init__(self, folder: JobFolder) -> None:
        """Nobody has asked for it yet."""
        self._file, self._asked = folder.stop_file, Stop.GO_ON
        self._looked_s = 0.0

    def signal(self, _number: int, _frame: FrameType | None) -> None:
        """Handler of signals."""
        self._asked = Stop.GRACEFULLY

    def __call__(self) -> Stop:
        """The answer; the file is looked for five times a second."""
        now = time.monotonic()
        if self._asked is Stop.GO_ON and now - self._looked_s >= LOOK_EACH_S:
            self._looked_s = now
            if self._file.exists():
                self._asked = Stop.GRACEFULLY
        return self._asked


def work(folder: JobFolder, attempt: int) -> None:
    """Copies what the folder's order says, and leaves what it came to; the lock is held."""
    if folder.end(attempt) is not None or not folder.order_file.exists():
        return
    should_stop, log = StopQuestion(folder), EventLog(folder)
    log.write("start", {"attempt": attempt, "at": round(time.time(), 3)})
    with handled_by(should_stop.signal):
        try:
            end = _end_of(_copied(folder, should_stop, log))
        except FarlineError as error:
            end = {"exit_code": error.exit_code, "error": error.failure()}
        except Exception as defect:  # whoever waits must hear of it
            failure = InternalError(f"{type(defect).__name__}: {defect}")
            end = {"exit_code": failure.exit_code, "error": failure.failure()}
    end["stopped"] = should_stop() is not Stop.GO_ON and end["exit_code"] != 0
    folder.write_end(attempt, {**end, "at": round(time.time(), 3)})
    log.write("end", end)


def _copied(folder: JobFolder, should_stop: StopQuestion, log: EventLog) -> CopyResult:
    order = folder.order()
    store = order.get("store")
    request = CopyRequest.between(
        *order["locations"], spec=order["spec"], store_path=None if store is None else Path(store),
        receipt=str(folder.receipt), tell_files=True,
    )  # fmt: skip
    job = copy_job(request, should_stop=should_stop)
    with job:
        teller = Teller(log, job)
        for event in job:
            teller.tell(event)
        return job.wait()


def _end_of(result: CopyResult) -> dict[str, Any]:
    """What the service keeps of it."""
    record = result.record
    report = None if record is None else record.get("copy")
    error = result.error or result.receipt_error
    end: dict[str, Any] = {
        "exit_code": result.exit_code,
        "error": None if error is None else error.failure(),
        "run": result.kept_run,
    }
    if record is not None and (verdict := record.get("verdict")):
        end["verdict"] = {"limit": verdict["limit"], "line": verdict["line"]}
    if report is not None:
        tallies = ("found", "copied", "present", "failed", "skipped")
        end["report"] = {name: report[name] for name in tallies}  # type: ignore[literal-required]
        end["report"]["failures"] = report["failures"]
        end["duration_s"] = round(report.get("command_us", 0) / 1e6, 3)
    if end["exit_code"] and error is None and report is not None:
        count = report["failed"]["files"]
        end["error"] = {"kind": "partial", "message": f"{count} names were not copied"}
    return end


def main(words: list[str]) -> int:
    """Entry point."""
    folder = JobFolder(Path(words[0]))
    with folder.held() as is_got:
        if is_got:
            work(folder, int(words[1]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
