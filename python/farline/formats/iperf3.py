"""JSON of iperf3, versions 3.0 to 3.21: `--json`, and the events of `--json-stream`.

A transfer is one direction of a test; `--bidir` gives two. The rate is the receiver's, over its
own time. UDP before 3.11 has the sender's figures and the share that was lost: what arrived is
the difference. A server's file knows what it received; of what it sent it knows only that.
Where a server says 0 of UDP that arrived, it is what its intervals say.
Where versions wrote the same name twice for the two directions (3.7 to 3.10), the streams are
added up instead, and so they are where a document has no sums. Seconds that `--omit` left out are
in no figure. An `error` is a failed transfer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.formats.documents import Document, Found, documents, items, part
from farline.formats.format import Format, found_by
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, above_zero, address, number, read_records, whole, word
from farline.formats.tally import excerpt

if TYPE_CHECKING:
    pass


def rows_of(document: Document) -> list[Row]:
    """One row for each direction of a test, or one failed row."""
    start, end = part(document, "start"), part(document, "end")
    common = _common(document, start, end)
    sends = _local_sends(start, end)
    error = word(document.get("error"))
    if error is not None or not end:
        code = excerpt(error) if error is not None else "no result"
        return [{**common, **_hosts(start, sends), "complete": False, "code": code}]
    directions = _directions(end)
    if len(directions) > 1 or part(start, "test_start").get("bidir"):
        return [_streams_row(common, document, way) for way in (True, False)]
    figures = _sums(document, end, is_server="accepted_connection" in start)
    return [{**common, **_hosts(start, sends), **figures, **_sender(document, end, None)}]


def _common(document: Document, start: Document, end: Document) -> Row:
    asked, stamp = part(start, "test_start"), part(start, "timestamp")
    milliseconds, seconds = number(stamp.get("timemillisecs")), number(stamp.get("timesecs"))
    if milliseconds is None and seconds is not None:
        milliseconds = seconds * 1000
    protocol = word(asked.get("protocol"))
    if protocol is None and end:
        protocol = "udp" if any("udp" in one for one in items(end, "streams")) else "tcp"
    return {
        "modality": "T",
        "started_at": None if milliseconds is None else round(milliseconds * 1000),
        "streams": above_zero(asked.get("num_streams")) or len(items(start, "connected")) or None,
        "block_bytes": above_zero(asked.get("blksize")),
        "buffer_bytes": above_zero(start.get("sock_bufsize")),
        "transport": protocol.lower() if protocol else None,
    }


def _hosts(start: Document, local_sends: bool | None) -> Row:
    connected = next(iter(items(start, "connected")), {})
    local = address(connected.get("local_host"))
    remote = address(connected.get("remote_host"))
    for name in ("connecting_to", "accepted_connection"):
        remote = remote or address(part(start, name).get("host"))
    if local_sends is None:
        return {}
    ends = (local, remote) if local_sends else (remote, local)
    return {"from_host": ends[0], "to_host": ends[1]}


def _local_sends(start: Document, end: Document) -> bool | None:
    """Whether the end that wrote the document sent; None if it does not say."""
    flags = _directions(end)
    if len(flags) == 1:
        return flags.pop()
    is_server = "accepted_connection" in start
    if not is_server and "connecting_to" not in start:
        return None
    return bool(part(start, "test_start").get("reverse")) == is_server


def _directions(end: Document) -> set[bool]:
    """Which directions the streams at the end of the test have, as far as they say so."""
    flags = (_flag(stream) for stream in items(end, "streams"))
    return {flag for flag in flags if flag is not None}


def _flag(stream: Document) -> bool | None:
    for name in ("sender", "udp", "receiver"):
        flag = part(stream, name).get("sender")
        if isinstance(flag, bool):
            return flag
    return None


def _sums(document: Document, end: Document, *, is_server: bool) -> Row:
    """What arrived, from the sums of all streams; what was sent, where nothing else is known."""
    received, sent, udp = (part(end, name) for name in ("sum_received", "sum_sent", "sum"))
    if (number(received.get("bytes")) or 0) > 0:
        return _figures(received, arrived=1.0)
    if "lost_packets" in udp or "lost_percent" in udp:
        if is_server and not number(udp.get("bytes")) and _arrived(udp):
            return _added_up(document, items(end, "streams"), is_server=True)
        return _figures(udp, _arrived(udp))
    if received and not is_server:
        # Only a server does not know what arrived at the other end.
        return _figures(received, arrived=1.0)
    if sent or udp or received:
        return _figures(sent or udp or received, arrived=1.0)
    return _added_up(document, items(end, "streams"), is_server=is_server)


def _added_up(document: Document, streams: list[Document], *, is_server: bool) -> Row:
    """The figures of streams together; unknown where one of them is."""
    parts = [_stream_figures(document, stream, is_server=is_server) for stream in streams]
    durations = [one["duration_s"] for one in parts]
    moved = [one["bytes"] for one in parts]
    return {
        "duration_s": None if None in durations else max(durations, default=None),
        "bytes": None if None in moved or not moved else sum(moved),
    }


def _arrived(figures: Document) -> float | None:
    """The share of a UDP sender's datagrams that arrived; None if that is not said."""
    lost, packets = number(figures.get("lost_packets")), number(figures.get("packets"))
    if lost is not None and packets:
        return max(0.0, 1.0 - lost / packets)
    percent = number(figures.get("lost_percent"))
    return None if percent is None else max(0.0, 1.0 - percent / 100)


