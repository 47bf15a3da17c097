"""Output of IOzone: rates of a file system, modality F.

The table has a line for each file and record size and a column for each test, found by where it
ends, since tests that were not run leave blanks. Rates are kBytes (1024 bytes) a second. In
throughput mode (`-t`) each test has a line of what all children reached together. What was done
(`write`, `reread`, ...) stands in `code`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.ingest.format import Format
from farline.ingest.reading import Reading
from farline.ingest.rows import Record, Row, tables

if TYPE_CHECKING:
    import pyarrow as pa

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
)
_KB_END, _FIRST_END, _WIDTH = 16, 33, 9
_TABLE = re.compile(r"\s+\d[\d\s]*", re.ASCII)
_CHILDREN = re.compile(
    r"\s*Children see throughput for\s+(\d{1,6}) (.{1,40}?)\s*=\s*(\d{1,15}\.\d+) [kK]B/sec\s*",
    re.ASCII,
)
_UNIT = "Output is in "
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")


def _records(reading: Reading) -> Iterator[Record]:
    in_kb = True
    for number, line in reading.lines():
        if _UNIT in line:
            in_kb = "kBytes/sec" in line
            reading.skip("message")
        elif match := _CHILDREN.fullmatch(line):
            row: Row = {
                "modality": "F",
                "rate_bps": float(match[3]) * 1024 * 8,
                "concurrency": int(match[1]),
                "code": match[2],
            }
            yield Record(number, line, row)
        elif _TABLE.fullmatch(line):
            rows = list(_table_rows(line)) if in_kb else []
            if not rows:
                why = "columns do not fit" if in_kb else "rates are not in kBytes/sec"
                reading.malformed(number, line, f"no line of the table: {why}")
            for row in rows:
                yield Record(number, line, row)
        elif _NO_TEXT.search(line):
            reading.malformed(number, line, "no text")
        else:
            reading.skip("message")


def _table_rows(line: str) -> Iterator[Row]:
    """A row for each test of a line; none if its columns do not end where columns end."""
    numbers = [(int(match[0]), match.end()) for match in re.finditer(r"\d{1,15}", line)]
    if len(numbers) < 3 or numbers[0][1] < _KB_END:
        return
    # Sizes beyond their columns move the whole line to the right.
    shift = numbers[1][1] - (_FIRST_END - _WIDTH)
    size_kb, record_kb = numbers[0][0], numbers[1][0]
    places = [divmod(end - shift - _FIRST_END, _WIDTH) for _, end in numbers[2:]]
    if any(rest or not 0 <= index < len(TESTS) for index, rest in places):
        return
    for (rate_kb, _), (index, _) in zip(numbers[2:], places, strict=True):
        yield {
            "modality": "F",
            "duration_s": size_kb / rate_kb if rate_kb else None,
            "bytes": size_kb * 1024,
            "rate_bps": rate_kb * 1024 * 8.0,
            "block_bytes": record_kb * 1024,
            "code": TESTS[index],
        }


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of an output."""
    return tables(reading, "iozone", _records(reading))


def _detect(start: str) -> bool:
    return "Iozone: Performance Test of File I/O" in start


FORMAT = Format("iozone", "output of IOzone", _detect, read)
