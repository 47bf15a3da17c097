"""Outputs of bbcp, EScp and scp: a line or two for each copy.

All three count KB, MB and GB in steps of 1024 (EScp's bits in steps of 1000), and round them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.formats.format import Format, found_by
from farline.formats.quantity import NUMBER, other_line, scaled
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, read_records
from farline.formats.tally import excerpt

if TYPE_CHECKING:
    pass

_CREATED = re.compile(r"File .* (?:created|appended|replaced|updated); (\d{1,18}) bytes at .*B/s.*")
_COPIED = re.compile(
    rf"(\d{{1,12}}) files? copied at effectively ({NUMBER}) ([KMGTE]?)B/s\s*", re.ASCII
)
# It begins what it does and what it could not do alike; these words are of the second kind.
_BBCP_FAILED = re.compile(
    r"bbcp: (?!\d{6} )(.*\b(?:no such|not |unable|cannot|can't|failed|refused|denied|error|aborted"
    r"|invalid|already exists|lost|broken|closed|timed out|no space|insufficient).*)",
    re.IGNORECASE,
)


def _bbcp(reading: Reading) -> Iterator[Record]:
    """A run: what each file had, and at the end the rate of all. Bytes may be unsaid."""
    moved, files, failed = 0, 0, False
    for number, line in reading.lines():
        if match := _CREATED.fullmatch(line):
            moved, files = moved + int(match[1]), files + 1
            reading.skip("file of a run")
        elif match := _COPIED.fullmatch(line):
            rate = scaled(match[2], match[3], 1024)
            row: Row = {"modality": "E", "rate_bps": rate * 8, "files": int(match[1])}
            if files == int(match[1]) and moved and rate:
                row |= {"bytes": moved, "duration_s": moved / rate}
            yield Record(number, line, row)
            moved, files, failed = 0, 0, False
        elif (match := _BBCP_FAILED.match(line)) and not failed:
            moved, files, failed = 0, 0, True
            yield Record(
                number, line, {"modality": "E", "complete": False, "code": excerpt(match[1])}
            )
        else:
            other_line(reading, number, line)


_SENT = re.compile(
    rf"Sent +: +({NUMBER}) ([KMGTPE]?)B in (\d{{1,12}}) files at +({NUMBER}) ([KMGTPE]?)"
    r"(B|bits)/s in .*",
    re.ASCII,
)


def _escp(reading: Reading) -> Iterator[Record]:
    """A run. The time behind `in` is not in any one unit, so the rate and bytes say it."""
    for number, line in reading.lines():
        if match := _SENT.fullmatch(line):
            moved = scaled(match[1], match[2], 1024)
            in_bits = match[6] == "bits"
            rate_bps = scaled(match[4], match[5], 1000 if in_bits else 1024)
            rate_bps *= 1 if in_bits else 8
            row: Row = {
                "modality": "E",
                "bytes": round(moved),
                "duration_s": moved * 8 / rate_bps if rate_bps else None,
                "rate_bps": rate_bps,
                "files": int(match[3]),
            }
            yield Record(number, line, row)
        elif line.startswith(("Could not open ", "Error: ")):
            yield Record(number, line, {"modality": "E", "complete": False, "code": excerpt(line)})
        else:
            other_line(reading, number, line)


_PROGRESS = re.compile(
    rf".*?\s(\d{{1,3}})%\s+({NUMBER})(?:([KMGTP]?)B)?\s+({NUMBER})([KMGTP]?)B/s\s+"
    r"(?:--:--|(?:\d+:)?\d+:\d\d)(?: ETA)?\s*",
    re.ASCII,
)


def _scp(reading: Reading) -> Iterator[Record]:
    """A file for each line of 100 %: those before it are on the way, or are told of again."""
    for number, line in reading.lines():
        match = _PROGRESS.fullmatch(line)
        if match is None:
            other_line(reading, number, line)
        elif match[1] != "100" or line.rstrip().endswith("ETA"):
            reading.skip("progress")
        else:
            rate = scaled(match[4], match[5], 1024)
            if not rate:
                reading.skip("file without a rate")
                continue
            # Its time is of whole seconds, so it is left out.
            row: Row = {"modality": "E", "rate_bps": rate * 8, "files": 1}
            moved = scaled(match[2], match[3], 1024)
            yield Record(number, line, {**row, "bytes": round(moved)})


_DETECT_BBCP = re.compile(r"copied at effectively |^bbcp: |^File .* created; \d+ bytes", re.M)
_DETECT_ESCP = re.compile(r"^Sent +: .*B in \d+ files at ", re.MULTILINE)
_DETECT_SCP = re.compile(
    r"^\S.{0,400}? {1,400}\d{1,3}% {1,20}[\d.]{1,8}(?:[KMGTP]?B)?"
    r" {1,20}[\d.]{1,8}[KMGTP]?B/s +[\d:-]+",
    re.MULTILINE,
)

BBCP = Format("bbcp", "output of bbcp", found_by(_DETECT_BBCP), read_records("bbcp", _bbcp))
ESCP = Format("escp", "output of EScp", found_by(_DETECT_ESCP), read_records("escp", _escp))
SCP = Format("scp", "progress of scp or sftp", found_by(_DETECT_SCP), read_records("scp", _scp))
