"""Output of XDD: copies between two hosts (`-e2e`), modality E, and file systems, modality F.

The columns are found by their names. The line `COMBINED` is what all passes and queues of a
target came to; bandwidths are of 10**6 bytes, and bytes over seconds say the same.
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

_BEGINS = re.compile(r"Starting time for this run|.*XDD version ")
_ENDS = re.compile(r"\s*This run terminated (normally|with errors)|xdd: xdd_signal_handler")
_COMBINED = re.compile(r"\s*COMBINED\s+.*")
_NETWORK = ("End-to-End ACTIVE", "Socket connection error")
_NEEDED = ("Bytes_Xfered", "Elapsed")


class _Run:
    """What a run said so far."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.network = False
        self.lines: list[tuple[int, str, Row]] = []
        self.began: tuple[int, str] | None = None

    def combined(self, line: str) -> Row | None:
        """The row of a line of results; None if it is cut or no header is above it."""
        cells = dict(zip(self.columns, line.split(), strict=False))
        if len(line.split()) != len(self.columns) or not all(name in cells for name in _NEEDED):
            return None
        try:
            moved, seconds = int(cells["Bytes_Xfered"]), float(cells["Elapsed"])
            queue = int(cells.get("Queue", "0"))
            block = int(cells.get("Xfer_Size", "0"))
        except ValueError:
            return None
        return {
            "modality": "E" if self.network else "F",
            "bytes": moved,
            "duration_s": seconds,
            "code": cells.get("Op_Type"),
            "streams": (queue or None) if self.network else None,
            "concurrency": None if self.network else queue or None,
            "block_bytes": block or None,
        }


def _records(reading: Reading) -> Iterator[Record]:
    run = _Run()
    for number, line in reading.lines():
        cells = line.split()
        if _BEGINS.match(line):
            if run.lines:
                yield from _ended(run, "no end")
                run = _Run()
            run.began = run.began or (number, line)
            reading.skip("message")
        elif cells[:2] == ["What", "Pass"]:
            run.columns = cells
            reading.skip("message")
        elif _COMBINED.fullmatch(line):
            row = run.combined(line)
            if row is None:
                reading.malformed(number, line, "not an XDD result line: columns do not match")
            else:
                run.lines.append((number, line, row))
        elif match := _ENDS.match(line):
            yield from _ended(run, None if match[1] == "normally" else "terminated with errors")
            run = _Run()
            reading.skip("message")
        else:
            run.network = run.network or any(said in line for said in _NETWORK)
            other_line(reading, number, line)
    yield from _ended(run, "no end")


def _ended(run: _Run, failure: str | None) -> Iterator[Record]:
    for number, line, row in run.lines:
        yield Record(
            number, line, row if failure is None else {**row, "complete": False, "code": failure}
        )
    if not run.lines and failure is not None and run.began is not None:
        kind = "E" if run.network else "F"
        yield Record(*run.began, {"modality": kind, "complete": False, "code": failure})


_DETECT = re.compile(
    r"XDD version |^[ \t]*What[ \t]+Pass[ \t]+Target[ \t]+Queue[ \t]+Bytes_Xfered", re.MULTILINE
)

FORMAT = Format("xdd", "output of XDD", found_by(_DETECT), read_records("xdd", _records))
