"""A path that swallows large packets: the run was set up by small ones, and no data arrived.

An MTU black hole (RFC 2923): somewhere the path takes smaller packets than both ends, and the
message that says so is lost. It is told by what the ends saw; the size that passes has to be asked
of the path (`tools.path_mtu`), which a rule does not do by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.findings.finding import Finding
from farline.profiles.copy_streams import data_streams
from farline.profiles.series import RECEIVER, SENDER, rows_of

if TYPE_CHECKING:
    from farline.profiles.series import Columns
    from farline.spec._types import RunRecord, StreamRecord

Passing = Callable[["Suspicion"], int | None]
"""The largest packet that the path passes, in bytes; None where nobody can say."""

_TCP_HEADERS, _UDP_HEADERS, _IPV6_MORE = 52, 28, 20
"""Bytes before the payload of a packet: IPv4, and TCP with its timestamps or UDP."""

_USUAL_BYTES = 1500

PROBING = "sysctl -w net.ipv4.tcp_mtu_probing=1 at both ends"


@dataclass(frozen=True)
class Suspicion:
    """What makes a run look like one into a black hole."""

    address: str
    """Of the server: `host:port`."""
    transport: str
    packet_bytes: int
    """IP packets that carried the data, as the ends made them."""
    headers_bytes: int
    sent_packets: int | None
    rtt_s: float
    is_certain: bool
    """Whether nothing arrived; else the other end fell silent, which has other causes too."""


def suspicion(record: RunRecord, samples: Columns) -> Suspicion | None:
    """Streams were set up, and no data arrived or the other end fell silent; None where not so."""
    streams = data_streams(record)
    transport = str(record["spec"].get("transport", "tcp"))
    senders = [stream for stream in streams if stream["role"] == SENDER]
    receivers = [stream for stream in streams if stream["role"] == RECEIVER]
    error = record.get("error")
    unheard = error is not None and error["kind"] in ("timeout", "protocol")
    nothing = bool(receivers) and not any(stream["bytes"] for stream in receivers)
    if transport == "null" or not streams or not (nothing or (not receivers and unheard)):
        return None
    if senders and not any(stream["bytes"] for stream in senders):
        return None
    stalled = transport == "tcp" and bool(senders) and _stalled(senders, samples)
    known = senders or receivers
    headers = _TCP_HEADERS if transport == "tcp" else _UDP_HEADERS
    headers += _IPV6_MORE if "[" in known[0]["granted"]["local"] else 0
    sent = sum(stream["packets"] for stream in senders) if transport != "tcp" else None
    rtts = [stream["min_rtt_us"] for stream in known if stream["min_rtt_us"] > 0]
    return Suspicion(
        record["server_address"], transport, _packet(known, headers), headers, sent or None,
        min(rtts, default=0) / 1e6, nothing or stalled,
    )  # fmt: skip


def _stalled(senders: list[StreamRecord], samples: Columns) -> bool:
    """TCP sent its first segments again and again, and nothing after them."""
    if not any(stream["retransmits"] > 0 for stream in senders):
        return False
    if not len(samples.get("end_us", ())):
        return True
    rows = rows_of(samples, SENDER)
    half_us = max((samples["end_us"][row] for row in rows), default=0) / 2
    late = (samples["bytes"][row] for row in rows if samples["end_us"][row] > half_us)
    return bool(rows) and not any(late)


def _packet(streams: list[StreamRecord], headers: int) -> int:
    """Size of the packets on the line; the usual one where the ends do not say."""
    sizes = [
        (stream["granted"]["packet_bytes"] or stream["granted"]["mss_bytes"] or 0)
        for stream in streams
        if stream["role"] == SENDER
    ]
    # What the ends say to each other goes in packets of the usual size, whatever the data's.
    return max(*sizes, _USUAL_BYTES - headers) + headers if any(sizes) else _USUAL_BYTES


def finding(found: Suspicion, passing: int | None) -> Finding | None:
    """What to say of it; `passing` is the largest packet that the path is known to pass.

    None where it may as well be something else.
    """
    if not found.is_certain and (passing is None or passing >= found.packet_bytes):
        return None
    size = found.packet_bytes
    check = (f"check with: ping -M do -s {size - _UDP_HEADERS} HOST, tracepath HOST",)
    many = f"{found.sent_packets} packets" if found.sent_packets else "the data"
    if passing is None:
        line = (
            f"path: none of {many} arrived, although the connection was set up: the path drops "
            f"packets of {size} bytes silently (an MTU black hole), or a firewall drops them"
        )
        return Finding("path", line, remedies=(*_smaller(found, None), *check))
    if passing >= size:
        line = (
            f"path: none of {many} arrived, although packets of {size} bytes get through: a "
            "firewall drops those of the data streams"
        )
        ports = (
            "open the server's data ports in the firewall: farline serve --data-ports FIRST-LAST"
        )
        return Finding("path", line, remedies=(ports,))
    line = (
        f"path: it drops large packets silently (an MTU black hole): packets of {size} bytes are "
        f"lost, packets of up to {passing} bytes get through"
    )
    silent = "the other end fell silent: its answers are large packets too"
    evidence = (f"none of {many} arrived" if found.is_certain else silent,)
    router = (
        "let the router in front of the smaller MTU send, and firewalls pass, ICMP"
        ' "fragmentation needed" (IPv6: "packet too big")'
    )
    return Finding("path", line, evidence, (*_smaller(found, passing), router, *check))


def _smaller(found: Suspicion, passing: int | None) -> tuple[str, ...]:
    """Ways to send packets that pass."""
    payload = None if passing is None else passing - found.headers_bytes
    mtu = f"an MTU of {passing} on the interfaces of both ends" if passing else ""
    if found.transport == "tcp":
        probing = f"let TCP find the size: {PROBING}"
        # What -M asks for has the timestamps' twelve bytes in it.
        ways = (f"smaller segments: -M {payload + 12}" if payload else "", mtu, probing)
    else:
        # Data may arrive in fragments: it is the messages of both ends, over TCP, that do not.
        silent = "" if found.is_certain else "let TCP find the size: " + PROBING
        ways = (f"smaller packets: --packet {payload or 1200}", mtu, silent)
    return tuple(way for way in ways if way)
