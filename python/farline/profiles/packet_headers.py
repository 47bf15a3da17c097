"""What transports of ours add to each packet of payload, inside the UDP payload."""

from __future__ import annotations

UDT_HEADER_BYTES = 16
"""Header of a UDT packet, inside the UDP payload that `packet_bytes` counts."""

RBUDP_HEADER_BYTES = 16
"""Header of an RBUDP packet, inside the UDP payload that `packet_bytes` counts."""

QUIC_HEADER_BYTES = 36
"""In front of and behind the payload of a full packet (RFC 9000, sections 17.3 and 19.8; RFC 9001,
section 5.3): flags 1, connection id 8, packet number 2 to 4, stream frame 7 to 9, tag 16."""

HEADER_BYTES = {
    "udt": UDT_HEADER_BYTES,
    "rbudp": RBUDP_HEADER_BYTES,
    "quic": QUIC_HEADER_BYTES,
}
"""All of them by transport."""
