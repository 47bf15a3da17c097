"""JSON of fio: rates of a file system, modality F.

Jobs of one group ran at the same time: they are one row for each of reading and writing (or
`mixed`, where fio added these up). Its rate is what they moved over the time of the longest, as
fio itself sums a group up. What was done stands in `code`, the host in both ends if fio says which.
fio 2 counted in KiB.

With `--status-interval` fio writes what was done until then again and again: of documents with
the same jobs and start whose figures grow, the last is the run.

A run that a signal ended has failed, all its groups, and so has a group with a job that failed: the
others went on without it. A time limit (`--runtime`) is no failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.formats.documents import Document, Found, documents, part
from farline.formats.fio_stop import why_stopped
from farline.formats.format import Format
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, address, number, read_records, whole, word
from farline.spec.units import parse_size

if TYPE_CHECKING:
    pass

_DIRECTIONS = ("read", "write")
_MIXED = "mixed"
_SLACK_MS = 1000
"""How much later than due fio may write its status on a busy machine."""


def _rows(document: Document, stopped: str | None) -> Iterator[Row]:
    """Rows of one run of fio; `stopped` says why all of it has failed."""
    is_old = (word(document.get("fio version")) or "").startswith("fio-2")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    errors: dict[str, str] = {}
    jobs = _jobs(document)
    alone = len({str(job.get("groupid")) for job in jobs}) < 2
    for job in jobs:
        together = f"{job.get('hostname')} {job.get('groupid')}"
        if whole(job.get("error")):
            errors.setdefault(together, f"error {job.get('error')}")
        done = [direction for direction in _DIRECTIONS if _done(job, direction)]
        if not done and _done(job, _MIXED):
            done = [_MIXED]
        for direction in done:
            groups.setdefault((together, direction), []).append(job)
    idle = errors.keys() - {together for together, _ in groups}
    for why in [stopped] if stopped and not groups else [errors[one] for one in sorted(idle)]:
        yield {"modality": "F", "complete": False, "code": why}
    for (together, direction), group in groups.items():
        code = errors.get(together) or stopped
        failed: Row = {"complete": False, "code": code} if code else {}
        yield {**_row(document, group, direction, is_old, alone), **failed}


def _jobs(document: Document) -> list[dict[str, Any]]:
    """The jobs of a run; the clients' sum comes as one of its own, and is none."""
    jobs = document.get("client_stats") or document.get("jobs")
    found = jobs if isinstance(jobs, list) else []
    return [job for job in found if isinstance(job, dict) and job.get("jobname") != "All clients"]


def _done(job: dict[str, Any], direction: str) -> dict[str, Any] | None:
    """The figures of one direction, if anything was done in it."""
    done = job.get(direction)
    return done if isinstance(done, dict) and (whole(done.get("io_bytes")) or 0) > 0 else None


def _bytes(done: dict[str, Any], is_old: bool) -> int:
    """What was moved. Until fio 2.20 `io_bytes` was KiB; with bytes came `io_kbytes` beside it."""
    moved = whole(done.get("io_bytes")) or 0
    return moved * 1024 if is_old and "io_kbytes" not in done else moved


def _rate_bps(done: dict[str, Any]) -> float:
    """The rate of one job. fio 3 has both: `bw` is KiB a second, `bw_bytes` bytes."""
    rate = number(done.get("bw_bytes"))
    return ((number(done.get("bw")) or 0) * 1024 if rate is None else rate) * 8


def _row(
    document: Document, group: list[dict[str, Any]], direction: str, is_old: bool, alone: bool
) -> Row:
    figures = [done for job in group if (done := _done(job, direction))]
    moved = sum(_bytes(one, is_old) for one in figures)
    runtime_ms = max(number(one.get("runtime")) or 0 for one in figures)
    if len(figures) == 1 or not runtime_ms:
        rate_bps = sum(_rate_bps(one) for one in figures)
    else:
        rate_bps = moved * 8000 / runtime_ms
    host = address(group[0].get("hostname"))
    started_ms = _started_ms(document, group, runtime_ms, alone)
    return {
        "modality": "F",
        "started_at": None if started_ms is None else round(started_ms * 1000),
        "duration_s": runtime_ms / 1000 or None,
        "bytes": moved,
        "rate_bps": rate_bps,
        "code": direction,
        "from_host": host,
        "to_host": host,
        "concurrency": _concurrency(document, group),
        "block_bytes": _block_bytes(document, group[0], direction),
    }


def _started_ms(
    document: Document, group: list[dict[str, Any]], runtime_ms: float, alone: bool
) -> float | None:
    """When the group started: as fio 3.37 says, or before the end of the run if it ran last."""
    written_ms = number(document.get("timestamp_ms"))
    if written_ms is None:
        return None
    said = [number(job.get("job_start")) for job in group]
    told = min((start for start in said if start is not None), default=None)
    # Of another clock (`job_start_clock_id`) it is no time of day.
    if told is not None and 0 <= written_ms - told <= 7 * 86_400_000:
        return told
    return written_ms - runtime_ms if alone else None


