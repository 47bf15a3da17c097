"""Output of nuttcp: a line for each test, plain or as `-fparse` writes it, and `-v` of both.

MB are 2**20 bytes. Lines of `-i` intervals are no transfers. With `-v` both ends report, each in
lines of its own (`nuttcp-t` sends, `nuttcp-r` receives) and in either order: with `-r` the
receiver is first. The receiver's result is the transfer; window, streams, hosts, round-trip time
and retransmissions are those that the two ends say of this test. A test ends where an end begins
again, or with a line of another form. UDP rates are the receiver's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.formats.format import Format, found_by
from farline.formats.reading import Reading
from farline.formats.rows import (
    NotATransfer,
    Record,
    Row,
    Unreadable,
    address,
    line_by_line,
    read_records,
)
from farline.formats.tally import excerpt

if TYPE_CHECKING:
    pass

_NUMBER = r"(\d{1,15}(?:\.\d{0,9})?)"
_PLAIN = re.compile(rf"\s*{_NUMBER} MB /\s*{_NUMBER} sec =\s*{_NUMBER} Mbps\b(.*)", re.ASCII)
_PARSE = re.compile(r"\s*megabytes=.*")
_SAID = re.compile(r"nuttcp-([tr])(?:-[^\s:][^:]{0,39})?: ?(.*)")
# What `-I` puts before a plain line.
_IDENTIFIER = re.compile(
    r"^(?!.{0,9}nuttcp-[tr])[^\s:][^:]{0,39}: +(?=[\d.]{1,16} MB /|megabytes=)"
)
_RESULT = re.compile(
    rf"\s*{_NUMBER} MB in {_NUMBER} real seconds = {_NUMBER} KB/sec = {_NUMBER} Mbps\s*", re.ASCII
)
_ERROR = re.compile(r"\berror: (.*)|\b(bad hostname or address.*)", re.IGNORECASE)
_RETRANS = re.compile(r"(\d{1,15}) (?:host-)?retrans\b", re.ASCII)
_RTT = re.compile(rf"{_NUMBER} msRTT", re.ASCII)
_FIELD = re.compile(r"(\w+)=([^\s,]+)")
# What `-v` says in words, by the names that `-fparse` has for it.
_WORDS = (
    # Behind it multicast has `ttl=`, and UDP since 8.2 the family and address (`af=`, `ip=`).
    (
        re.compile(r"\b(?P<mode>tcp|udp)(?: -> (?P<host>\S+))?(?: (?:ttl|af|ip)=\S+)*\s*$"),
        "buflen=",
    ),
    (re.compile(r"accept from (?P<accept>\S+)"), "accept from "),
    (re.compile(r"connect to (?P<connect>\S+) .*RTT=(?P<rtt_ms>\S+) ms"), "connect to "),
    (re.compile(r"retrans = (?P<retrans>\d{1,15})\s*", re.ASCII), "retrans = "),
)
_BEGINS = re.compile(r"v[\d.]+\w*: socket\b")
# Both ends of one test say the same of these.
_SHARED = ("buflen", "nstream", "port", "mode")
_MESSAGE = re.compile(
    r"errno=|invalid |server aborted|datamss|Info: |Usage|warning|ignoring ", re.IGNORECASE
)
_INTERRUPTED = "*** transfer interrupted ***"
_MEGABYTE = 1 << 20


@dataclass
class _Test:
    """What the two ends said of one test."""

    said: dict[str, dict[str, str]] = field(default_factory=dict)
    result: tuple[int, str, dict[str, str]] | None = None
    sent: str | None = None
    error: tuple[int, str, str] | None = None

    @property
    def is_tcp(self) -> bool:
        """Whether an end says that it was TCP."""
        return "tcp" in (self.of("t", "mode"), self.of("r", "mode"))

    def of(self, end: str, name: str) -> str | None:
        """What an end said under this name."""
        return self.said.get(end, {}).get(name)

    def is_another(self, end: str, fields: dict[str, str]) -> bool:
        """Whether what an end says contradicts what the other said."""
        other = self.said.get("r" if end == "t" else "t", {})
        return any(name in other and fields.get(name, other[name]) != other[name]
                   for name in _SHARED)  # fmt: skip

    def row(self, fields: dict[str, str]) -> Row:
        """The row of the receiver's result."""
        if self.is_tcp and _differ(self.sent, fields.get("megabytes")):
            # Over TCP what was sent arrives: the sender's lines are of another test.
            self.said.pop("t", None)
        said = {
            "rtt_ms": self.of("t", "rtt_ms"),
            "retrans": self.of("t", "retrans"),
            "nstream": self.of("r", "nstream") or self.of("t", "nstream"),
            "buflen": self.of("r", "buflen") or self.of("t", "buflen"),
            "mode": self.of("r", "mode") or self.of("t", "mode"),
        }
        known = {name: value for name, value in said.items() if value is not None}
        return {**_parse_row({**known, **fields}), **self.hosts()}

    def hosts(self) -> Row:
        """Who sent to whom: the receiver says whom it accepted, the sender whom it went to."""
        there = self.of("t", "host") or self.of("t", "connect")
        return {"from_host": address(self.of("r", "accept")), "to_host": address(there)}


