"""Logs of rsync: `--log-file`, and of its daemon (`log file`); one transfer for each run.

Lines begin with the time and the process: that is how runs are told apart, but for the lines of a
receiver, whose process is a child's. With `-v` or `--stats` the log has the summary that rsync
prints, and its rate. Else its last line has bytes and no rate: they are taken over the seconds
since the run began and a half, as rsync does. Times have no zone, and are no start.

A run that lists no file that it moved is none, whatever bytes that took; nor is a dry
run. What each line of the list says is the user's choice (`--log-file-format`, `log format`): with
`%i` it says so itself, else every line that names no folder counts. A run without its last line has
failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from farline.formats.format import Format, found_by
from farline.formats.quantity import other_line
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, address, line_by_line, read_records
from farline.formats.rsync import ERROR, ERROR_START, FIGURE, FILES, SENT, TOTAL, figure, summed

_LINE = re.compile(r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(\d{1,10})\] (.*)", re.ASCII)
_BEGINS = re.compile(r"(building|receiving) file list|(?:sending|receiving) incremental file list")
_SENT_ONLY = re.compile(
    rf"sent {FIGURE} bytes\s+received {FIGURE} bytes\s+total size {FIGURE}\s*", re.ASCII
)
_CLIENT = re.compile(r"rsync (to|on) .* from .*\(([0-9A-Fa-f.:]{2,45})\)\s*", re.ASCII)
_MESSAGE = re.compile(
    r"(?:rsync|rsyncd|connect from|name lookup|module-list|auth|params\.c|Number of|Total|Literal"
    r"|Matched|File list|created directory|file has vanished|skipping|IO error|cannot|\*?deleting"
    r"|delete|unknown|sent|received)\b"
)
_ITEMIZED = re.compile(r"(?:^|\s)([<>ch.*])[fdLDS][.+?\w]{9,10}(?=\s|$)", re.ASCII)
_FOLDER = re.compile(r".*/(?: [\d ,.]+)?$")
_OPEN_RUNS = 256
"""Runs that are kept until the log ends; the oldest is closed for a newer one."""
_NEAR = 16
"""A child has a process id so little above its parent's, if others start at the same time."""


@dataclass
class _Run:
    """The lines of one process, from where it begins."""

    line: int
    text: str
    began: datetime | None = None
    receives: bool = False
    lists: bool = False
    """Whether it names a file that it moved."""
    files: int | None = None
    figures: Row | None = None
    is_cut: bool = False
    """Whether a line of the summary must follow."""
    dry: bool = False
    code: str | None = None
    facts: Row = field(default_factory=dict)

    def take(self, when: datetime, text: str) -> None:
        """Takes in what a line says; `ValueError` for a figure that is none."""
        if match := FILES.fullmatch(text):
            self.files = round(figure(match[1], match[2]))
        elif match := SENT.fullmatch(text):
            self.figures, self.is_cut = summed(match), True
        elif match := TOTAL.fullmatch(text):
            self.dry, self.is_cut = match[4] is not None, False
        elif match := _SENT_ONLY.fullmatch(text):
            moved = figure(match[1], match[2]) + figure(match[3], match[4])
            took_s = None if self.began is None else (when - self.began).total_seconds() + 0.5
            self.figures = {"bytes": round(moved), "duration_s": took_s, "rate_bps": None}
        elif self.figures and _is_error(text):
            # It follows the last line, and says how the run ended; this one is cut.
            self.figures = None
        elif not _MESSAGE.match(text):
            self.lists = self.lists or _moves(text)


def _is_error(text: str) -> bool:
    """Whether a line is the start of an error, or all of one but its code."""
    return text.startswith(ERROR_START) or ERROR_START.startswith(text.rstrip())


def _newest(found: dict[int, Any]) -> dict[int, Any]:
    return dict(list(found.items())[-_OPEN_RUNS:])


def _moves(text: str) -> bool:
    """Whether a line of the list is of a file whose data were moved."""
    if match := _ITEMIZED.search(text):
        return match[1] in "<>"
    return _FOLDER.match(text) is None


