"""What globus-url-copy prints: `-vb` rate lines, and with `-dbg` the markers of the server.

With `-dbg` a copy has performance markers (bytes of each stripe at a time) and the server's last
word, and its rate is that between the first and the last marker. `-vb` alone gives averages that
are updated every few seconds: the last update is what there is, and it may be from before the
end; a short copy has none, and is no transfer here. MB are 2**20 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.ingest.format import Format
from farline.ingest.reading import Reading
from farline.ingest.rows import Record, Row, address, tables
from farline.ingest.tally import excerpt

if TYPE_CHECKING:
    import pyarrow as pa

_RATE = re.compile(r"\s*(\d{1,18}) bytes\s+(\d{1,9}\.\d+) MB/sec avg", re.ASCII)
_START = re.compile(r"debug: starting to transfer (\S+) to (\S+)")
_SIDE = re.compile(r"(Source|Dest):\s+(\S+)")
_FILES = re.compile(r"  (.+?)  ->  (.+)")
_URL = re.compile(r"(\w+)://(?:[^/@]*@)?(\[[^\]]*\]|[^/:]*)(?::\d+)?(/.*)?")
_PARALLEL = re.compile(r"OPTS RETR .*?Parallelism=(\d{1,6})", re.ASCII)
_STAMP = re.compile(r"\s*Timestamp:\s+(\d{1,10}(?:\.\d{1,6})?)\s*", re.ASCII)
_STRIPE = re.compile(r"\s*Stripe Index: (\d{1,6})\s*", re.ASCII)
_MOVED = re.compile(r"\s*Stripe Bytes Transferred: (\d{1,18})\s*", re.ASCII)
_STRIPES = re.compile(r"\s*Total Stripe Count: (\d{1,6})\s*", re.ASCII)
_ERROR = re.compile(r"(?:debug: fault on connection|error: )(.*)")
_DONE = "debug: operation complete"
_DEVICES = ("/dev/zero", "/dev/null")
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")


@dataclass
class _Copy:
    """One copy, as far as it has been told."""

    line: int
    text: str
    source: str
    dest: str
    debug: bool
    streams: int | None = None
    stripes: int | None = None
    rate: tuple[int, float] | None = None
    error: str | None = None
    complete: bool = False
    stripe: int = 0
    first_s: float | None = None
    last_s: float | None = None
    first_bytes: dict[int, int] = field(default_factory=dict)
    last_bytes: dict[int, int] = field(default_factory=dict)

    def row(self) -> Row | None:
        """What the copy came to; None where nothing says how fast it was."""
        row: Row = {
            **self._ends(),
            "streams": self.streams and self.streams * (self.stripes or 1),
            "parallelism": self.streams,
            "stripes": self.stripes,
            "files": 1,
        }
        if self.error is not None:
            return {**row, "complete": False, "code": self.error}
        moved = sum(self.last_bytes.values()) - sum(self.first_bytes.values())
        if self.first_s is not None and self.last_s is not None and self.last_s > self.first_s:
            return {
                **row,
                "started_at": round(self.first_s * 1e6),
                "duration_s": self.last_s - self.first_s,
                "bytes": moved,
                "complete": self.complete,
                "code": "226" if self.complete else "no end",
            }
        if self.rate is None:
            return None
        moved, rate_mb = self.rate
        rate_bps = rate_mb * (1 << 20) * 8
        took_s = moved * 8 / rate_bps if rate_bps else None
        return {**row, "duration_s": took_s, "bytes": moved, "rate_bps": rate_bps, "code": "avg"}

    def _ends(self) -> Row:
        (here, here_path), (there, there_path) = _split(self.source), _split(self.dest)
        memory = here_path in _DEVICES and there_path in _DEVICES
        return {"modality": "T" if memory else "E", "from_host": here, "to_host": there}

    def mark(self, line: str) -> bool:
        """Takes a line of a marker in; False if it is none."""
        if match := _STAMP.fullmatch(line):
            self.last_s = float(match[1])
            self.first_s = self.last_s if self.first_s is None else self.first_s
        elif match := _STRIPE.fullmatch(line):
            self.stripe = int(match[1])
        elif match := _MOVED.fullmatch(line):
            self.last_bytes[self.stripe] = int(match[1])
            # A stripe that is told of later had moved nothing at the first marker.
            first = int(match[1]) if self.last_s == self.first_s else 0
            self.first_bytes.setdefault(self.stripe, first)
        elif match := _STRIPES.fullmatch(line):
            self.stripes = int(match[1]) or None
        else:
            return False
        return True


def _split(url: str) -> tuple[str | None, str]:
    match = _URL.fullmatch(url)
    if match is None:
        return None, url
    host = None if match[1] == "file" else address(match[2].strip("[]"))
    return host, re.sub(r"/+", "/", match[3] or "")


class _Printed:
    """The copies of an output, line by line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._copy: _Copy | None = None
        self._sides = {"Source": "", "Dest": ""}

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the copy that ends by it."""
        copy = self._copy
        if match := _START.match(line):
            yield from self.end()
            self._copy = _Copy(number, line, match[1], match[2], debug=True)
        elif match := _FILES.fullmatch(line):
            if copy is None or not copy.debug:
                yield from self.end()
                source, dest = self._sides["Source"] + match[1], self._sides["Dest"] + match[2]
                self._copy = _Copy(number, line, source, dest, debug=False)
        elif match := _SIDE.match(line):
            self._sides[match[1]] = match[2]
        elif line.startswith(_DONE):
            if copy is None:
                self._reading.malformed(number, line, "the end of a copy that has no start")
            yield from self.end()
        elif copy is not None and self._heard(copy, line):
            return
        elif _NO_TEXT.search(line):
            self._reading.malformed(number, line, "no text")
        else:
            self._reading.skip("message")

    def _heard(self, copy: _Copy, line: str) -> bool:
        """Whether the line says something of the copy."""
        if match := _RATE.match(line):
            copy.rate = int(match[1]), float(match[2])
        elif match := _PARALLEL.match(line):
            copy.streams = int(match[1]) or None
        elif match := _ERROR.match(line):
            copy.error = excerpt(match[1]) or "error"
        elif line.startswith("226 "):
            copy.complete = True
        else:
            return copy.mark(line)
        return True

    def end(self) -> Iterator[Record]:
        """The copy that was going on, which has ended or was cut."""
        copy, self._copy = self._copy, None
        if copy is None:
            return
        row = copy.row()
        if row is None:
            self._reading.skip("copy without a rate")
        else:
            yield Record(copy.line, copy.text, row)


def _records(reading: Reading) -> Iterator[Record]:
    printed = _Printed(reading)
    for number, line in reading.lines():
        yield from printed.take(number, line)
    yield from printed.end()


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of an output."""
    return tables(reading, "globus-url-copy", _records(reading))


_DETECT = re.compile(r"^(?:Source: \S+\nDest: |debug: starting to transfer )", re.MULTILINE)

FORMAT = Format(
    "globus-url-copy",
    "output of globus-url-copy (-vb, -dbg)",
    lambda start: bool(_DETECT.search(start)),
    read,
)