def _option(document: Document, job: dict[str, Any], name: str) -> str | None:
    """The text of an option of a job, or of all jobs; a flag without a value is empty."""
    for options in (job.get("job options"), document.get("global options")):
        if isinstance(options, dict) and isinstance(options.get(name), str):
            return str(options[name])
    return None


def _concurrency(document: Document, group: list[dict[str, Any]]) -> int | None:
    """How many jobs ran at once. With `group_reporting` one entry stands for several."""
    asked = [_option(document, job, "numjobs") for job in group]
    if len(group) == 1 and asked[0] is not None:
        return int(asked[0]) if re.fullmatch(r"[1-9]\d{0,6}", asked[0], re.ASCII) else None
    grouped = any(_option(document, job, "group_reporting") is not None for job in group)
    return None if grouped else len(group)


def _block_bytes(document: Document, job: dict[str, Any], direction: str) -> int | None:
    """The block size, which may be given apart for reading, writing and trimming."""
    texts = (_option(document, job, "bs") or "").split(",")
    text = texts[min(_DIRECTIONS.index(direction), len(texts) - 1)] if direction != _MIXED else (
        texts[0] if len(set(texts)) == 1 else ""
    )  # fmt: skip
    try:
        return parse_size(text) or None
    except ValueError:
        return None


def _continues(earlier: Document, later: Document) -> bool:
    """Whether both tell of one run, which went on in between."""
    before, after = _jobs(earlier), _jobs(later)
    if len(before) != len(after) or not before:
        return False
    if not all(_is_same(first, second) for first, second in zip(before, after, strict=True)):
        return False
    written = number(earlier.get("timestamp_ms")), number(later.get("timestamp_ms"))
    if written[0] is None or written[1] is None:
        return False
    longest_ms = 0.0
    for first, second in zip(before, after, strict=True):
        for direction in (*_DIRECTIONS, "trim", _MIXED):
            old, new = part(first, direction), part(second, direction)
            (old_ms, old_bytes), (new_ms, new_bytes) = _progress(old), _progress(new)
            longest_ms = max(longest_ms, new_ms)
            if (old_ms, old_bytes) == (new_ms, new_bytes):
                continue
            shift_ms = (written[1] - new_ms) - (written[0] - old_ms)
            if new_ms < old_ms or new_bytes < old_bytes:
                return False
            if old_ms and not -_SLACK_MS <= shift_ms <= _SLACK_MS:
                return False
    # The later figures began before the earlier ones were written.
    return written[0] <= written[1] and written[1] - longest_ms < written[0]


def _is_same(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    """Whether both are of one job, which may have started in between."""
    names = ["hostname", "jobname", "groupid"]
    # Of a job that is to start yet fio 3.37 writes 0.
    if earlier.get("job_start") != 0:
        names.append("job_start")
    return all(earlier.get(name) == later.get(name) for name in names)


def _progress(done: Document) -> tuple[float, float]:
    return number(done.get("runtime")) or 0.0, number(done.get("io_bytes")) or 0.0


@dataclass
class _Messages:
    """What stands between documents: why the run has failed whose document comes next."""

    reading: Reading
    stopped: str | None = None
    malformed: int = 0

    def take(self, line: str) -> str | None:
        """Takes a line in; why it is no record."""
        if why := why_stopped(line):
            self.stopped, self.malformed = why, self.reading.tally.malformed
        # fio writes notes before the document, such as `note: both iodepth >= 1 and ...`.
        return None if "\ufffd" in line else "message"

    def why(self) -> str | None:
        """Why the run has failed whose document is here; a broken one before it was meant else."""
        stopped, self.stopped = self.stopped, None
        return stopped if self.malformed == self.reading.tally.malformed else None


def _records(reading: Reading) -> Iterator[Record]:
    held: tuple[Found, str | None] | None = None
    messages = _Messages(reading)
    for found in documents(reading, messages.take):
        stopped = messages.why()
        if not isinstance(found.document.get("fio version"), str):
            reading.malformed(found.line, found.text, "not a fio result")
            continue
        if held is not None and _continues(held[0].document, found.document):
            reading.skip("interim status, not a final result")
        elif held is not None:
            yield from _run(reading, *held)
        held = found, stopped
    if held is not None:
        # What was told last may be on the way to what was cut.
        yield from _run(reading, held[0], held[1] or messages.stopped)


def _run(reading: Reading, found: Found, stopped: str | None) -> Iterator[Record]:
    stopped = stopped or ("no end" if _goes_on(found.document) else None)
    rows = list(_rows(found.document, stopped))
    if not rows:
        reading.skip("nothing read or written")
    for row in rows:
        yield Record(found.line, found.text, row)


def _goes_on(document: Document) -> bool:
    """Whether the run had still seconds to go; what fio cannot tell is the largest number."""
    left_s = [number(job.get("eta")) for job in _jobs(document)]
    return any(left is not None and 0 < left < 2**31 - 1 for left in left_s)


FORMAT = Format(
    "fio",
    "JSON of fio",
    lambda start: '"fio version"' in start,
    read_records("fio", _records),
    version=7,
)