def _differ(sent: str | None, received: str | None) -> bool:
    """Whether both are known and one twentieth apart, or more."""
    if sent is None or received is None:
        return False
    try:
        return abs(float(sent) - float(received)) > 0.05 * float(sent)
    except ValueError:
        return False


class _Tests:
    """The tests of an output, line by line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._test: _Test | None = None
        # Whether the plain result that comes next is of a test that was interrupted.
        self._is_cut = False

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the tests that end by it."""
        line = _IDENTIFIER.sub("", line, count=1)
        error = _ERROR.search(line)
        if error and line.startswith(("nuttcp", "Error", "error", "bad hostname")):
            yield from self._failed(number, line, excerpt(error[1] or error[2] or "") or "error")
        elif line.strip() == _INTERRUPTED:
            self._interrupted(number, line)
        elif match := _SAID.match(line):
            yield from self._said(number, line, match[1], match[2])
        elif _PLAIN.fullmatch(line) or _PARSE.fullmatch(line):
            yield from self._line(number, line)
        elif line.lstrip().startswith("#"):
            yield from self.end()
            self._reading.skip("comment")
        elif _MESSAGE.match(line):
            self._reading.skip("message")
        else:
            self._reading.malformed(number, line, "not an nuttcp result line")

    def _line(self, number: int, line: str) -> Iterator[Record]:
        """A line that stands for a whole test, or for an interval of one."""
        plain = _PLAIN.fullmatch(line)
        try:
            row = _plain_row(plain) if plain else _whole_row(dict(_FIELD.findall(line)))
        except NotATransfer as reason:
            self._reading.skip(str(reason))
        except Unreadable as reason:
            yield from self.end()
            self._reading.malformed(number, line, str(reason))
        else:
            yield from self.end()
            cut = {"complete": False, "code": "interrupted"} if self._is_cut else {}
            self._is_cut = False
            yield Record(number, line, {**row, **cut})

    def _interrupted(self, number: int, line: str) -> None:
        """Its result, or the rest of it, stands behind this."""
        self._reading.skip("message")
        if self._test is None:
            self._is_cut = True
        else:
            self._test.error = self._test.error or (number, line, "interrupted")

    def _said(self, number: int, line: str, end: str, text: str) -> Iterator[Record]:
        """A line of one end of a verbose test."""
        fields = _said_fields(text)
        test = self._test
        begins = bool(_BEGINS.match(text))
        if test is not None and ((begins and end in test.said) or test.is_another(end, fields)):
            moved = {} if begins else test.said.pop(end, {})
            yield from self.end()
            self._test = test = _Test({end: {} if begins else moved})
        if test is None:
            test = self._test = _Test()
        test.said.setdefault(end, {})
        is_result = "megabytes" in fields and "cpu_seconds" not in fields
        if is_result and end == "r" and test.result is None:
            test.result = number, line, fields
        else:
            if is_result:
                test.sent = fields["megabytes"] if end == "t" else test.sent
            else:
                test.said[end].update(fields)
            self._reading.skip("the sender's own line" if is_result else "verbose line")

    def _failed(self, number: int, line: str, why: str) -> Iterator[Record]:
        test = self._test
        self._is_cut = False
        if test is None or test.result is not None:
            yield from self.end()
            yield Record(number, line, {"modality": "T", "complete": False, "code": why})
        elif test.error is None:
            test.error = number, line, why
        else:
            self._reading.skip("message")

    def end(self) -> Iterator[Record]:
        """The verbose test that was going on."""
        test, self._test = self._test, None
        if test is None:
            return
        if test.error is not None:
            number, line, why = test.error
            row: Row = {"modality": "T", "complete": False, "code": why, **test.hosts()}
            yield Record(number, line, row)
            if test.result is not None:
                self._reading.skip("verbose line")
        elif test.result is not None:
            number, line, fields = test.result
            try:
                yield Record(number, line, test.row(fields))
            except Unreadable as reason:
                self._reading.malformed(number, line, str(reason))


