"""Output of IOzone: rates of a file system, modality F.

The table has a line for each file and record size and a column for each test. Which test a column
is stands in the header above it, in a layout that depends on version and options; tests that were
not run leave blanks, so a number belongs to the test whose name ends where it ends. Where columns
are ten wide (3.506, 3.508), blanks are narrower than the numbers that they stand for. Rates are
kBytes (1024 bytes) a second where the output says so: with `-O` and `-N` they are none. In
throughput mode (`-t`) each test has a line of what all children reached together. What was done
(`write`, `reread`, ...) stands in `code`.

A test that failed is a failed transfer: of a table the line whose sizes stand there and which an
error ends, in throughput mode what all children reached where one of them could not go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.formats.format import Format
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, Unreadable, line_by_line, read_records

if TYPE_CHECKING:
    pass

TESTS = (
    "write",
    "rewrite",
    "read",
    "reread",
    "random read",
    "random write",
    "backward read",
    "record rewrite",
    "stride read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
    "pwrite",
    "repwrite",
    "pread",
    "repread",
    "pwritev",
    "repwritev",
    "preadv",
    "repreadv",
)
_HEADER = re.compile(r"\s+kB\s+reclen\s[\sa-z]*", re.IGNORECASE)
_TABLE = re.compile(r"\s+\d[\d\s]*", re.ASCII)
_MOST_DIGITS = 15
_CHILDREN = re.compile(
    r"\s*Children see throughput for\s+(\d{1,6}) (.{1,40}?)\s*=\s*(\d{1,15}\.\d+) [kK]B/sec\s*",
    re.ASCII,
)
_FAILED = re.compile(
    r"(Error \w*(?:writ|read)\w* block|Can ?not (?:open|fdopen|create) temp"
    r"|(?:Mapping|Mmap|Fork|Thread create|File lock for \w+) failed)|iozone: (interrupted)"
)
"""Why a test could not go on. What the system said of it goes to the other output."""
_BEGINS = ("Iozone: Performance Test of File I/O", "Run began: ")
_UNIT = "Output is in "
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
_OFF_BY = 1
"""Characters that a number may end before or behind the name of its test."""
_TOGETHER = (0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11)
"""Which tests are run, or left out, together."""
_NARROWER = (2, 2, 2, 1, 1, 1, 2, 3, 2, 2, 2, 2)
"""By how much their blanks are narrower than columns of ten (`test_output` in its source)."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where the names of the tests end in the header; the first two are the sizes."""

    ends: tuple[int, ...]
    tests: tuple[str, ...]

    @property
    def are_wide(self) -> bool:
        """Whether they are ten characters wide."""
        return len(self.ends) > 3 and self.ends[3] - self.ends[1] == 20

    def narrower(self, after: int, before: int) -> int:
        """How much room was saved by the tests that were left out between these two."""
        if not self.are_wide:
            return 0
        first = _TOGETHER[after - 2] + 1 if after > 1 else 0
        return sum(_NARROWER[first : _TOGETHER[before - 2]])


def _columns(line: str) -> _Columns | None:
    """The columns of a header; None if it names tests that are not known."""
    found = [(match[0], match.end()) for match in re.finditer(r"\S+", line)]
    names, ends = [name for name, _ in found[2:]], [end for _, end in found]
    known = [test.rpartition(" ")[2] for test in TESTS[: len(names)]]
    return _Columns(tuple(ends), TESTS[: len(names)]) if names == known else None


