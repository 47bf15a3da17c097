"""What dd prints at its end, of GNU, BSD, macOS and busybox: modality F.

The last figures behind `records out` are the copy; those of `status=progress` before it are none.
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
_OUT = re.compile(r"\d+\+\d+ records out|\d+\+\d+ \S.*")


def _row(line: str) -> Row | None:
    for pattern in (_BSD, _GNU, _GNU_ANY):
        if match := pattern.fullmatch(line):
            seconds = float(match[2].replace(",", "."))
            return {"modality": "F", "bytes": int(match[1]), "duration_s": seconds}
    return None


def _records(reading: Reading) -> Iterator[Record]:
    ended = failed = False
    for number, line in reading.lines():
        if _OUT.fullmatch(line):
            ended = True
            reading.skip("message")
            continue
        row = _row(line)
        if _FAILED.match(line):
            # Its figures follow: what was moved until then.
            failed = True
            reading.skip("message")
        elif row is None:
            other_line(reading, number, line)
        elif not ended:
            reading.skip("progress")
        elif failed:
            failed = False
            yield Record(number, line, {**row, "complete": False, "code": "failed"})
        elif not row["bytes"]:
            reading.skip("no data to move")
        else:
            yield Record(number, line, row)
        ended = ended and row is None


_DETECT = re.compile(
    r"^\d+\+\d+ \S.*\n\d+\+\d+ \S.*\n\d+ \S+ .*(?:/s|/sec\))\s*$|^\d+\+\d+ records out",
    re.MULTILINE,
)

FORMAT = Format("dd", "output of dd", found_by(_DETECT), read_records("dd", _records), version=2)