def _figures(figures: Document, arrived: float | None) -> Row:
    moved, rate = number(figures.get("bytes")), number(figures.get("bits_per_second"))
    return {
        "duration_s": _seconds(figures),
        "bytes": None if moved is None or arrived is None else round(moved * arrived),
        "rate_bps": None if rate is None or arrived is None else rate * arrived,
    }


def _seconds(figures: Document) -> float | None:
    seconds = number(figures.get("seconds"))
    if seconds is None:
        first, last = number(figures.get("start")), number(figures.get("end"))
        seconds = None if first is None or last is None else last - first
    return seconds


def _streams_row(common: Row, document: Document, local_sends: bool) -> Row:
    """One direction of a test with both, added up from its streams."""
    start, end = part(document, "start"), part(document, "end")
    streams = [one for one in items(end, "streams") if _flag(one) is local_sends]
    hosts = _hosts(start, local_sends)
    if not streams:
        return {**common, **hosts, "complete": False, "code": "no streams in this direction"}
    return {
        **common,
        **hosts,
        **_added_up(document, streams, is_server="accepted_connection" in start),
        "streams": len(streams),
        **_sender({}, end, local_sends),
    }


def _stream_figures(document: Document, stream: Document, *, is_server: bool) -> Row:
    udp = part(stream, "udp")
    if udp:
        figures = _figures(udp, _arrived(udp))
        if is_server and figures["bytes"] == 0 and _arrived(udp):
            figures["bytes"] = _by_intervals(document, udp)
        return figures
    received, sent = part(stream, "receiver"), part(stream, "sender")
    if is_server and not number(received.get("bytes")):
        received = {}
    if not received:
        return _figures(sent, arrived=1.0)
    # "seconds" of a stream's receiver are the sender's; the receiver's own end with it.
    own = {name: value for name, value in received.items() if name != "seconds"}
    return _figures(own if _seconds(own) else received, arrived=1.0)


def _by_intervals(document: Document, udp: Document) -> int | None:
    """What the intervals say of a stream together; None if they do not make up its time."""
    told = [
        stream
        for interval in items(document, "intervals")
        for stream in items(interval, "streams")
        if stream.get("socket") == udp.get("socket") and not stream.get("omitted")
    ]
    told_s, seconds = sum(_seconds(one) or 0 for one in told), _seconds(udp) or 0
    # Of events not all intervals are kept.
    is_whole = abs(told_s - seconds) <= seconds / 10
    return round(sum(number(one.get("bytes")) or 0 for one in told)) if is_whole else None


