"""Output of nuttcp: a line for each test, plain or as `-fparse` writes it.

MB are 2**20 bytes. Lines of `-i` intervals are no transfers. With `-v` both ends report: the
receiver's line is the transfer, and what was said before of window, streams and hosts belongs
to it. UDP rates are the receiver's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from farline.ingest.format import Format
from farline.ingest.reading import Reading
from farline.ingest.rows import NotATransfer, Row, Unreadable, address, from_lines, tables
from farline.ingest.tally import excerpt

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = r"(\d{1,15}(?:\.\d{0,9})?)"
_PLAIN = re.compile(rf"\s*{_NUMBER} MB /\s*{_NUMBER} sec =\s*{_NUMBER} Mbps\b(.*)", re.ASCII)
_PARSE = re.compile(r"(?:nuttcp-([tr]): )?\s*(megabytes=.*)")
_SAID = re.compile(r"nuttcp-([tr]): ")
_ERROR = re.compile(r"\berror: (.*)", re.IGNORECASE)
_RETRANS = re.compile(r"(\d{1,15}) (?:host-)?retrans\b", re.ASCII)
_RTT = re.compile(rf"{_NUMBER} msRTT", re.ASCII)
_FIELD = re.compile(r"(\w+)=(\S+)")
_MEGABYTE = 1 << 20


class _Parser:
    """Reads line by line; remembers what verbose lines said of the test that goes on."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def parse(self, line: str) -> Row:
        """The row of one line, or why there is none."""
        if line.lstrip().startswith("#"):
            raise NotATransfer("comment")
        if plain := _PLAIN.fullmatch(line):
            return _plain_row(plain)
        if parse := _PARSE.fullmatch(line.rstrip()):
            return self._parse_row(parse[1], dict(_FIELD.findall(parse[2])))
        if (error := _ERROR.search(line)) and line.startswith(("nuttcp", "Error", "error")):
            return {"modality": "T", "complete": False, "code": excerpt(error[1])}
        if said := _SAID.match(line):
            self._remember(said[1], line)
            raise NotATransfer("verbose line")
        raise Unreadable("no result line of nuttcp")

    def _remember(self, end: str, line: str) -> None:
        if ": socket" in line and end == "t":
            self._said = {}
        for name, value in _FIELD.findall(line):
            # Only the client names the other host: it stands in the line of its own end.
            self._said[f"{end}-host" if name == "host" else name] = value

    def _parse_row(self, end: str | None, fields: dict[str, str]) -> Row:
        if "real_sec" in fields:
            raise NotATransfer("interval")
        if "cpu_seconds" in fields:
            raise NotATransfer("verbose line")
        if end == "t":
            raise NotATransfer("the sender's own line")
        said, self._said = (self._said, {}) if end else ({}, self._said)
        number = _reader({**said, **fields})
        udp = "drop" in fields or said.get("mode") == "udp"
        return {
            "modality": "T",
            "duration_s": _needed(number("real_seconds"), "real_seconds"),
            "bytes": round(_needed(number("megabytes"), "megabytes") * _MEGABYTE),
            "rate_bps": _needed(number("rate_Mbps"), "rate_Mbps") * 1e6,
            "from_host": address(said.get("r-host")),
            "to_host": address(said.get("t-host")),
            "rtt_ms": number("rtt_ms") or None,
            "streams": _count(number("nstream")),
            "block_bytes": _count(number("buflen")),
            "transport": "udp" if udp else "tcp",
            "retransmits": None if udp else _count(number("retrans"), least=0),
        }


def _plain_row(match: re.Match[str]) -> Row:
    more = match[4]
    if "%TX" not in more:
        raise NotATransfer("interval")
    udp = "drop/pkt" in more
    retrans, rtt = _RETRANS.search(more), _RTT.search(more)
    return {
        "modality": "T",
        "duration_s": float(match[2]),
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


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a log."""
    return tables(reading, "nuttcp", from_lines(reading, _Parser().parse))


_DETECT = re.compile(
    r"^(?:\s*[\d.]+ MB /\s*[\d.]+ sec =|(?:nuttcp-[tr]: )?\s*megabytes=|nuttcp-[tr]: )",
    re.MULTILINE,
)

FORMAT = Format(
    "nuttcp", "output of nuttcp, plain or -fparse", lambda start: bool(_DETECT.search(start)), read
)
