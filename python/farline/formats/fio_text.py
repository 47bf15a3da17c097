"""Output of fio for people: rates of a file system, modality F.

The status of a group says for reading and for writing what its jobs came to together: that is a
row; who the jobs were stands before it. A group that failed before it moved anything has no such
line, and is one failed transfer; a line of both directions together is none beside those of each.
Of snapshots (`--status-interval`) the last counts: its
jobs have the process ids of those before. fio 3 says each figure with prefixes of 1024 and of
1000; fio 2 has prefixes of 1024 alone. Times of the day have no zone, and are not taken.
A signal (`fio: terminating on signal`) fails all groups of the run that is told of next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.formats.fio_stop import KILLED, why_stopped
from farline.formats.format import Format
from farline.formats.quantity import NUMBER, other_line, scaled
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, line_by_line, read_records

if TYPE_CHECKING:
    pass

_JOB = re.compile(r"\S.*: \(groupid=(\d+), jobs=(\d+)\): err=\s*(\d+)(?:.*?): pid=(\d+)", re.ASCII)
_VERSION = re.compile(r"fio-\d\S*")
_GROUP = re.compile(r"Run status group (\d+) ")
_UNIT = r"(Ki|Mi|Gi|Ti|Pi|[kKMGTP])?(B|bit|b)"
_STATUS_3 = re.compile(
    rf" +(READ|WRITE|TRIM|MIXED): bw=({NUMBER}){_UNIT}/s \(.*?\),.*"
    rf" io=({NUMBER}){_UNIT} \(.*?\), run=\d+-(\d+)msec",
    re.ASCII,
)
_STATUS_2 = re.compile(
    rf" +(READ|WRITE|TRIM|MIXED): io=({NUMBER}){_UNIT}, aggrb=({NUMBER}){_UNIT}/s,.*"
    r" maxt=(\d+)msec",
    re.ASCII,
)


@dataclass
class _Group:
    """The jobs of a group."""

    jobs: int = 0
    error: int = 0
    failed: tuple[int, str] | None = None
    """Where a job says that it failed."""
    pids: set[str] = field(default_factory=set)


@dataclass
class _Run:
    """What was told at one moment: groups, and their rows."""

    groups: dict[str, _Group] = field(default_factory=dict)
    rows: list[tuple[str, Record]] = field(default_factory=list)
    group: str | None = None
    stopped: tuple[int, str] | None = None
    """Where fio says that it ended this run early."""

    def pids(self) -> set[str]:
        """The process ids of all jobs."""
        return {pid for group in self.groups.values() for pid in group.pids}


def _row(line: str, group: _Group) -> Row | None:
    if match := _STATUS_3.fullmatch(line.rstrip()):
        rate, prefix, unit, moved, moved_prefix, _, milliseconds = match.groups()[1:]
        base = 1024 if (prefix or "").endswith("i") else 1000
        rate_bps = scaled(rate, prefix, base) * (8 if unit == "B" else 1)
        base = 1024 if (moved_prefix or "").endswith("i") else 1000
        moved_bytes = scaled(moved, moved_prefix, base)
    elif match := _STATUS_2.fullmatch(line.rstrip()):
        moved, moved_prefix, _, rate, prefix, unit, milliseconds = match.groups()[1:]
        rate_bps = scaled(rate, prefix, 1024) * (8 if unit == "B" else 1)
        moved_bytes = scaled(moved, moved_prefix, 1024)
    else:
        return None
    return {
        "modality": "F",
        "duration_s": int(milliseconds) / 1000 or None,
        "bytes": round(moved_bytes),
        "rate_bps": rate_bps,
        "concurrency": group.jobs or None,
        "complete": not group.error,
        "code": f"error {group.error}" if group.error else match[1].lower(),
    }


class _Printed:
    """The runs of an output, line by line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._run = _Run()
        self._last: _Run | None = None
        # Of the run whose figures come next; and whether fio has begun since the last ones.
        self._stopped: tuple[int, str] | None = None
        self._has_begun = False
        self._killed: dict[str, tuple[int, str]] = {}

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the runs that ended before it."""
        if match := _JOB.match(line):
            if self._run.group is not None:
                yield from self._told()
            self._run.stopped = self._run.stopped or self._stopped
            self._stopped, self._has_begun = None, False
            group = self._run.groups.setdefault(match[1], _Group())
            group.jobs += int(match[2])
            if int(match[3]) and not group.error:
                group.error, group.failed = int(match[3]), (number, line)
            group.pids.add(match[4])
            self._reading.skip("message")
        elif match := _GROUP.match(line):
            self._run.group = match[1]
            self._reading.skip("message")
        elif self._run.group is not None and line.startswith(" "):
            group = self._run.groups.get(self._run.group, _Group())
            row = _row(line, group)
            told = any(name == self._run.group for name, _ in self._run.rows)
            if row is None or row["code"] == "trim" or (told and row["code"] == "mixed"):
                other_line(self._reading, number, line)
            else:
                self._run.rows.append((self._run.group, Record(number, line, row)))
        else:
            # Where both go into one file, errors may come before what was printed earlier.
            if killed := KILLED.match(line):
                self._killed[killed[1]] = number, line
            elif why_stopped(line):
                self._stopped = number, line
            elif _VERSION.fullmatch(line):
                yield from self._begins()
            other_line(self._reading, number, line)

    def _begins(self) -> Iterator[Record]:
        """Another fio: of one that told nothing after a signal, what it told before is no end."""
        if self._run.group is not None:
            yield from self._told()
        self._unended()
        self._stopped, self._has_begun = None, True

    def _unended(self) -> None:
        if self._last is not None and self._stopped is not None and not self._has_begun:
            self._last.stopped = self._stopped

    def _told(self) -> Iterator[Record]:
        """A moment is over: the one before was another run, or an earlier moment of this one."""
        last, self._last, self._run = self._last, self._run, _Run()
        if last is None:
            return
        # Jobs that begin later are told of later.
        if last.pids() and last.pids() <= self._last.pids():
            self._reading.skip("interim status, not a final result", len(last.rows))
        else:
            yield from self._ended(last)

    def end(self) -> Iterator[Record]:
        """The run that was going on."""
        yield from self._told()
        self._unended()
        if self._last is not None:
            yield from self._ended(self._last)

    def _ended(self, run: _Run) -> Iterator[Record]:
        for pid in run.pids() & self._killed.keys():
            run.stopped = run.stopped or self._killed[pid]
        yield from _records(run)


def _records(run: _Run) -> Iterator[Record]:
    told = {name for name, _ in run.rows}
    stopped = why_stopped(run.stopped[1]) if run.stopped else None
    for _, record in run.rows:
        if stopped and record.row["complete"]:
            record = Record(
                record.line, record.text, {**record.row, "complete": False, "code": stopped}
            )
        yield record
    if run.stopped and not told and not any(group.failed for group in run.groups.values()):
        yield Record(*run.stopped, {"modality": "F", "complete": False, "code": stopped})
    for name, group in run.groups.items():
        if group.failed is not None and name not in told:
            row: Row = {"modality": "F", "complete": False, "code": f"error {group.error}"}
            yield Record(*group.failed, row)


_DETECT = re.compile(
    r"^\S.*: \(groupid=\d+, jobs=\d+\): err=|^Run status group \d+ \(all jobs\)", re.MULTILINE
)

FORMAT = Format(
    "fio-text",
    "output of fio for people (normal)",
    lambda start: '"fio version"' not in start and bool(_DETECT.search(start)),
    read_records("fio", line_by_line(_Printed)),
    version=3,
)
