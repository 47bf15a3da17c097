"""What only a UDT run has: packets, windows in packets, pacing, and how large packets could be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from farline.profiles.packet_headers import UDT_HEADER_BYTES
from farline.profiles.series import RECEIVER, SENDER, Columns, known, mean, progress, rows_of
from farline.spec._types import EndReport, RunRecord, StreamRecord

IP_UDP_BYTES = {4: 28, 6: 48}
"""Headers of IP and UDP around a packet, by version of IP."""

LINK_MTU = 1500
"""MTU of an emulated link that states none."""

BUFFER_DEFAULT = 1 << 30
"""What UDT's buffers grow to where nothing is asked for."""

LEAST_PACKETS = 32
"""Packets that a receive buffer holds at least, however little is asked for."""

_PARTS = 3
"""Parts a run is cut into to see whether its rate still grows."""


@dataclass(frozen=True)
class UdtFigures:
    """One direction of a UDT run; `None` is "not known".

    `paced_share` is the part of the busy time in which senders waited for their own pacing.
    Buffers are UDT's own (`udp_buffer_asked` is the socket's). Windows and flight are means over
    senders and time, in packets. `reader_free_share` is the free part of the receive buffer.
    `packet_bytes_most` is what the MTU of both ends allows, where it is more than `packet_bytes`.
    Of an emulated path, `wire_loss` says whether a link was told to lose packets, `drops` are
    datagrams that a host dropped for want of room.
    """

    packet_bytes: int | None
    packet_bytes_most: int | None
    paced_share: float
    flow_window_packets: float | None
    flow_window_asked: int | None
    send_buffer_bytes: int
    receive_buffer_bytes: int
    udp_buffer_asked: int | None
    flight_packets: float | None
    cwnd_packets: float | None
    reader_free_share: float | None
    link_capacity_bps: float | None
    rate_growth: float | None
    wire_loss: bool | None
    emulated: bool
    drops: int
    offloads_off: tuple[str, ...]

    @property
    def payload_bytes(self) -> int | None:
        """Payload of a whole packet."""
        return None if self.packet_bytes is None else self.packet_bytes - UDT_HEADER_BYTES


def udt_figures_of(
    record: RunRecord,
    samples: Columns,
    senders: Sequence[StreamRecord],
    receivers: Sequence[StreamRecord],
    sender_end: int,
) -> UdtFigures | None:
    """The figures of a direction; None where the run is no UDT run."""
    spec: dict[str, Any] = dict(record["spec"])
    if spec.get("transport") != "udt":
        return None
    asked: dict[str, Any] = spec.get("udt") or {}
    receive_buffer = asked.get("receive_buffer_bytes") or BUFFER_DEFAULT
    rows = rows_of(samples, SENDER, sender_end)
    packet = senders[0]["granted"]["packet_bytes"] if senders else None
    cwnd_bytes = _mean(samples, "cwnd_bytes", rows)
    path = record.get("path")
    return UdtFigures(
        packet_bytes=packet,
        packet_bytes_most=_larger_packet(record, packet, [*senders, *receivers]),
        paced_share=_share(samples, "paced_wait_us", "busy_us", rows),
        flow_window_packets=_mean(samples, "flow_window_packets", rows),
        flow_window_asked=asked.get("flow_window_packets"),
        send_buffer_bytes=asked.get("send_buffer_bytes") or BUFFER_DEFAULT,
        receive_buffer_bytes=receive_buffer,
        udp_buffer_asked=asked.get("udp_receive_buffer_bytes"),
        flight_packets=_mean(samples, "flight_packets", rows),
        cwnd_packets=cwnd_bytes / (packet - UDT_HEADER_BYTES) if packet and cwnd_bytes else None,
        reader_free_share=_free_share(
            samples, max(receive_buffer, LEAST_PACKETS * (packet or 0)), 1 - sender_end
        ),
        link_capacity_bps=_mean(samples, "link_capacity_bps", rows),
        rate_growth=_rate_growth(samples, sender_end),
        wire_loss=wire_loss(path["topology"] if path else None),
        emulated=bool(path),
        drops=path["stamp"]["receive_buffer_drops"] if path else 0,
        offloads_off=_offloads_off(senders, receivers),
    )


def _mean(samples: Columns, name: str, rows: Sequence[int]) -> float | None:
    return mean(known(samples, name, rows))


def _share(samples: Columns, part: str, whole: str, rows: Sequence[int]) -> float:
    total = sum(known(samples, whole, rows))
    return sum(known(samples, part, rows)) / total if total else 0.0


def _free_share(samples: Columns, size_bytes: int, end: int) -> float | None:
    free = _mean(samples, "receive_buffer_free_bytes", rows_of(samples, RECEIVER, end))
    return None if free is None else free / size_bytes


def _rate_growth(samples: Columns, end: int) -> float | None:
    """Rate in the last third of the run over that in the middle third, as sent.

    Only where it did not fall from the first third to the middle: else it goes up and down.
    """
    sent = progress(samples, SENDER, end)
    edges = [sent.end_us * part / _PARTS for part in range(_PARTS + 1)]
    first, middle, last = (after - before for before, after in pairwise(sent.at(edges)))
    return last / middle if middle >= first > 0 else None


def wire_loss(topology: Any) -> bool | None:
    """Whether any link loses packets by order; None where no path is known."""
    if not topology:
        return None
    pipes = [link.get(way) or {} for link in topology["links"] for way in ("forward", "reverse")]
    return any(any((pipe.get("loss") or {}).values()) or pipe.get("corrupt") for pipe in pipes)


def _larger_packet(
    record: RunRecord, packet: int | None, streams: Iterable[StreamRecord]
) -> int | None:
    """What fits the MTU of both ends' interfaces and of emulated links, if more than `packet`."""
    ends, path = (record["client"], record["server"]), record.get("path")
    link_mtu = _link_mtu(path["topology"] if path else None)
    limits = [_packet_limit(stream, ends[stream["end"]], link_mtu) for stream in streams]
    if packet is None or not limits or None in limits:
        return None
    most = min([limit for limit in limits if limit is not None] + [65_507])
    return most if most > packet else None


def _link_mtu(topology: Any) -> int:
    """The smallest MTU of an emulated path's links; without one, no limit."""
    links = topology["links"] if topology else []
    pipes = [link[way] for link in links for way in ("forward", "reverse") if link.get(way)]
    return min((pipe.get("mtu_bytes") or LINK_MTU for pipe in pipes), default=65_535)


def _packet_limit(stream: StreamRecord, end: EndReport | None, link_mtu: int) -> int | None:
    address = stream["granted"]["local"].rpartition(":")[0].strip("[]")
    headers = IP_UDP_BYTES[6 if ":" in address else 4]
    for interface in end["host"]["interfaces"] if end else []:
        if address in {one.partition("/")[0] for one in interface["addresses"]}:
            return min(interface["mtu_bytes"], link_mtu) - headers
    return None


def _offloads_off(
    senders: Sequence[StreamRecord], receivers: Sequence[StreamRecord]
) -> tuple[str, ...]:
    near = senders[0]["granted"] if senders else None
    far = receivers[0]["granted"] if receivers else None
    off = [("--gso on", near["gso"] is False)] if near else []
    off += [("--gro on", far["gro"] is False)] if far else []
    return tuple(flag for flag, is_off in off if is_off)
