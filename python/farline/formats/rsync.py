"""What rsync prints at its end (`-v` or `--stats`): one transfer for each run.

The rate is rsync's own: all bytes sent and received, over its whole seconds and a half. With
`--stats` the files are known too. Prefixes are of 1000, as `-h` writes them, or of 1024 (`-hh`),
with the same letters: where bytes and rate have different ones, only one of the two makes whole
seconds and a half. Where that does not decide, they are taken for 1000. Digits may be grouped as
any locale does. Progress lines are no transfers, nor are dry runs and listings, nor runs that found
nothing to move: the list says so, or what `-vv` counts. A run that ends with an error is a failed
one, though several of its processes may say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.formats.format import Format, found_by
from farline.formats.quantity import other_line, scaled, ungrouped
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, read_records

if TYPE_CHECKING:
    pass

FIGURE = r"([\d.,'\u00a0\u202f\u2019]{1,30})([KMGTP]?)"
SENT = re.compile(
    rf"sent {FIGURE} bytes\s+received {FIGURE} bytes\s+{FIGURE} bytes/sec\s*", re.ASCII
)
TOTAL = re.compile(
    rf"total size is (\S+)\s+speedup is {FIGURE}( \((?:DRY RUN|BATCH ONLY)\))?\s*", re.ASCII
)
FILES = re.compile(rf"Number of (?:regular )?files transferred: {FIGURE}\s*", re.ASCII)
ERROR_START = "rsync error: "
ERROR = re.compile(rf"{ERROR_START}.*\(code (\d+)\)(?:.* \[(\w+)[=\]])?", re.ASCII)
# With these rsync went on to the end: what it could not do is in them. After others it stopped.
_AFTER_THE_SUMMARY = ("23", "24", "25")
_BEGINS = re.compile(r"(?:sending|receiving) incremental file list|building file list|Number of f")
_LIST = re.compile(r"(?:sending|receiving) incremental file list")
# Files that need not be moved, in lists of `-vv` and `--info=name2`.
_UP_TO_DATE = " is uptodate"
# Below it: folders, links, what was deleted, with `-i` what only has other attributes, with `-ii`
# what has none, and what `-vv` says beside it.
_NO_DATA = re.compile(
    r".*/$|.* (?:->|=>) |(?:\*?deleting|created directory|skipping \S+) "
    r"|\.[fdLDS](?:[.+?\w]{9}| {9}) |.* is uptodate\s*$|delta-transmission \w+ "
)
# What `--list-only`, or no destination, prints of a file.
_LISTED = re.compile(
    r"[-dlbcps][-rwxsStTlL]{9}\+? +[\d.,'\u00a0\u202f\u2019]+[KMGTP]?"
    r" \d{4}/\d\d/\d\d \d\d:\d\d:\d\d "
)
# Bytes that the other end had, and those that it had not.
_MATCHES = re.compile(r"total: matches=(\S+)\s+hash_hits=\S+\s+false_alarms=\S+ data=(\S+)\s*")
_PROGRESS = re.compile(r"\s+\S+\s+\d{1,3}%\s+\S+[kMGT]?B/s\s+\d+:\d\d:\d\d")


def figure(digits: str, prefix: str, base: int = 1000) -> float:
    """A figure as rsync prints it, grouped or with a prefix; `ValueError` if it is none."""
    # A figure with a prefix has a fraction of two digits; others are whole or have one, too.
    return scaled(str(ungrouped(digits)), prefix, base)


def summed(sent: re.Match[str]) -> Row:
    """Bytes, seconds and rate of a line that `SENT` matches; `ValueError` for what is no figure."""
    base = 1024 if _is_of_1024(sent) else 1000
    there, back, rate = (figure(sent[at], sent[at + 1], base) for at in (1, 3, 5))
    moved = there + back
    return {
        "bytes": round(moved),
        "duration_s": moved / rate if rate else None,
        "rate_bps": rate * 8,
    }


def _is_of_1024(sent: re.Match[str]) -> bool:
    """Whether prefixes must be of 1024: no figure of 1000 is so large, or the seconds tell."""
    known = [(ungrouped(sent[at]), sent[at + 1]) for at in (1, 3, 5)]
    if not any(prefix for _, prefix in known):
        return False
    # 999.996 is written as 1000.00.
    if any(value > 1000 for value, _ in known):
        return True
    rate, unit = known[2]
    if not rate or unit in (max(known[:2], key=lambda one: scaled("1", one[1], 1000))[1], ""):
        return False
    # What is printed is rounded at the second digit behind the point.
    share = 0.005 / rate + sum(0.005 / value for value, prefix in known[:2] if value and prefix)
    fits = {}
    for base in (1000, 1024):
        moved = sum(scaled(str(value), prefix, base) for value, prefix in known[:2])
        seconds = moved / scaled(str(rate), unit, base)
        nearest = max(0.5, round(seconds - 0.5) + 0.5)
        fits[base] = abs(seconds - nearest) <= seconds * share
    return fits[1024] and not fits[1000]


class _Run:
    """The run that is being told of."""

    def __init__(self) -> None:
        self.files: int | None = None
        self.row: tuple[int, str, Row] | None = None
        self.dry = False
        self.whole = False
        # Whether it lists what it moves, has listed anything, and counted that it moved nothing.
        self.lists = self.listed = self.idle = False
        # What follows it: with `--info=name2` the list of the next has no heading.
        self.after: _Run | None = None

    def take(self, number: int, line: str) -> bool:
        """Whether the line says something of the run."""
        if match := FILES.fullmatch(line):
            self.files = round(figure(match[1], match[2]))
        elif match := SENT.fullmatch(line):
            row: Row = {"modality": "E", **summed(match), "files": self.files}
            self.row = number, line, row
        elif match := TOTAL.fullmatch(line):
            self.dry, self.whole = match[4] is not None, True
            # Of what it did not move again, and the list of it is short beside that.
            is_much = match[1].strip("0.,") == "" or figure(match[2], match[3]) > 2
            is_listed = self.listed or not self.lists or not is_much
            if self.files is None and (self.idle or not is_listed):
                self.files = 0
        else:
            if self.whole:
                self.after = self.after or _Run()
            (self.after or self)._list(line)
            return False
        return True

    def _list(self, line: str) -> None:
        """Takes a line that may be of the list."""
        if match := _MATCHES.fullmatch(line):
            self.idle = match[1] == match[2] == "0"
        elif _LISTED.match(line):
            self.idle = True
        elif _LIST.match(line):
            self.lists, self.listed = True, False
        elif not _BEGINS.match(line):
            self.lists = self.lists or line.rstrip().endswith(_UP_TO_DATE)
            self.listed = self.listed or not _NO_DATA.match(line)


def _records(reading: Reading) -> Iterator[Record]:
    run = _Run()
    # Processes that told of the error that a run has ended with.
    failed: set[str] = set()
    for number, line in reading.lines():
        begins = bool(_BEGINS.match(line)) and (run.whole or run.row is not None)
        if begins or (run.whole and SENT.fullmatch(line)):
            yield from _ended(reading, run, None)
            run = _Run() if begins else (run.after or _Run())
        try:
            taken = run.take(number, line)
        except ValueError:
            reading.malformed(number, line, "a value in the summary is not a number")
            continue
        if taken:
            failed = set()
            continue
        if match := ERROR.search(line):
            who = (match[2] or "").lower()
            if failed and who not in failed and run.row is None and not run.lists:
                failed.add(who)
                reading.skip("message")
                continue
            failed = {who}
            if run.whole and match[1] not in _AFTER_THE_SUMMARY:
                yield from _ended(reading, run, None)
                run = _Run()
            if run.row is None:
                run.row = number, line, {"modality": "E", "files": run.files}
            yield from _ended(reading, run, match[1])
            run = _Run()
        elif run.row is not None and line.startswith(ERROR_START):
            # Its code was cut off.
            yield from _ended(reading, run, "unknown")
            run = _Run()
        elif _PROGRESS.match(line):
            reading.skip("progress")
        else:
            other_line(reading, number, line)
    yield from _ended(reading, run, None)


def _ended(reading: Reading, run: _Run, code: str | None) -> Iterator[Record]:
    if run.row is None:
        return
    number, line, row = run.row
    if code is not None:
        yield Record(number, line, {**row, "complete": False, "code": f"code {code}"})
    elif not run.whole:
        # Only the line that is missing says whether it was a dry run.
        reading.malformed(number, line, "the summary is truncated")
    elif run.dry:
        reading.skip("dry run")
    elif run.files == 0:
        reading.skip("no data to move")
    else:
        yield Record(number, line, row)


_DETECT = re.compile(
    r"^sent \S+ bytes\s+received \S+ bytes\s+\S+ bytes/sec|^rsync error: |^Number of regular files"
    r" transferred: |^sending incremental file list$|^receiving incremental file list$",
    re.MULTILINE,
)

FORMAT = Format(
    "rsync",
    "output of rsync (-v, --stats)",
    found_by(_DETECT),
    read_records("rsync", _records),
    version=5,
)
