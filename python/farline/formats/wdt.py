"""Logs of WDT, of senders and receivers.

A sender's transfer ends with its total time, a summary, and a rate of everything over that time;
bytes are exact, Mbytes are 2**20. A receiver's summary has bytes and no time, so it is no rate.
The lines of glog have a time of the host's clock, without a zone, and before 0.5 without the year.
WDT before its lines began with `wdt>` is read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.formats.format import Format, found_by
from farline.formats.quantity import other_line
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, address, read_records
from farline.formats.tally import excerpt

if TYPE_CHECKING:
    pass

_CLIENT = re.compile(r"Client \(sending\) to (\S+), Using ports \[([\d ]*)\]", re.ASCII)
_SENDER = re.compile(
    r"Total sender time = (\d{1,9}\.\d+) seconds .*Transfer status = (\w+)\."
    r"(?: Number of files transferred = (\d{1,12})\.)?.* Total bytes = (\d{1,18})\.",
    re.ASCII,
)
_CUT = re.compile(r"Total sender time = ")
_RATE = re.compile(r".*Total sender throughput = (\d{1,12}(?:\.\d+)?) Mbytes/sec", re.ASCII)
_ENDED = re.compile(r"wdtSend for\s+(\S+) ended with (\w+)")
_RECEIVED = re.compile(r"Receiver\.cpp:\d+\] (?:wdt>\s+)?Transfer status = (\w+)\.", re.ASCII)
_NO_RATE = "receiver's summary without a time"


class _Sender:
    """What a sender said of the transfer that goes on."""

    def __init__(self) -> None:
        self.host: str | None = None
        self.ports: int | None = None
        self.held: tuple[int, str, Row] | None = None

    def summary(self, match: re.Match[str]) -> Row:
        """The row of a summary; its rate stands in the line behind it."""
        row: Row = {
            "modality": "E",
            "to_host": self.host,
            "streams": self.ports,
            "files": int(match[3]) if match[3] else None,
            "bytes": int(match[4]),
            "transport": "tcp",
        }
        if match[2] != "OK":
            return {**row, "complete": False, "code": match[2]}
        # Short transfers took 0.00 seconds: then the rate says how long.
        return {**row, "duration_s": float(match[1]) or None, "code": match[2]}


def _records(reading: Reading) -> Iterator[Record]:
    sender = _Sender()
    for number, line in reading.lines():
        if match := _CLIENT.search(line):
            yield from _end(sender)
            sender = _Sender()
            sender.host, sender.ports = address(match[1]), len(match[2].split()) or None
            reading.skip("message")
        elif match := _SENDER.search(line):
            yield from _end(sender)
            sender.held = number, line, sender.summary(match)
        elif _CUT.search(line):
            reading.malformed(number, line, "not a WDT summary: fields are missing")
        elif (match := _RATE.fullmatch(line) or _RATE.match(line)) and sender.held is not None:
            row = sender.held[2]
            if row.get("complete", True):
                row["rate_bps"] = float(match[1]) * (1 << 20) * 8
        elif (match := _ENDED.search(line)) and sender.held is None and match[2] != "OK":
            row = {"to_host": address(match[1]), "code": excerpt(match[2]), "complete": False}
            yield Record(number, line, {"modality": "E", **row})
        elif _RECEIVED.search(line):
            reading.skip(_NO_RATE)
        else:
            other_line(reading, number, line)
    yield from _end(sender)


def _end(sender: _Sender) -> Iterator[Record]:
    held, sender.held = sender.held, None
    if held is None:
        return
    number, line, row = held
    rate_bps = row.get("rate_bps")
    if row.get("duration_s") is None and rate_bps:
        row["duration_s"] = row["bytes"] * 8 / rate_bps
    yield Record(number, line, row)


_DETECT = re.compile(
    r"^(?:[IWEF]\d{4}(?:\d{4})? .*\] )?wdt>\s"
    r"|^[IWEF]\d{4} .{1,80} Sender\.cpp:\d+\] (?:Client \(sending\) to |Total sender time = )",
    re.MULTILINE,
)

FORMAT = Format("wdt", "log of WDT", found_by(_DETECT), read_records("wdt", _records))