class _Logged:
    """The runs of a log, line by line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._runs: dict[int, _Run] = {}
        # Processes that are no run of their own, and who asked the daemon.
        self._parents: dict[int, int] = {}
        self._clients: dict[int, Row] = {}
        # The receiver that failed last: its child may say so after it.
        self._failed = -_NEAR

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the runs that end by it."""
        match = _LINE.match(line)
        try:
            when = datetime.strptime(match[1], "%Y/%m/%d %H:%M:%S") if match else None
        except ValueError:
            when = None
        if match is None or when is None:
            other_line(self._reading, number, line)
            return
        pid, text = int(match[2]), match[3]
        other_line(self._reading, number, line)
        if begins := _BEGINS.match(text):
            yield from self._ended(pid)
            run = self._run(pid, number, line)
            run.began, run.receives = when, begins[0].startswith("receiving")
            run.facts = self._clients.pop(pid, {})
        elif client := _CLIENT.match(text):
            host = address(client[2])
            facts: Row = {"from_host" if client[1] == "to" else "to_host": host}
            self._clients = {**_newest(self._clients), pid: facts}
        else:
            yield from self._line(pid, number, line, when, text)
        if len(self._runs) > _OPEN_RUNS:
            yield from self._ended(next(iter(self._runs)))

    def _line(
        self, pid: int, number: int, line: str, when: datetime, text: str
    ) -> Iterator[Record]:
        error = ERROR.search(text)
        of = pid if pid in self._runs else self._parent(pid)
        if of is None:
            if error is None and not (SENT.fullmatch(text) or _SENT_ONLY.fullmatch(text)):
                return
            self._run(pid, number, line)
            of = pid
        run = self._runs.get(of)
        if run is None:
            return
        if error is not None:
            run.code = run.code or error[1]
            yield from self._ended(of)
            # Its other processes may say so, too.
            self._parents = {**_newest(self._parents), pid: of}
            self._failed = of if run.receives else self._failed
            return
        try:
            run.take(when, text)
        except ValueError:
            self._reading.malformed(number, line, "a value in the summary is not a number")

    def _run(self, pid: int, number: int, line: str) -> _Run:
        self._parents.pop(pid, None)
        self._runs[pid] = _Run(number, line)
        return self._runs[pid]

    def _parent(self, pid: int) -> int | None:
        """The run whose receiver a process is: the nearest one that receives and began before."""
        if pid not in self._parents:
            receivers = [one for one, run in self._runs.items() if run.receives]
            near = [one for one in (*receivers, self._failed) if 0 < pid - one < _NEAR]
            if not near:
                return None
            self._parents = {**_newest(self._parents), pid: max(near)}
        return self._parents[pid]

    def _ended(self, pid: int) -> Iterator[Record]:
        run = self._runs.pop(pid, None)
        if run is None:
            return
        row: Row = {"modality": "E", "files": run.files, **run.facts}
        if run.code is not None or run.figures is None:
            code = "no end" if run.code is None else f"code {run.code}"
            yield Record(run.line, run.text, {**row, "complete": False, "code": code})
        elif run.began is None and not run.figures["bytes"]:
            # A daemon that ends.
            self._reading.skip("no data to move")
        elif run.is_cut:
            self._reading.malformed(run.line, run.text, "the summary is truncated")
        elif run.figures["duration_s"] is None:
            self._reading.malformed(run.line, run.text, "the start of this run is missing")
        elif run.dry:
            self._reading.skip("dry run")
        elif run.files == 0 or (run.files is None and not run.lists):
            self._reading.skip("no file is listed as moved")
        else:
            yield Record(run.line, run.text, {**row, **run.figures})

    def end(self) -> Iterator[Record]:
        """The runs that were going on."""
        for pid in list(self._runs):
            yield from self._ended(pid)


_DETECT = re.compile(
    r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\d+\] (?:(?:building|receiving) file list|rsync error: "
    r"|sent \S+ bytes  received \S+ bytes  |rsync (?:to|on) \S* from )",
    re.MULTILINE,
)

FORMAT = Format(
    "rsync-log",
    "log of rsync (--log-file, daemon)",
    found_by(_DETECT),
    read_records("rsync", line_by_line(_Logged)),
)
