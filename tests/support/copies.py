"""Records, progress and a made-up engine of copies, for tests above the engine."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from farline.errors import from_failure
from farline.tools import Stop, StopQuestion
from farline.tools.events import Event, Progress, SessionEnded
from farline.tools.native import Target
from tests.support.runs import CLIENT, SENDER, run_record, stream

Step = Event | Mapping[str, Any]
"""An event, or a receipt line."""


def tally(files: int = 0, size_bytes: int = 0) -> dict[str, int]:
    """Names and bytes that ended alike."""
    return {"files": files, "bytes": size_bytes}


def copy_end(**figures: Any) -> dict[str, Any]:
    """What one end used."""
    names = ("file", "name", "hash", "cipher", "stream", "sync", "starved")
    spent = {f"{name}_us": 0 for name in names}
    end = {"engine": "buffered", "file_system": "tmpfs", "threads": 0, **spent}
    return {**end, "peak_memory_bytes": 50 << 20, **figures}


def copy_report(**figures: Any) -> dict[str, Any]:
    """A report of a copy of two files of 1 MiB in all."""
    kinds = {name: tally() for name in ("present", "failed", "skipped", "deleted")}
    counts = {"made": 1, "resumed_bytes": 0, "hole_bytes": 0, "repeated_chunks": 0}
    return {
        "found": tally(3, 1 << 20), "copied": tally(2, 1 << 20), **kinds, **counts,
        "cipher": "aes128-gcm", "chunk_bytes": 1 << 18, "failures": [],
        "sender": copy_end(), "receiver": copy_end(), **figures,
    }  # fmt: skip


def failed_lines(count: int, reason: str = "permission denied") -> dict[str, Any]:
    """The part of a report in which so many names failed; a hundred are listed."""
    lines = [
        {"path": f"d/{n}", "kind": "file", "status": "failed", "bytes": 1, "reason": reason}
        for n in range(min(count, 100))
    ]
    return {"failed": tally(count, count), "failures": lines}


def copy_record(report: Mapping[str, Any] | None = None, **fields: Any) -> Any:
    """A record of a copy that came about."""
    made = run_record(**{"run_s": 0.5, "streams": [stream(CLIENT, SENDER)], **fields})
    spec = {**made["spec"], "copy": {"sources": ["s"], "destination": "d", "verify": "tree"}}
    return {**made, "spec": spec, "copy": copy_report() if report is None else report}


def progress(elapsed_s: float = 0.1, **figures: Any) -> Progress:
    """A report of progress."""
    zero = {
        "found_files": 0, "found_bytes": 0, "all_found": False, "settled_files": 0,
        "settled_bytes": 0, "failed_files": 0, "moved_bytes": 0, "spared_bytes": 0,
        "busy_streams": 1, "elapsed_us": round(1e6 * elapsed_s),
    }  # fmt: skip
    return Progress({**zero, **figures})  # type: ignore[typeddict-item]


class PlayedRun:
    """A session that plays events and then ends with a record, in the place of `RunFollower`."""

    def __init__(self, steps: Sequence[Step], record: Any, receipt: str | None) -> None:
        """Plays `steps`; receipt lines among them go to the receipt."""
        self._steps = list(steps)
        self._last = record
        self._receipt = None if receipt is None else Path(receipt)
        self.record: Any = None
        self.run_id: str | None = None
        """It has no name: nobody changes it from outside."""
        self.asked = Stop.GO_ON
        self.samples: Mapping[str, array[int]] = {}
        self.file_samples: Mapping[str, array[int]] = {}

    def ask(self, wanted: Stop) -> None:
        """Notes the wish."""
        self.asked = max(self.asked, wanted)

    def events(self, should_stop: StopQuestion, poll_s: float) -> Iterator[Event | None]:
        """As those of the real one."""
        while self.record is None:
            self.ask(should_stop())
            yield self.poll(poll_s)

    def poll(self, _timeout_s: float) -> Event | None:
        """The next step."""
        if not self._steps or self.asked is not Stop.GO_ON:
            stopped = {"status": "partial", "error": None}
            self.record = self._last if not self._steps else {**self._last, **stopped}
            return SessionEnded(self.record)
        step = self._steps.pop(0)
        if not isinstance(step, Mapping):
            return step
        if self._receipt is not None:
            with self._receipt.open("a", encoding="utf-8") as file:
                file.write(json.dumps(step) + "\n")
        return None

    def close(self) -> None:
        """Nothing goes on."""


class PlayedEngine:
    """Sessions to play, one after the other; remembers what was asked of each."""

    def __init__(self) -> None:
        """Nothing to play yet."""
        self.sessions: list[tuple[Sequence[Step], Any]] = []
        self.asked: list[tuple[Target, dict[str, Any]]] = []
        self.before: Callable[[], None] = lambda: None

    def play(self, record: Any, *steps: Step) -> None:
        """Adds a session; a record without `status` is a failure to begin."""
        self.sessions.append((steps, record))

    def __call__(
        self,
        target: Target,
        spec: dict[str, Any],
        *,
        receipt: str | None,
        contact: object = None,
    ) -> PlayedRun:
        """Takes the place of `RunFollower`."""
        self.asked.append((target, spec))
        self.before()
        steps, record = self.sessions.pop(0)
        if "status" not in record:
            raise from_failure(record)
        return PlayedRun(steps, record, receipt)
