"""What iperf 2 prints, client or server, of 2.0 to 2.2; with `-e`, `-i`, `-R`, `-u` and others.

A test is the streams that connect before the first figure comes. Its result is the sum of their
last figures from 0 s on: the `[SUM]` of a server adds up the streams of other clients too. Figures
with a star, and those of connections marked `(reverse)`, are of data from the server. With `-d`
and `-r` each end connects to the other: the ports say which streams are whose. Of UDP only figures
of the receiver count, which say what was lost; a client prints them as "Server Report". Bytes have
prefixes of 1024, bits of 1000. iperf 2 ends with 0 where it could not connect, too: the message
tells. A client that could no longer write prints figures all the same: its test has failed. What
`--bounceback` prints is of round trips, and no transfer. An output that was cut behind the first of
its intervals looks like a whole one without `-i`, and is taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from farline.formats.format import Format
from farline.formats.quantity import NUMBER, other_line, scaled
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, address, line_by_line, moment_us, read_records
from farline.formats.tally import excerpt

_CONNECTS = re.compile(r"Client connecting to (\S+), (TCP|UDP) port (\d+)")
_LISTENS = re.compile(r"Server listening on (TCP|UDP) port (\d+)")
_STREAM = re.compile(
    r"\[ *(\*?)(\d+)\] local (\S+?)(?:%\S+)? port (\d+)"
    r" connected with (\S+?)(?:%\S+)? port (\d+)(.*)"
)
_FIGURES = re.compile(
    rf"\[ *(\*?)(\d+|SUM-\d+)\] +({NUMBER})- *({NUMBER}) +sec +({NUMBER}) ([KMGT]?)Bytes"
    rf" +({NUMBER}) ([KMGT]?)(bits|Bytes)/sec(.*)",
    re.ASCII,
)
_LOST = re.compile(r" ms +-?\d{1,15}/ *\d{1,15} \(")
"""Datagrams that came twice or out of order can make the loss a negative one."""
_RETRIED = re.compile(r" +\d+/\d+ +(\d{1,12}) +-?\d", re.ASCII)
_FAILED = re.compile(
    r"(connect|write|write2|read|bind) failed: (.{1,200})|WARNING: (did not receive ack.*)"
)
_PASSING = ("Interrupted system call", "Resource temporarily unavailable")
"""Why a write failed that says nothing of the connection: a clock may end a test so."""
_CONTROL = re.compile(r"TCP congestion control set to (\S+)")
_BLOCK = re.compile(r"Write buffer size: (\d{1,12}) Byte")
_STARTED = re.compile(r" on (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{3,6})? \(UTC\)")
_BOUNCES = re.compile(r" \(bb[ )]")
_ROUND_TRIPS = "round trips of --bounceback"
_RTT = re.compile(r"icwnd/mss/irtt=\d+/\d+/(\d{1,12})\)")
_OPEN_TESTS = 256
"""Tests of a server that are kept until its output ends; the oldest is closed for a newer one."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """The last figures of one stream in one direction, from 0 s on."""

    seconds: float
    moved: float
    rate_bps: float
    retransmits: int | None


@dataclass
class _Test:
    """The streams that connected together."""

    line: int
    text: str
    is_server: bool
    is_udp: bool
    hosts: tuple[str, str] = ("", "")
    streams: dict[str, bool] = field(default_factory=dict)
    """Number of a stream to whether it is marked as reverse."""
    results: dict[tuple[str, bool], _Figure] = field(default_factory=dict)
    latest: dict[tuple[str, bool], float] = field(default_factory=dict)
    count: int = 0
    """Streams, where only their sum is printed."""
    has_figures: bool = False
    error: str | None = None
    broken: str | None = None
    """Why a client could no longer write, where its figures came after that."""
    bounces: bool = False
    """Whether small messages went to and fro, instead of a transfer."""
    awaits_header: bool = False
    """Whether only an error was told of it, before any header."""
    facts: Row = field(default_factory=dict)

    def rows(self) -> Iterator[Row]:
        """A row for each direction; one that failed where there is no result."""
        ways = sorted({way for _, way in self.results})
        if not ways:
            code = self.error or ("no result of the receiver" if self.is_udp else "no result")
            yield {**self._known(self._is_reverse), "complete": False, "code": code}
        for way in ways:
            yield self._row(way)

    @property
    def is_whole(self) -> bool:
        """Whether its figures look like those of a test that is over."""
        return self.has_figures and all(row.get("complete", True) for row in self.rows())

    @property
    def _is_reverse(self) -> bool:
        return bool(self.streams) and all(self.streams.values())

    def _row(self, way: bool) -> Row:
        if self.broken:
            return {**self._known(way), "complete": False, "code": self.broken}
        keys = [key for key in self.results if key[1] == way]
        if len(keys) > 1:
            keys = [key for key in keys if not key[0].startswith("SUM")]
        results = [self.results[key] for key in keys]
        is_cut = any(self.latest[key] > self.results[key].seconds for key in keys)
        if is_cut or (self.streams and len(keys) < self._expected(keys, way)):
            return {**self._known(way), "complete": False, "code": "no result of all streams"}
        moved, seconds = sum(one.moved for one in results), max(one.seconds for one in results)
        if not moved or not seconds:
            return {**self._known(way), "complete": False, "code": "nothing arrived"}
        retried = [one.retransmits for one in results if one.retransmits is not None]
        return {
            **self._known(way),
            "duration_s": seconds,
            "bytes": round(moved),
            "rate_bps": results[0].rate_bps if len(results) == 1 else moved * 8 / seconds,
            "retransmits": sum(retried) if len(retried) == len(results) else None,
        }

    def _expected(self, keys: list[tuple[str, bool]], way: bool) -> int:
        only_sum = keys[0][0].startswith("SUM")
        return 1 if only_sum else self._count(way)

    def _count(self, way: bool) -> int:
        """How many streams have a direction: its own, or all where they have both."""
        return sum(one == way for one in self.streams.values()) or len(self.streams)

    def _known(self, way: bool) -> Row:
        here, there = (address(name) for name in self.hosts)
        sends = self.is_server == way
        return {
            "modality": "T",
            "transport": "udp" if self.is_udp else "tcp",
            "streams": self._count(way) or self.count or None,
            "from_host": here if sends else there,
            "to_host": there if sends else here,
            **self.facts,
        }


class _Printed:
    """The tests of an output, line by line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._tests: list[_Test] = []
        self._of_stream: dict[str, _Test] = {}
        self._is_server = False
        self._is_udp = False
        # Ports that it listened on and connected to.
        self._listened: set[str] = set()
        self._connected: set[str] = set()
        self._has_header = False
        # What a header says of a test whose streams come after it.
        self._facts: Row = {}
        # Why a client could not write: of the test whose figures come next.
        self._broken: str | None = None

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives tests that end by it."""
        if match := _FIGURES.search(line):
            self._figures(number, line, match)
        elif match := _STREAM.search(line):
            yield from self._stream(number, line, match)
        elif match := _LISTENS.search(line):
            yield from self.end()
            self._is_server, self._is_udp, self._facts = True, match[1] == "UDP", {}
            self._listened.add(match[2])
            self._reading.skip("message")
        elif match := _CONNECTS.search(line):
            yield from self._header(match)
        elif match := _FAILED.search(line):
            self._failed(number, line, match)
        elif not self._fact(line):
            other_line(self._reading, number, line)

    def end(self) -> Iterator[Record]:
        """The tests that are open."""
        tests, self._tests, self._of_stream = self._tests, [], {}
        self._has_header = False
        if not all(test.is_whole for test in tests):
            self._broken = None
        for test in tests:
            yield from self._records(test)

    def _header(self, match: re.Match[str]) -> Iterator[Record]:
        # A client's header may be printed after its first stream; a server's `-d` prints one, too.
        self._reading.skip("message")
        self._connected.add(match[3])
        if self._is_server:
            return
        last = self._tests[-1] if self._tests else None
        if last is not None and last.awaits_header:
            last.awaits_header = False
        elif last is not None and (last.has_figures or last.error):
            yield from self.end()
        self._has_header = True
        self._is_udp = match[2] == "UDP"
        if self._tests:
            self._tests[-1].is_udp = self._is_udp
        else:
            self._facts = {}

    def _stream(self, number: int, line: str, match: re.Match[str]) -> Iterator[Record]:
        star, stream, local, local_port, remote, remote_port, more = match.groups()
        test = self._tests[-1] if self._tests else None
        if test is None or test.has_figures or (test.hosts[1] and test.hosts[1] != remote):
            if test is not None and not self._is_server:
                yield from self.end()
            test = _Test(number, line, self._is_server, self._is_udp, facts=dict(self._facts))
            self._facts = {}
            self._tests.append(test)
            if len(self._tests) > _OPEN_TESTS:
                yield from self._records(self._tests.pop(0))
        else:
            self._reading.skip("message")
        test.bounces = test.bounces or bool(_BOUNCES.search(more))
        if not test.error:
            test.hosts = test.hosts if test.hosts[0] else (local, remote)
        # What a server connects to is of a test in both directions, and so is a client's server.
        back = remote_port in self._connected and local_port not in self._listened
        test.streams[stream] = bool(star) or "(reverse)" in more or (test.is_server and back)
        self._of_stream[stream] = test
        if (rtt := _RTT.search(more)) and int(rtt[1]):
            test.facts["rtt_ms"] = min(int(rtt[1]) / 1000, test.facts.get("rtt_ms", float("inf")))
        if started := _STARTED.search(more):
            text = started[1] + (started[2] or ".0")
            moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
            test.facts.setdefault("started_at", moment_us(moment))

    def _figures(self, number: int, line: str, match: re.Match[str]) -> None:
        star, stream, start, end = match.group(1, 2, 3, 4)
        test = self._of_stream.get(stream, self._tests[-1] if self._tests else None)
        self._reading.skip("message")
        if test is None:
            # With --sum-only no stream is named.
            if not stream.startswith("SUM-"):
                return
            test = _Test(number, line, self._is_server, self._is_udp, facts=dict(self._facts))
            self._tests.append(test)
            test.count = int(stream[4:])
        test.has_figures = True
        lost = _LOST.search(match[10])
        if test.is_udp and lost is None:
            return
        broken, self._broken = self._broken, None
        if not test.is_udp:
            test.broken = test.broken or broken
        # How many streams a sum is of may change from line to line.
        name = "SUM" if stream.startswith("SUM-") else stream
        key = (name, bool(star) or test.streams.get(stream, test._is_reverse))
        until = float(end.replace(",", "."))
        test.latest[key] = max(until, test.latest.get(key, 0.0))
        if float(start.replace(",", ".")) == 0:
            test.results[key] = _figure(match, until)

    def _fact(self, line: str) -> bool:
        facts = (
            self._tests[-1].facts
            if self._tests and not self._tests[-1].has_figures
            else self._facts
        )
        if match := _CONTROL.search(line):
            facts["congestion_control"] = match[1]
        elif match := _BLOCK.search(line):
            facts["block_bytes"] = int(match[1]) or None
        else:
            return False
        self._reading.skip("message")
        return True

    def _failed(self, number: int, line: str, match: re.Match[str]) -> None:
        self._reading.skip("message")
        if self._is_server:
            return
        why = excerpt(match[2] or match[3])
        if match[1] in ("write", "write2") and not match[2].startswith(_PASSING):
            self._broken = why
        if not self._tests:
            # Into a file it is written before the header of its test.
            test = _Test(number, line, False, self._is_udp, facts=dict(self._facts))
            test.awaits_header = not self._has_header
            self._tests.append(test)
        test = self._tests[-1]
        test.error = test.error or why

    def _records(self, test: _Test) -> Iterator[Record]:
        if test.bounces:
            self._reading.skip(_ROUND_TRIPS)
            return
        for row in test.rows():
            yield Record(test.line, test.text, row)


def _figure(match: re.Match[str], seconds: float) -> _Figure:
    in_bytes = match[9] == "Bytes"
    retried = _RETRIED.match(match[10])
    return _Figure(
        seconds,
        scaled(match[5], match[6], 1024),
        scaled(match[7], match[8], 1024 if in_bytes else 1000) * (8 if in_bytes else 1),
        int(retried[1]) if retried else None,
    )


_DETECT = re.compile(
    r"^.{0,200}?(?:Client connecting to \S+, (?:TCP|UDP) port \d"
    r"|Server listening on (?:TCP|UDP) port \d"
    r"|\[ *\d+\] local \S+ port \d+ connected with \S+ port \d)",
    re.MULTILINE,
)


def _detect(start: str) -> bool:
    return start.lstrip()[:1] not in ("{", "") and bool(_DETECT.search(start))


FORMAT = Format(
    "iperf2",
    "output of iperf 2",
    _detect,
    read_records("iperf2", line_by_line(_Printed)),
    version=3,
)
