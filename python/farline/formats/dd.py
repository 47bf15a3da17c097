"""What dd prints at its end, of GNU, BSD, macOS and busybox: modality F.

The last figures behind `records out` are the copy; those of `status=progress` before it are none.
Neither are those that dd tells when it gets a signal (`kill -USR1`): figures follow at once that
are larger, and theirs are of whole blocks in a number that nobody asks for.
Seconds and bytes are exact; the rate is theirs. Nothing says whether it read or wrote a file
system, so `code` is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.formats.format import Format, found_by
from farline.formats.quantity import other_line
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, read_records

if TYPE_CHECKING:
    pass

_SECONDS = r"(\d{1,12}(?:[.,]\d{1,12})?(?:e[-+]?\d{1,3})?)"
# In all languages: bytes, sizes for people in brackets, a verb, seconds.
_GNU = re.compile(
    rf"(\d{{1,18}}) \w+ (?:\([^()]*\) )?[^\d,(]{{1,40}}, {_SECONDS} ?s\w*, .*/s\s*", re.ASCII
)
_GNU_ANY = re.compile(
    rf"(\d{{1,18}}) [^\W\d]+ \([^()]*\) [^\d,(]{{1,40}}, {_SECONDS} ?[^\W\d]+, [^,]*?/s\s*"
)
_BSD = re.compile(rf"(\d{{1,18}}) bytes transferred in {_SECONDS} secs? \(.*/sec\)\s*", re.ASCII)
_FAILED = re.compile(r"(?:\S*/)?dd: (?:error (?:reading|writing) |.+: No space left on device$).*")
_OUT = re.compile(r"(\d{1,18})\+(\d{1,18}) \S.*", re.ASCII)


def _row(line: str) -> Row | None:
    for pattern in (_BSD, _GNU, _GNU_ANY):
        if match := pattern.fullmatch(line):
            seconds = float(match[2].replace(",", "."))
            return {"modality": "F", "bytes": int(match[1]), "duration_s": seconds}
    return None


def _is_interim(blocks: re.Match[str], earlier: Row, later: Row) -> bool:
    """Whether dd told the earlier figures on the way to the later ones."""
    whole_blocks = int(blocks[1])
    is_asked_for = whole_blocks % 10 == 0 or whole_blocks & (whole_blocks - 1) == 0
    grows = later["bytes"] > earlier["bytes"] and later["duration_s"] > earlier["duration_s"]
    return grows and blocks[2] == "0" and not is_asked_for


def _records(reading: Reading) -> Iterator[Record]:
    failed = False
    blocks: re.Match[str] | None = None
    # The last copy, until what follows it says whether it had ended.
    held: tuple[Record, re.Match[str]] | None = None
    for number, line in reading.lines():
        if match := _OUT.fullmatch(line):
            blocks = match
            reading.skip("message")
            continue
        row = _row(line)
        if row is None or blocks is None:
            if held is not None and row is None:
                yield held[0]
                held = None
            # The figures of a copy that failed follow: what was moved until then.
            failed = failed or _FAILED.match(line) is not None
            if row is None:
                other_line(reading, number, line)
            else:
                reading.skip("progress")
        else:
            if held is not None and _is_interim(held[1], held[0].row, row):
                reading.skip("progress")
            elif held is not None:
                yield held[0]
            held = None
            if failed:
                yield Record(number, line, {**row, "complete": False, "code": "failed"})
            elif not row["bytes"]:
                reading.skip("no data to move")
            else:
                held = Record(number, line, row), blocks
            failed = False
        if row is not None:
            blocks = None
    if held is not None:
        yield held[0]


_DETECT = re.compile(
    r"^\d+\+\d+ \S.*\n\d+\+\d+ \S.*\n\d+ \S+ .*(?:/s|/sec\))\s*$|^\d+\+\d+ records out",
    re.MULTILINE,
)

FORMAT = Format("dd", "output of dd", found_by(_DETECT), read_records("dd", _records), version=3)