def _sender(document: Document, end: Document, way: bool | None) -> Row:
    """What senders know: retransmissions, the smallest round-trip time, congestion control."""
    streams = [
        part(stream, "sender")
        for stream in items(end, "streams")
        if way is None or _flag(stream) is way
    ]
    counts = [whole(stream.get("retransmits")) for stream in streams]
    known = [count for count in counts if count is not None and count >= 0]
    rtts_us = [number(stream.get("min_rtt")) for stream in streams]
    if not any(rtts_us):
        # Before 3.1.3 only the intervals have round-trip times.
        rtts_us = [
            number(stream.get("rtt"))
            for interval in items(document, "intervals")
            for stream in items(interval, "streams")
        ]
    least_us = min((rtt for rtt in rtts_us if rtt is not None and rtt > 0), default=None)
    control = word(end.get("sender_tcp_congestion")) if way is None else None
    return {
        "retransmits": sum(known) if known else None,
        "rtt_ms": None if least_us is None else least_us / 1000,
        "congestion_control": control,
    }


class _Stream:
    """Events of `--json-stream`, gathered into documents."""

    def __init__(self) -> None:
        self._open: tuple[Found, Document] | None = None
        self._last_cookie: object = None
        self._told = False
        # The error of a test that could not start: the whole may follow it.
        self._last_error: object = None

    def take(self, found: Found) -> tuple[Found, Document] | None:
        """The document that an event completes, if it does, with where it started."""
        event, data = found.document["event"], found.document.get("data")
        self._last_error = None if event != "end" else self._last_error
        if event == "start":
            self._open, self._told = (found, {"start": data, "intervals": []}), False
            return None
        place, document = self._open or (found, {})
        if event == "interval" and isinstance(data, dict):
            # Only what `_sender` may need is kept: a test can have very many intervals.
            document["intervals"] = [*document.get("intervals", [])[:9], data]
        elif event == "error":
            document["error"] = data if isinstance(data, str) else "error"
            if self._open is None:
                self._told, self._last_error = True, document["error"]
                return place, document
        elif event == "end" and self._told and self._open is None and not data:
            # A test that could not start has its error, and then an end without anything.
            self._told = False
        elif event == "end":
            self._open = None
            self._last_cookie = part(document, "start").get("cookie")
            return place, {**document, "end": data}
        return None

    def left(self) -> tuple[Found, Document] | None:
        """What has a start and no end."""
        left, self._open = self._open, None
        return left

    def repeats(self, document: Document) -> bool:
        """Whether a document says again what its events said (`--json-stream-full-output`)."""
        cookie = part(document, "start").get("cookie")
        error, self._last_error = self._last_error, None
        if cookie is None:
            return error is not None and document.get("error") == error
        return bool(cookie == self._last_cookie)


def _is_message(line: str) -> str | None:
    return "message" if re.match(r"iperf3?\b|warning|WARNING|\[", line) else None


def _records(reading: Reading) -> Iterator[Record]:
    stream = _Stream()
    for found in documents(reading, _is_message):
        document: Document | None = found.document
        place = found
        if "event" in found.document:
            if found.document["event"] == "start":
                yield from _unended(reading, stream)
            taken = stream.take(found)
            place, document = taken or (found, None)
        elif not {"start", "end", "error"} & set(found.document):
            reading.malformed(
                found.line, found.text, ("not an iperf3 result: no start, end or error")
            )
            continue
        elif stream.repeats(found.document):
            reading.skip("the complete document after its events")
            continue
        if document is not None and _is_idle(document):
            reading.skip("message")
        elif document is not None:
            for row in rows_of(document):
                yield Record(place.line, place.text, row)
    yield from _unended(reading, stream)


def _unended(reading: Reading, stream: _Stream) -> Iterator[Record]:
    """A failed row for events that name an error; without one or an end they are cut."""
    left = stream.left()
    if left is None:
        return
    place, document = left
    if "error" in document:
        for row in rows_of(document):
            yield Record(place.line, place.text, row)
    else:
        reading.malformed(place.line, place.text, "the events of this test have no end")


def _is_idle(document: Document) -> bool:
    """Whether a server says that it was interrupted when it had no test."""
    error = word(document.get("error")) or ""
    start = part(document, "start")
    return error.startswith("interrupt - the server") and not items(start, "connected")


_DETECT = re.compile(
    r'"version":\s*"iperf 3|^\{\s*"event"\s*:\s*"'
    r'|"(?:sum_sent|tcp_mss_default|accepted_connection)"|"start"\s*:\s*\{\s*"connected"\s*:',
    re.MULTILINE,
)

FORMAT = Format(
    "iperf3",
    "JSON of iperf3 (--json, --json-stream)",
    found_by(_DETECT),
    read_records("iperf3", _records),
    version=4,
)
