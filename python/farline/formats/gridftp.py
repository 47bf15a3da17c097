"""Transfer logs of GridFTP servers: a line of KEY=VALUE for each file.

Written by `globus-gridftp-server -Z FILE` (and Globus Connect Server), and, behind
`Transfer stats:`, into the server's own log at level TRANSFER. DATE is the end and START the
start, UTC to the microsecond; servers before 2008 wrote the microseconds without leading zeros.
TYPE RETR and ERET sent from HOST to DEST, STOR and ESTO the other way round. STREAMS counts for
each stripe. FILE is not quoted and may hold anything, so it ends at the last ` BUFFER=`.

Most lines are read by `gridftp_block`, thousands at once. The parser here is the definition: it
takes what the other leaves over, and says what is wrong with a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from farline.formats.format import Format
from farline.formats.gridftp_fields import (
    COMPLETE_CODE,
    EMPTY,
    HEAD,
    LISTING,
    LISTINGS,
    MESSAGE,
    RECEIVED,
    SENT,
    TAIL,
)
from farline.formats.reading import LONGEST_LINE_BYTES, TOO_LONG, Block, Reading
from farline.formats.rows import (
    NotATransfer,
    Record,
    Row,
    Unreadable,
    address,
    moment_us,
    tables,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.formats.gridftp_block import Parsed

_STAMP = re.compile(r"(\d{14})\.(\d{1,6})", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_DEST = re.compile(r"\d*\[([^\[\]]*)\]")
_HOST = re.compile(r"[!-~]*")
_CODE = re.compile(r"\d{3}", re.ASCII)
_RETRANS = re.compile(r" retrans=(\d{1,17}(?:,\d{1,17})*)(?: |$)", re.ASCII)
_MESSAGE = re.compile(r"\[\d+\] .* :: |\d{3}[ -]")
_SERVER = re.compile(r"^\[\d+\] .{20,30} :: ", re.MULTILINE)
_NO_MESSAGE = re.compile(r"DATE=|Transfer stats:|[\x00-\x08\x0e-\x1f\ufffd]")
_DEVICE = re.compile(r"/+dev/(?:zero|null)")


def parse_line(line: str) -> Row:
    """The row of one line.

    Raises:
        NotATransfer: for listings, empty files and other messages of the server.
        Unreadable: with what is wrong.
    """
    fields = _fields(line)
    if fields is None:
        if "DATE=" not in line and _MESSAGE.match(line):
            raise NotATransfer(MESSAGE)
        raise Unreadable("not a transfer line: fields are missing or in another order")
    kind, code = fields["TYPE"], fields["CODE"]
    if kind in LISTINGS:
        raise NotATransfer(LISTING)
    if kind not in SENT + RECEIVED:
        raise Unreadable(f"TYPE is {kind[:40]!r}, not one of {', '.join(SENT + RECEIVED)}")
    if not _CODE.fullmatch(code):
        raise Unreadable(f"CODE is {code[:40]!r}, not three digits")
    moved = _whole(fields, "NBYTES")
    if code == COMPLETE_CODE and moved == 0:
        raise NotATransfer(EMPTY)
    return _row(fields, moved)


def _fields(line: str) -> dict[str, str] | None:
    """Texts of the fields, and of what follows them; None if one is missing."""
    at = 0 if line.startswith("DATE=") else line.find(" DATE=") + 1
    tail_at = line.rfind(f" {TAIL[0]}=")
    if tail_at < 0 or not line.startswith("DATE=", at):
        return None
    head = _between(line[at:tail_at], HEAD)
    tail = _between(line[tail_at + 1 :], TAIL)
    if head is None or tail is None:
        return None
    tail["CODE"], _, more = tail["CODE"].partition(" ")
    return {**head, **tail, "more": " " + more}


def _between(text: str, names: tuple[str, ...]) -> dict[str, str] | None:
    """Values of fields in this order, each up to the next; `text` starts with the first."""
    found: dict[str, str] = {}
    at = len(names[0]) + 1
    for name, following in pairwise(names):
        end = text.find(f" {following}=", at)
        if end < 0:
            return None
        found[name] = text[at:end]
        at = end + len(following) + 2
    return {**found, names[-1]: text[at:]}


def _row(fields: dict[str, str], moved: int) -> Row:
    start_us, end_us = stamp_us(fields["START"], "START"), stamp_us(fields["DATE"], "DATE")
    if end_us < start_us:
        raise Unreadable("DATE (the end) is before START")
    streams, stripes = _whole(fields, "STREAMS"), _whole(fields, "STRIPES")
    here, there = _host(fields["HOST"], "HOST"), peer(fields["DEST"])
    retrans = _RETRANS.search(fields["more"])
    sent = fields["TYPE"] in SENT
    return {
        "modality": "T" if _DEVICE.fullmatch(fields["FILE"]) else "E",
        "started_at": start_us,
        "duration_s": (end_us - start_us) / 1e6,
        "bytes": moved,
        "complete": fields["CODE"] == COMPLETE_CODE,
        "code": fields["CODE"],
        "from_host": here if sent else there,
        "to_host": there if sent else here,
        "streams": streams * stripes or None,
        "parallelism": streams or None,
        "stripes": stripes or None,
        "files": 1,
        "buffer_bytes": _whole(fields, "BUFFER") or None,
        "block_bytes": _whole(fields, "BLOCK") or None,
        "retransmits": sum(map(int, retrans[1].split(","))) if retrans else None,
    }


def stamp_us(text: str, name: str) -> int:
    """Microseconds since 1970 UTC of `20261121195928.781445`.

    Raises:
        Unreadable: when it is no such time.
    """
    match = _STAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        moment = datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise Unreadable(
            f"{name} is {text[:40]!r}, not a time such as 20261121195928.781445"
        ) from None
    return moment_us(moment) + int(match[2])


def peer(dest: str) -> str | None:
    """The other host: of several (stripes) the first; None where the log has none.

    Raises:
        Unreadable: when it is no list in brackets.
    """
    match = _DEST.fullmatch(dest)
    if match is None:
        raise Unreadable(f"DEST is {dest[:60]!r}, not a host in brackets")
    return _host(match[1].split(",")[0], "DEST")


def _host(text: str, name: str) -> str | None:
    if not _HOST.fullmatch(text):
        raise Unreadable(f"{name} is {text[:60]!r}, not the name of a host")
    return address(text)


def _whole(fields: dict[str, str], name: str) -> int:
    if not _WHOLE.fullmatch(fields[name]):
        raise Unreadable(f"{name} is {fields[name][:40]!r}, not a whole number")
    return int(fields[name])


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a log: of each block first what was read at once, then the other lines."""
    in_server_log = bool(_SERVER.search(reading.start(64 * 1024)))
    for block, parsed in _parsed(reading):
        for reason, count in parsed.skipped.items():
            reading.skip(reason, count)
        reading.tally.transfers += parsed.transfers
        reading.tally.failed += parsed.failed
        if parsed.table.num_rows:
            yield parsed.table
        yield from tables(reading, "gridftp", _others(reading, block, parsed, in_server_log))