def _said_fields(text: str) -> dict[str, str]:
    """What a line of `-v` says, in words or as `-fparse` writes it."""
    if result := _RESULT.fullmatch(text):
        return {"megabytes": result[1], "real_seconds": result[2], "rate_Mbps": result[4]}
    fields = dict(_FIELD.findall(text))
    for pattern, start in _WORDS:
        if text.startswith(start) and (match := pattern.search(text)):
            fields |= {name: value for name, value in match.groupdict().items() if value}
    return fields


def _duration_s(seconds: float, megabytes: float, rate_mbps: float) -> float | None:
    """The seconds; None where they are 0.00 because they have but two digits."""
    is_short = megabytes * _MEGABYTE * 8 < 0.005 * rate_mbps * 1e6
    return None if seconds == 0 and is_short else seconds


def _parse_row(fields: dict[str, str]) -> Row:
    if "real_sec" in fields:
        raise NotATransfer("interval")
    number = _reader(fields)
    udp = "drop" in fields or fields.get("mode") == "udp"
    seconds, megabytes, rate_mbps = (
        _needed(number(name), name) for name in ("real_seconds", "megabytes", "rate_Mbps")
    )
    return {
        "modality": "T",
        "duration_s": _duration_s(seconds, megabytes, rate_mbps),
        "bytes": round(megabytes * _MEGABYTE),
        "rate_bps": rate_mbps * 1e6,
        "rtt_ms": number("rtt_ms") or None,
        "streams": _count(number("nstream")),
        "block_bytes": _count(number("buflen")),
        "transport": "udp" if udp else "tcp",
        "retransmits": None if udp else _count(number("retrans"), least=0),
    }


def _whole_row(fields: dict[str, str]) -> Row:
    """The row of a line alone. What stands behind the rate shows that the rate is whole."""
    row = _parse_row(fields)
    _needed(_reader(fields)("tx_cpu"), "tx_cpu")
    return row


def _plain_row(match: re.Match[str]) -> Row:
    more = match[4]
    if "%TX" not in more:
        raise NotATransfer("interval")
    udp = "drop/pkt" in more or "%loss" in more
    retrans, rtt = _RETRANS.search(more), _RTT.search(more)
    return {
        "modality": "T",
        "duration_s": _duration_s(float(match[2]), float(match[1]), float(match[3])),
        "bytes": round(float(match[1]) * _MEGABYTE),
        "rate_bps": float(match[3]) * 1e6,
        "rtt_ms": (float(rtt[1]) or None) if rtt else None,
        "transport": "udp" if udp else "tcp",
        "retransmits": int(retrans[1]) if retrans and not udp else None,
    }


def _reader(fields: dict[str, str]) -> Callable[[str], float | None]:
    def number(name: str) -> float | None:
        text = fields.get(name)
        if text is None:
            return None
        if not re.fullmatch(_NUMBER, text, re.ASCII):
            raise Unreadable(f"{name} is {text[:40]!r}, not a number")
        return float(text)

    return number


def _needed(value: float | None, name: str) -> float:
    if value is None:
        raise Unreadable(f"{name} is missing")
    return value


def _count(value: float | None, least: int = 1) -> int | None:
    return None if value is None or value < least else round(value)


_DETECT = re.compile(
    r"^(?:[^\s:][^:\n]{0,50}: )?(?:[ \t]*[\d.]+ MB /[ \t]*[\d.]+ sec =|[ \t]*megabytes=)"
    r"|^nuttcp-[tr](?:-[^\s:][^:\n]{0,39})?: ",
    re.MULTILINE,
)

FORMAT = Format(
    "nuttcp",
    "output of nuttcp, plain or -fparse",
    found_by(_DETECT),
    read_records("nuttcp", line_by_line(_Tests)),
    version=5,
)