class _Output:
    """What an output said so far of the table that may follow."""

    def __init__(self) -> None:
        self.in_kb: bool | None = None
        self.columns: _Columns | None = None

    def is_told(self, line: str) -> bool:
        """Takes in a line that says how tables are to be read; False if it is none."""
        if any(text in line for text in _BEGINS):
            self.in_kb = self.columns = None
        elif _UNIT in line:
            self.in_kb = "kbytes/sec" in line.lower()
        elif _HEADER.fullmatch(line):
            self.columns = _columns(line)
        else:
            return False
        return True

    def rows(self, line: str) -> tuple[Row, list[Row]]:
        """The sizes in a line of the table, and a row for each test: none where it has sizes alone.

        Raises:
            Unreadable: when it does not say which test a number is of, or in what unit.
        """
        if self.in_kb is not True:
            said = "the unit of the rates is missing" if self.in_kb is None else (
                "rates are not in kBytes/sec"
            )  # fmt: skip
            raise Unreadable(f"not a table row: {said}")
        if self.columns is None:
            raise Unreadable("not a table row: no header with known tests above it")
        found = list(re.finditer(r"\d+", line, re.ASCII))
        if len(found) < 2:
            raise Unreadable("not a table row: a size is missing")
        if any(len(match[0]) > _MOST_DIGITS for match in found):
            raise Unreadable("not a table row: numbers without a blank between them")
        numbers = [(int(match[0]), match.end()) for match in found]
        size_kb, record_kb = numbers[0][0], numbers[1][0]
        sized: Row = {"modality": "F", "block_bytes": record_kb * 1024}
        return sized, [
            {
                **sized,
                "duration_s": size_kb / rate_kb if rate_kb else None,
                "bytes": size_kb * 1024,
                "rate_bps": rate_kb * 1024 * 8.0,
                "code": test,
            }
            for (rate_kb, _), test in zip(
                numbers[2:], _tests([end for _, end in numbers], self.columns), strict=True
            )
        ]


def _tests(ends: list[int], columns: _Columns) -> Iterator[str]:
    """The test of each number behind the sizes, by where the numbers end."""
    if len(ends) == len(columns.ends):
        yield from columns.tests
        return
    # A number that is wider than its column moves what follows to the right.
    moved, index = max(0, ends[1] - columns.ends[1]), 1
    if abs(ends[0] - columns.ends[0]) > _OFF_BY and not moved:
        raise Unreadable("not a table row: columns do not match the header")
    saved = 0
    for end in ends[2:]:
        near = [
            (place, room)
            for place in range(index + 1, len(columns.ends))
            for room in [saved + columns.narrower(index, place)]
            if abs(end - moved - columns.ends[place] + room) <= _OFF_BY
        ]
        if not near:
            raise Unreadable("not a table row: columns do not match the header")
        index, saved = near[0]
        moved = max(0, end - columns.ends[index] + saved)
        yield columns.tests[index - 2]


class _Printed:
    """The tests of an output, line by line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._output = _Output()
        # The test that may be going on, and whether its line has sizes alone.
        self._test: Record | None = None
        self._is_bare = False
        self._failed: Record | None = None

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the tests that it tells of, or ends."""
        if self._output.is_told(line):
            yield from self.end()
            self._reading.skip("message")
        elif match := _CHILDREN.fullmatch(line):
            failed, self._failed = self._failed, None
            row: Row = {
                "modality": "F",
                "rate_bps": float(match[3]) * 1024 * 8,
                "concurrency": int(match[1]),
                "code": match[2],
                **(failed.row if failed else {}),
            }
            yield Record(number, line, row)
        elif _TABLE.fullmatch(line):
            yield from self.end()
            yield from self._table(number, line)
        elif _NO_TEXT.search(line):
            self._reading.malformed(number, line, "no text")
        else:
            if (match := _FAILED.search(line)) and self._failed is None:
                row = {"modality": "F", "complete": False, "code": match[1] or match[2]}
                self._failed = Record(number, line, row)
            self._reading.skip("message")

    def end(self) -> Iterator[Record]:
        """The test that failed, if one did."""
        test, failed = self._test, self._failed
        self._test = self._failed = None
        if failed is not None:
            yield Record(failed.line, failed.text, {**(test.row if test else {}), **failed.row})
        elif test is not None and self._is_bare:
            yield Record(test.line, test.text, {**test.row, "complete": False, "code": "no result"})

    def _table(self, number: int, line: str) -> Iterator[Record]:
        try:
            sized, rows = self._output.rows(line)
        except Unreadable as reason:
            self._reading.malformed(number, line, str(reason))
            return
        self._test, self._is_bare = Record(number, line, sized), not rows
        for row in rows:
            # With `-+n` a test that was left out has rate 0.
            if row["rate_bps"]:
                yield Record(number, line, row)
            else:
                self._reading.skip("test that was not run")


_DETECT = re.compile(
    r"Iozone: Performance Test of File I/O|^ +kB  reclen +write |Children see throughput for +\d",
    re.MULTILINE | re.IGNORECASE,
)


def _detect(start: str) -> bool:
    return bool(_DETECT.search(start))


FORMAT = Format(
    "iozone",
    "output of IOzone",
    _detect,
    read_records("iozone", line_by_line(_Printed)),
    version=4,
)
