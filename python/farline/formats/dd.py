"""What dd prints at its end, of GNU, BSD, macOS and busybox: modality F.

The last figures behind `records out` are the copy; those of `status=progress` before it are none.
Neither are those that dd tells when it gets a signal (`kill -USR1`): figures follow at once that
are larger, and theirs are of whole blocks in a number that nobody asks for.

A line of `dd: `, in whatever language, says that the copy whose figures follow has failed, unless
it is a warning or of something that dd ends for without figures. With `conv=noerror` dd goes on
and tells figures at each error: a copy that failed and figures that grow behind it are one.

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
# The verb may stand first (Ukrainian).
_GNU_ANY = re.compile(
    rf"(?:[^\W\d]+ )?(\d{{1,18}}) [^\W\d]+ \([^()]*\)(?: [^\d,(]{{1,40}})?,"
    rf" {_SECONDS} ?[^\W\d]+, \S+ \S+/[^\W\d]+\s*"
)
_BSD = re.compile(
    rf"(\d{{1,18}}) bytes transferred in {_SECONDS} sec(?:ond)?s? \(.*/sec\)\s*", re.ASCII
)
_SAYS = re.compile(r"(?:\S*/)?dd: ")
_HARMLESS = re.compile(
    # Warnings.
    r"dd: (?:warning|Warnung|avertissement|attention|aviso|advertencia|attenzione|waarschuwing"
    r"|предупреждение|警告)|fullblock|cannot (?:skip|seek)|short write on character device"
    # What dd ends for before it begins.
    r"|dd: (?:invalid|unrecognized|[^'\"`\u2018\xab/]*(?:\bopen|ouvrir|öffn|abrir|aprire))"
    r"|nicht geöffnet werden|: (?:No such file or directory|Permission denied)$",
    re.IGNORECASE,
)
_SHORT = "iflag=fullblock"
"""Advice to those whose reads came back short, once a run: a signal can make it so."""
_CALL = re.compile(r"\bdd (?:\S+ )*\w+=\S")
_OUT = re.compile(r"(?:[^\W\d]+ )?(\d{1,18})\+(\d{1,18}) \S.*")
_AS_ASCII = str.maketrans({"\u00a0": " ", "\u202f": " ", "\uff0c": ", "})
"""What French and Chinese write between words and figures."""


def _row(line: str) -> Row | None:
    for pattern in (_BSD, _GNU, _GNU_ANY):
        if match := pattern.fullmatch(line):
            seconds = float(match[2].replace(",", "."))
            return {"modality": "F", "bytes": int(match[1]), "duration_s": seconds}
    return None


def _fails(line: str) -> bool:
    """Whether the figures that follow are of a copy that failed."""
    return _SAYS.match(line) is not None and not _HARMLESS.search(line)


def _is_interim(blocks: re.Match[str], earlier: Row, later: Row) -> bool:
    """Whether dd told the earlier figures on the way to the later ones, asked or at an error."""
    whole_blocks = int(blocks[1])
    is_asked_for = whole_blocks % 10 == 0 or whole_blocks & (whole_blocks - 1) == 0
    grows = later["bytes"] > earlier["bytes"] and later["duration_s"] > earlier["duration_s"]
    if not earlier.get("complete", True):
        return bool(grows)
    return grows and blocks[2] == "0" and not is_asked_for


def _records(reading: Reading) -> Iterator[Record]:
    failed = False
    blocks: re.Match[str] | None = None
    # The last copy, until what follows it says whether it had ended.
    held: tuple[Record, re.Match[str]] | None = None
    for number, text in reading.lines():
        line = text.strip().translate(_AS_ASCII)
        if match := _OUT.fullmatch(line):
            blocks = match
            reading.skip("message")
            continue
        row = _row(line)
        if row is None or blocks is None:
            fails = _fails(line)
            has_failed = held is not None and not held[0].row.get("complete", True)
            goes_on = _SHORT in line or (fails and has_failed)
            if held is not None and row is None and not goes_on:
                yield held[0]
                held = None
            # The figures of a copy that failed follow: what was moved until then.
            failed = fails or (failed and not _CALL.search(line))
            if row is None:
                other_line(reading, number, line)
            else:
                reading.skip("progress")
        else:
            if held is not None and _is_interim(held[1], held[0].row, row):
                failed = failed or not held[0].row.get("complete", True)
                reading.skip("progress")
            elif held is not None:
                yield held[0]
            held = None
            if failed:
                held = Record(number, line, {**row, "complete": False, "code": "failed"}), blocks
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
    r"^(?:[ \t]*(?:\w+ )?\d+\+\d+[ \u00a0\u202f]\S.*\n){2}"
    r"[ \t]*(?:[^\W\d]+ )?\d+[ \u00a0\u202f]\S+ .*(?:/[^\W\d]+|/sec\))\s*$"
    r"|^[ \t]*\d+\+\d+ records out",
    re.MULTILINE,
)

FORMAT = Format("dd", "output of dd", found_by(_DETECT), read_records("dd", _records), version=5)
