"""What an emulated link carries of payload: its rate on the wire less headers and framing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farline.profiles.packet_headers import HEADER_BYTES
from farline.spec._types import RunRecord, StreamRecord

FRAMING_BYTES = 38
"""Around each packet where a link says nothing: Ethernet, its preamble and gap included."""

_HEADERS = {
    "tcp": (20 + 12, 20),
    "udp": (8, 20),
    **{name: (header + 8, 20) for name, header in HEADER_BYTES.items()},
}
"""Bytes of the transport (TCP with time stamps, RFC 7323) and of IPv4; IPv6 has 20 more."""


def path_payload_bps(record: RunRecord, senders: Sequence[StreamRecord]) -> float | None:
    """Payload per second that the narrowest link takes at most; None where nothing is known.

    Packets are taken to be as large as the streams' MSS or datagrams.
    """
    path = record.get("path")
    transport = record["spec"].get("transport", "tcp")
    if not path or not path["rate_bps"] or transport not in _HEADERS or not senders:
        return None
    granted = senders[0]["granted"]
    header, network = _HEADERS[transport]
    payload = granted["mss_bytes"] if transport == "tcp" else granted["packet_bytes"]
    if not payload:
        return None
    payload -= HEADER_BYTES.get(transport, 0)
    if ":" in granted["local"].rpartition(":")[0]:
        network += 20
    around = header + network + _framing_bytes(path.get("topology") or {}, path["rate_bps"])
    return path["rate_bps"] * payload / (payload + around)


def _framing_bytes(topology: Mapping[str, Any], rate_bps: int) -> int:
    """Framing of the first link that has the rate."""
    for link in topology.get("links") or ():
        pipe = link["forward"]
        if pipe.get("rate_bps") == rate_bps and pipe.get("framing_bytes") is not None:
            return int(pipe["framing_bytes"])
    return FRAMING_BYTES
