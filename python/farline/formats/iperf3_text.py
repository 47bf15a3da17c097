"""What iperf3 prints without `--json`, client or server, of all versions.

A test begins where a client connects or a server accepts, and has its summary behind the second
header: lines for each stream, and `[SUM]` of several, of the sender and of the receiver. The rate
is the receiver's; a server that sent knows only its own. Bytes have prefixes of 1024, bits of
1000. `--title` and `--timestamps` put a text before each line; titles tell tests apart that ran at
the same time. What `--get-server-output` adds is left out: it is the same test again.

A test that was interrupted has a summary, too. That end says so, but from 3.2 on into a file
before what it had still to print: the message may be of the test behind it. The other end prints
its last interval twice; with `-i 0` it has none, and its message counts (`the client has
terminated`), which stands behind the test, or before all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from farline.formats.format import Format
from farline.formats.quantity import NUMBER, other_line, scaled
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, address, line_by_line, moment_us, read_records
from farline.formats.tally import excerpt

if TYPE_CHECKING:
    pass

_TITLE = re.compile(r"(.{1,200}?):  (?=\[|Connecting|Accepted|Server|iperf|Reverse|- -|---)")
_CONNECTS = re.compile(r"Connecting to host (\S+), port \d+")
_ACCEPTS = re.compile(r"Accepted connection from (\S+), port \d+")
_ENDS = re.compile(r"iperf Done\.|Server listening on \d+(?: \(test #(\d+)\))?")
# What `--timestamps` puts before titles, as far as it is like what most people ask for.
_CLOCK = re.compile(
    r"\[?(?:[A-Z][a-z]{2},? )?(?:[A-Z][a-z]{2} {1,2}\d{1,2} |\d{1,2} [A-Z][a-z]{2} (?:\d{4} )?"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: [AP]M)?"
    r"(?:Z| ?[+-]\d\d:?\d\d| [A-Z]{3,4})?(?: \d{4})?\]? +|\d{10}(?:\.\d{1,9})? +",
    re.ASCII,
)
_LOCAL = re.compile(r"\[ *\d+\] local (\S+) port \d+ connected to (\S+) port \d+")
_HEADER = re.compile(r"\[ ID\](?:\[Role\])? +Interval +Transfer +(?:Bitrate|Bandwidth)(.*)")
_FIGURES = re.compile(
    rf"\[ *(\d+|SUM)\](?:\[([TR]X)-[CS]\])? +({NUMBER})-({NUMBER}) +sec +({NUMBER}) ([KMGT]?)Bytes"
    rf" +({NUMBER}) ([KMGT]?)(bits|Bytes)/sec(.*)",
    re.ASCII,
)
_LOST = re.compile(r"(\d+)/(\d+) \(")
_RETRANS = re.compile(r" +(\d{1,12})\s", re.ASCII)
_LEFT = re.compile(r"iperf3?: the client has terminated")
_FAILED = re.compile(r"iperf3?: (?:error - |interrupt - )(.*)")
_TIME = re.compile(r"Time: \w{3}, (\d\d \w{3} \d{4} \d\d:\d\d:\d\d) (?:GMT|UTC)")
_ASKED = re.compile(r"Starting Test: protocol: (\w+), (\d+) streams?, (\d+) byte blocks")
_CONTROL = re.compile(r"snd_tcp_congestion (\S+)")


@dataclass(frozen=True, slots=True)
class _Summary:
    """One line of a summary."""

    stream: str
    way: str
    end: str
    seconds: float
    moved: float
    rate_bps: float | None
    """None where it was rounded more than bytes and seconds are, as `-f g` does."""
    retransmits: int | None
    arrived: float | None


@dataclass
class _Test:
    """One test, as far as it has been told."""

    line: int
    text: str
    is_server: bool
    peer: str | None
    ends: tuple[str | None, str | None] = (None, None)
    connections: int = 0
    reverse: bool = False
    headers: int = 0
    udp: bool = False
    summaries: list[_Summary] = field(default_factory=list)
    intervals: dict[str, str] = field(default_factory=dict)
    """The latest of each stream and direction."""
    moved: dict[str, float] = field(default_factory=dict)
    """What the intervals of each stream and direction add up to."""
    is_cut: bool = False
    """Whether the other end terminated the test."""
    is_left: bool = False
    """Whether a message says so; it counts where there are no intervals to tell."""
    in_order: bool = False
    """Whether it is of a version before 3.2, which has its messages in order."""
    facts: Row = field(default_factory=dict)
    error: str | None = None
    presumed: str | None = None
    """A message that stood before the test and is of it, unless it ends as tests do."""

    def goes_on(self, numbered: bool) -> bool:
        """Whether what listens behind its error is the same server, which had ended the test."""
        if self.error is None or not self.summaries:
            return False
        return numbered or ("server has terminated" in self.error and not self.in_order)

    def rows(self) -> list[Row]:
        """A row for each direction."""
        ways = list(dict.fromkeys(one.way for one in self.summaries))
        is_cut = self.is_cut or (self.is_left and not self.intervals)
        if is_cut or self.error is not None or not ways:
            code = self.error or ("the other end has terminated" if is_cut else "no result")
            return [{"modality": "T", "complete": False, "code": code, **self._hosts("", None)}]
        return [self._row(way, [one for one in self.summaries if one.way == way]) for way in ways]

    def _row(self, way: str, lines: list[_Summary]) -> Row:
        streams = {one.stream for one in lines} - {"SUM"}
        expected = self.connections // 2 if way else self.connections
        wanted = "SUM" if max(expected, len(streams)) > 1 else next(iter(streams), "SUM")
        told = {one.end: one for one in lines if one.stream == wanted}
        row: Row = {
            "modality": "T",
            "transport": "udp" if self.udp else "tcp",
            "streams": len(streams) or None,
            **self.facts,
            **self._hosts(way, told),
        }
        best = told.get("receiver") or told.get("")
        if self.is_server and (best is None or not best.moved):
            best = told.get("sender", best)
        if best is None:
            return {**row, "complete": False, "code": "no result of all streams at the receiver"}
        summed = self.moved.get(f"{wanted} {way}") if self.is_server and best.arrived else None
        if not best.moved and summed:
            # Servers of 3.1 say of UDP how much was lost, and 0 of what they received.
            return {**row, "duration_s": best.seconds, "bytes": round(summed)}
        if not best.moved:
            return {**row, "complete": False, "code": "nothing arrived"}
        arrived = 1.0 if best.arrived is None or best.end else best.arrived
        sender = told.get("sender")
        return {
            **row,
            "duration_s": best.seconds,
            "bytes": round(best.moved * arrived),
            "rate_bps": None if best.rate_bps is None else best.rate_bps * arrived,
            "retransmits": None if self.udp or sender is None else sender.retransmits,
        }

    def _hosts(self, way: str, told: dict[str, _Summary] | None) -> Row:
        local, remote = self.ends[0], self.ends[1] or self.peer
        sends: bool | None = way == "TX" if way else self.reverse == self.is_server
        if self.is_server and not way:
            # A server is not told of `--reverse`: its own end stands in its summary.
            # Before 3.7 both ends stand there, and the other one has nothing.
            ends = {end for end, one in (told or {}).items() if one.moved}
            sends = "sender" in ends if len(ends) == 1 else None
        if sends is None:
            return {}
        here, there = address(local), address(remote)
        return {"from_host": here if sends else there, "to_host": there if sends else here}


class _Printed:
    """The tests of an output, line by line; of each title one goes on."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._tests: dict[str, _Test] = {}
        # What stands before a test of it, and titles whose lines are the other end's.
        self._facts: dict[str, Row] = {}
        self._other_end: set[str] = set()
        # What a message says of the next test, and how often a server has listened since.
        self._presumed: str | None = None
        self._listens = 0
        # Whether clients' ends are told before their tests, and whether the next one has ended so.
        self._tells_early = self._next_left = False

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the tests that end by it."""
        titled = _TITLE.match(line)
        title = _CLOCK.sub("", titled[1], count=1) if titled else ""
        connects = _CONNECTS.search(line)
        if title in self._other_end and not connects and "iperf Done." not in line:
            self._reading.skip("the other end's output")
        elif match := connects or _ACCEPTS.search(line):
            yield from self._end(title)
            facts = self._facts.pop(title, {})
            self._tests[title] = _Test(
                number,
                line,
                is_server=connects is None,
                peer=match[1],
                facts=facts,
                presumed=self._presumed,
                is_left=self._next_left,
            )
            self._presumed, self._listens, self._next_left = None, 0, False
        elif "Server output:" in line:
            yield from self._end(title, is_over=True)
            self._other_end.add(title)
            self._reading.skip("message")
        elif match := _ENDS.search(line):
            yield from self._over(title, match)
            self._reading.skip("message")
        elif match := _FAILED.search(line):
            yield from self._failed(number, line, title, excerpt(match[1]) or "error")
        elif _LEFT.search(line):
            self._left(title)
        elif (match := _TIME.search(line)) and self._tests.get(title) is None:
            self._facts[title] = _started(match)
            self._reading.skip("message")
        elif (test := self._tests.get(title)) is None or not _take(test, line):
            other_line(self._reading, number, line)

    def _over(self, title: str, match: re.Match[str]) -> Iterator[Record]:
        """A client is done, or a server listens: again, or for the first time."""
        test, again = self._tests.get(title), int(match[1] or 2) > 1
        listens, numbered = "Server" in match[0], bool(match[1])
        if listens:
            self._listens += 1
            if self._listens > 1:
                self._presumed = None
        if test is not None and listens and again and test.goes_on(numbered):
            # A server that goes on was not ended in this test, but in the next one or after it.
            self._presumed, test.error = test.error, None
            self._listens = 1
        if test is not None and test.presumed and listens and not numbered:
            # What listens now was started anew, as nothing numbers its tests.
            again = False
        yield from self._end(title, is_over=again)

    def _whose(self, title: str) -> str:
        """The title of the test that a message is of, which may come without."""
        return next(iter(self._tests)) if not title and len(self._tests) == 1 else title

    def _left(self, title: str) -> None:
        """A client has terminated; where its test is not told yet, it is the next one."""
        test = self._tests.get(self._whose(title))
        if test is None or self._tells_early:
            self._tells_early = self._next_left = True
        else:
            test.is_left = True
        self._reading.skip("message")

    def _failed(self, number: int, line: str, title: str, why: str) -> Iterator[Record]:
        title = self._whose(title)
        test = self._tests.get(title)
        if test is not None and not test.error and not test.presumed:
            test.error = why
        elif "interrupt" in line:
            # Its test may stand behind it. A server that listens in vain has none.
            yield from self._end(title)
            self._presumed = why if not self._listens or "client" in why else None
            self._reading.skip("message")
        elif test is not None:
            test.error = why
        else:
            yield Record(number, line, {"modality": "T", "complete": False, "code": why})

    def _end(self, title: str, *, is_over: bool = False) -> Iterator[Record]:
        """The test of a title has ended, or was cut unless it `is_over` as tests are."""
        test = self._tests.pop(title, None)
        self._other_end.discard(title)
        if test is not None:
            if not is_over or not test.summaries:
                test.error = test.error or test.presumed
            for row in test.rows():
                yield Record(test.line, test.text, row)

    def end(self) -> Iterator[Record]:
        """The tests that were going on."""
        for title in list(self._tests):
            yield from self._end(title)


def _started(match: re.Match[str]) -> Row:
    try:
        moment = datetime.strptime(match[1], "%d %b %Y %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return {}
    return {"started_at": moment_us(moment)}


def _take(test: _Test, line: str) -> bool:
    """Whether the line says something of the test."""
    if match := _FIGURES.search(line):
        _take_figures(test, match)
    elif match := _HEADER.search(line):
        test.headers += 1
        test.in_order = "Bandwidth" in match[0]
        test.udp = test.udp or "Datagrams" in match[1]
    elif match := _LOCAL.search(line):
        test.connections += 1
        test.ends = test.ends if test.ends[0] else (match[1], match[2])
    elif "Reverse mode, remote host" in line:
        test.reverse = True
    elif match := _TIME.search(line):
        test.facts |= _started(match)
    elif match := _ASKED.search(line):
        test.facts["block_bytes"] = int(match[3]) or None
        test.udp = match[1].upper() == "UDP"
    elif match := _CONTROL.search(line):
        test.facts["congestion_control"] = match[1]
    else:
        return False
    return True


def _take_figures(test: _Test, match: re.Match[str]) -> None:
    """Takes a line of the summary in; those before it are intervals."""
    more = match[10]
    end = next((word for word in ("sender", "receiver") if more.rstrip().endswith(word)), "")
    lost = _LOST.search(more)
    # UDP before 3.6 has one line for each stream, behind the second header, and no word.
    if "omitted" in more:
        return
    if not (end or (test.headers > 1 and lost)):
        stream, interval = f"{match[1]} {match[2] or ''}", f"{match[3]}-{match[4]}"
        test.is_cut = test.is_cut or test.intervals.get(stream) == interval
        test.intervals[stream] = interval
        test.moved[stream] = test.moved.get(stream, 0.0) + scaled(match[5], match[6], 1024)
        return
    in_bytes = match[9] == "Bytes"
    rate = scaled(match[7], match[8], 1024 if in_bytes else 1000) * (8 if in_bytes else 1)
    is_rounded = len(re.sub(r"[.,]", "", match[7]).lstrip("0")) < 3
    retransmits = None if lost else _RETRANS.match(more)
    arrived = 1 - int(lost[1]) / int(lost[2]) if lost and int(lost[2]) else None
    test.udp = test.udp or lost is not None
    seconds = float(match[4].replace(",", ".")) - float(match[3].replace(",", "."))
    test.summaries.append(
        _Summary(
            match[1],
            match[2] or "",
            end,
            seconds,
            scaled(match[5], match[6], 1024),
            None if is_rounded and seconds else rate,
            int(retransmits[1]) if retransmits else None,
            arrived,
        )
    )


_DETECT = re.compile(
    r"^(?![ \t]*[{\"]).{0,400}?(?:Connecting to host \S+, port \d|Server listening on \d+\b"
    r"|Accepted connection from \S+, port \d|iperf3: (?:error|interrupt) - )",
    re.MULTILINE,
)


def _detect(start: str) -> bool:
    return start.lstrip()[:1] not in ("{", "") and bool(_DETECT.search(start))


FORMAT = Format(
    "iperf3-text",
    "output of iperf3 without --json",
    _detect,
    read_records("iperf3", line_by_line(_Printed)),
    version=3,
)
