"""What globus-url-copy prints: `-vb` rate lines, and with `-dbg` the markers of the server.

With `-dbg` a copy has performance markers (bytes of each stripe at a time) and the server's last
word, and its rate is that between the first and the last marker. `-vb` alone gives averages that
are updated every few seconds: the last update is what there is, and it may be from before the
end; a short copy has none, and is no transfer here. MB are 2**20 bytes.

A name stands alone where both ends have the same one, `A  ->  B` where not, below a `Source:` and
a `Dest:` of its own. The two outputs may be mixed in one file, in any order: a copy that both
tell of is one. Copies that go on at the same time (`-cc`) write lines that do not say whose they
are: these copies are counted, and none of them is a transfer here.

Errors go another way than names and rates, and into a file before these: an error that no copy
stands before, or that the next copy follows at once, is of that one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.formats.format import Format, found_by
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, address, line_by_line, read_records
from farline.formats.tally import excerpt

if TYPE_CHECKING:
    pass

_RATE = re.compile(r"\s*(\d{1,18}) bytes\s+(\d{1,9}\.\d+) MB/sec avg", re.ASCII)
_START = re.compile(r"debug: starting to (transfer|get|put|[a-z ]+?) (\w+://\S+)(?: to (\S+))?")
_COPYING = ("transfer", "get", "put")
_SIDE = re.compile(r"(Source|Dest):\s+(\S+)")
_NAMES = re.compile(r"  (\S.*?)(?:  ->  (\S.*))?")
_URL = re.compile(r"(\w+)://(?:[^/@]*@)?(\[[^\]]*\]|[^/:]*)(?::\d+)?(/.*)?")
_PARALLEL = re.compile(r"OPTS RETR .*?Parallelism=(\d{1,6})", re.ASCII)
_STAMP = re.compile(r"\s*Timestamp:\s+(\d{1,10}(?:\.\d{1,6})?)\s*", re.ASCII)
_STRIPE = re.compile(r"\s*Stripe Index: (\d{1,6})\s*", re.ASCII)
_MOVED = re.compile(r"\s*Stripe Bytes Transferred: (\d{1,18})\s*", re.ASCII)
_STRIPES = re.compile(r"\s*Total Stripe Count: (\d{1,6})\s*", re.ASCII)
_FAULT = re.compile(r"debug: fault on connection(.*)")
_ERROR = re.compile(r"(continuing on )?error: (.*)")
_SUM_OF_ERRORS = "There was an error with "
_CANCELLED = "Cancelling copy..."
_COMMAND = re.compile(r".*globus-url-copy .*|\S*[$#>] .*")
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
    mixed: bool = False
    """Whether lines of another copy may stand among its own."""
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

    def is_of(self, source: str, dest: str) -> bool:
        """Whether it goes from `source` to `dest`; an end that is empty is not known."""
        ends = ((self.source, source), (self.dest, dest))
        return all(own == other or not own or not other for own, other in ends)

    def update(self, moved: int, rate_mb: float) -> None:
        """Takes an average in; what is less than before is another copy's."""
        if self.rate is not None and moved < self.rate[0]:
            self.mixed = True
        self.rate = moved, rate_mb

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
        # The copy that rates belong to: the one that was named last.
        self._named: _Copy | None = None
        self._sides = {"Source": "", "Dest": ""}
        self._name_is_next = False
        # Operations that `-dbg` told of and that have not ended, and copies that it told of.
        self._running = 0
        self._told: Counter[tuple[str, str]] = Counter()
        # Errors of copies that are to come, and whether the last one may be of the next copy.
        self._early: list[tuple[int, str, str]] = []
        self._latest: tuple[int, str, str] | None = None
        self._fault_told = False

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the copy that ends by it."""
        named, self._name_is_next = self._name_is_next, False
        if match := _SIDE.match(line):
            yield from self._side(match)
        elif named and (match := _NAMES.fullmatch(line)):
            self._name(number, line, match)
        elif match := _ERROR.match(line):
            self._error(number, line, match)
        elif match := _START.match(line):
            yield from self._start(number, line, match)
        elif line.startswith(_DONE):
            yield from self._done(number, line)
        elif self._heard(line):
            return
        elif _NO_TEXT.search(line):
            self._reading.malformed(number, line, "no text")
        else:
            if _COMMAND.fullmatch(line):
                self._latest = None
            self._reading.skip("message")

    def _error(self, number: int, line: str, match: re.Match[str]) -> None:
        told = number, line, excerpt(match[2]) or "error"
        copy = self._copy
        if self._fault_told or match[2].startswith(_SUM_OF_ERRORS):
            self._fault_told = False
        elif copy is None:
            self._early.append(told)
        elif copy.error is None:
            copy.error = told[2]
            self._latest = None if match[1] or copy.debug else told
        self._reading.skip("message")

    def _side(self, match: re.Match[str]) -> Iterator[Record]:
        latest, self._latest = self._latest, None
        if latest is not None and self._copy is not None:
            self._copy.error = None
        if self._copy is not None and not self._copy.debug:
            yield from self._end()
        if latest is not None:
            self._early.append(latest)
        self._named = None
        self._sides[match[1]] = match[2]
        self._name_is_next = match[1] == "Dest"

    def _name(self, number: int, line: str, match: re.Match[str]) -> None:
        """The name of what is copied: by `-dbg` it may have started, or even ended, already."""
        source, dest = self._sides["Source"], self._sides["Dest"]
        source, dest = source + match[1], dest + (match[2] or match[1])
        if self._copy is not None:
            self._named = self._copy if self._copy.is_of(source, dest) else None
            if self._named is not None:
                # Of a get or a put `-dbg` names one end only.
                self._named.source, self._named.dest = source, dest
        elif self._told[source, dest]:
            self._told[source, dest] -= 1
        elif not match[1].endswith("/"):
            self._copy = self._named = _Copy(number, line, source, dest, debug=False)
            return
        self._reading.skip("message")

    def _start(self, number: int, line: str, match: re.Match[str]) -> Iterator[Record]:
        kind, copy = match[1], self._copy
        self._running += 1
        alone = self._running == 1
        if copy is not None and copy.debug:
            copy.mixed = True
        if kind not in _COPYING:
            self._reading.skip("message")
            return
        source = match[2] if kind != "put" else ""
        dest = (match[3] or "") if kind == "transfer" else match[2] if kind == "put" else ""
        if copy is not None and not copy.debug and copy.is_of(source, dest):
            copy.debug, copy.mixed = True, not alone
            return
        yield from self._end()
        self._copy = _Copy(number, line, source, dest, debug=True, mixed=not alone)

    def _done(self, number: int, line: str) -> Iterator[Record]:
        if not self._running:
            self._reading.malformed(number, line, "the end of a copy without a start")
            return
        self._running -= 1
        if self._copy is not None and self._copy.debug:
            if self._named is None:
                self._told[self._copy.source, self._copy.dest] += 1
            yield from self._end()
        else:
            self._reading.skip("message")

    def _heard(self, line: str) -> bool:
        """Whether the line says something of a copy that goes on."""
        copy = self._copy
        if match := _RATE.match(line):
            if self._named is None:
                return False
            self._named.update(int(match[1]), float(match[2]))
        elif copy is None:
            return False
        elif match := _PARALLEL.match(line):
            copy.streams = int(match[1]) or None
        elif match := _FAULT.match(line):
            copy.error = excerpt(match[1]) or "error"
        elif line.startswith(_CANCELLED):
            copy.error = "cancelled"
        elif line.startswith("226 "):
            copy.complete = True
        else:
            return copy.mark(line)
        return True

    def end(self) -> Iterator[Record]:
        """The end of the log."""
        yield from self._end()
        for number, line, why in self._early:
            yield Record(number, line, {"modality": "E", "complete": False, "code": why})

    def _end(self) -> Iterator[Record]:
        """The copy that was going on, which has ended or was cut."""
        copy, self._copy, self._named = self._copy, None, None
        if copy is None:
            return
        self._latest = None
        self._fault_told = copy.debug and copy.error is not None
        if self._early and not copy.debug and copy.error is None:
            copy.error = self._early.pop(0)[2]
        row = copy.row()
        if copy.mixed:
            self._reading.skip("copy among others at the same time")
        elif row is None:
            self._reading.skip("copy without a rate")
        else:
            yield Record(copy.line, copy.text, row)


_DETECT = re.compile(r"^(?:Source: \S+\s+Dest: |debug: starting to )", re.MULTILINE)

FORMAT = Format(
    "globus-url-copy",
    "output of globus-url-copy (-vb, -dbg)",
    found_by(_DETECT),
    read_records("globus-url-copy", line_by_line(_Printed)),
    version=3,
)
