"""Logs of FDT, of clients and of servers.

A session ends with a line of KEY=VALUE much like GridFTP's. Each session has a second one for
its control connection, without streams and bytes: no transfer. The time of a session holds what
FDT needs to open and to close it, some seconds. Its times are those of the host's clock on the
wall, without a zone, and are taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.formats.format import Format
from farline.formats.gridftp import peer, stamp_us
from farline.formats.reading import Reading
from farline.formats.rows import NotATransfer, Row, Unreadable, address, from_lines, tables

if TYPE_CHECKING:
    import pyarrow as pa

_LINE = re.compile(
    r"DATE=(?P<DATE>\S+) HOST=(?P<HOST>\S*) PROG=fdt START=(?P<START>\S+)"
    r" BUFFER=(?P<BUFFER>\d{1,18}) BLOCK=(?P<BLOCK>\d{1,18}) NBYTES=(?P<NBYTES>\d{1,18})"
    r" STREAMS=(?P<STREAMS>\d{1,9}) DEST=(?P<DEST>\S*) TYPE=(?P<TYPE>RETR|STOR)"
    r" CODE=(?P<CODE>\d{3})\s*",
    re.ASCII,
)
_NO_START = "Failed to instantiate FDT"
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")


def parse_line(line: str) -> Row:
    """The row of one line.

    Raises:
        NotATransfer: for everything that FDT says besides.
        Unreadable: for what starts like a result and is none, and for what is no text.
    """
    at = line.find("DATE=")
    if at >= 0 and "PROG=fdt" in line:
        match = _LINE.fullmatch(line, at)
        if match is None:
            raise Unreadable("not an FDT result line: fields are missing or not numbers")
        return _row(match)
    if at >= 0 and " finalCleanup " in line:
        raise Unreadable("not an FDT result line: it is truncated")
    if _NO_START in line:
        return {"modality": "E", "complete": False, "code": "failed to start"}
    if _NO_TEXT.search(line):
        raise Unreadable("no text")
    raise NotATransfer("message")


def _row(match: re.Match[str]) -> Row:
    start_us, end_us = stamp_us(match["START"], "START"), stamp_us(match["DATE"], "DATE")
    if end_us < start_us:
        raise Unreadable("DATE (the end) is before START")
    moved, streams, complete = int(match["NBYTES"]), int(match["STREAMS"]), match["CODE"] == "226"
    if complete and moved == 0:
        raise NotATransfer("control session" if streams == 0 else "empty files")
    here, there = address(match["HOST"]), peer(match["DEST"])
    sent = match["TYPE"] == "RETR"
    return {
        "modality": "E",
        "started_at": start_us,
        "duration_s": (end_us - start_us) / 1e6,
        "bytes": moved,
        "complete": complete,
        "code": match["CODE"],
        "from_host": here if sent else there,
        "to_host": there if sent else here,
        "streams": streams or None,
        "buffer_bytes": int(match["BUFFER"]) or None,
        "block_bytes": int(match["BLOCK"]) or None,
        "transport": "tcp",
    }


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a log."""
    return tables(reading, "fdt", from_lines(reading, parse_line))


def _detect(start: str) -> bool:
    return " PROG=fdt START=" in start or "lia.util.net." in start


FORMAT = Format("fdt", "FDT log, client or server", _detect, read)