def _parsed(reading: Reading) -> Iterator[tuple[Block, Parsed]]:
    """Blocks as they come, with what was read of them; one is read while another is used."""
    from farline.formats.gridftp_block import parse_block

    blocks = reading.blocks()
    ahead = list(islice(blocks, 2))
    if len(ahead) < 2:
        for only in ahead:
            yield only, parse_block(only.data, reading.source)
        return
    with ThreadPoolExecutor(2) as pool:
        waiting: list[tuple[Block, Future[Parsed]]] = []
        for block in chain(ahead, blocks):
            waiting.append((block, pool.submit(parse_block, block.data, reading.source)))
            if len(waiting) > 2:
                first, future = waiting.pop(0)
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()


def _others(
    reading: Reading, block: Block, parsed: Parsed, in_server_log: bool
) -> Iterator[Record]:
    for index, start, end in parsed.others:
        number = block.first_line + index
        text = block.data[start:end].decode("utf-8", "replace")
        if end - start > LONGEST_LINE_BYTES:
            reading.malformed(number, text[:1000], TOO_LONG)
        elif text and not text.isspace():
            try:
                yield Record(number, text, parse_line(text))
            except NotATransfer as reason:
                reading.skip(str(reason))
            except Unreadable as reason:
                # A message of the server may go over several lines.
                if in_server_log and not _NO_MESSAGE.search(text):
                    reading.skip(MESSAGE)
                else:
                    reading.malformed(number, text, str(reason))


def _detect(start: str) -> bool:
    return bool(re.search(r"\bDATE=\d{14}\.\d+ HOST=\S* PROG=\S* NL\.EVNT=FTP_INFO", start)) or (
        "Transfer stats: DATE=" in start or bool(_SERVER.search(start))
    )


FORMAT = Format("gridftp", "transfer log of a GridFTP server", _detect, read)
