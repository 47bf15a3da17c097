"""iperf3's letters that are no option of their own: each stands for options of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Letter:
    """One spelling people know from iperf3."""

    name: str
    flags: tuple[str, ...]
    metavar: str | None
    help: str
    sets: tuple[str, ...]
    """Paths of the options that it sets."""
    sweeps: bool = True


_BUFFERS = tuple(
    f"{section}{end}_buffer_bytes"
    for section in ("tcp.", "udp.", "udt.", "rbudp.udp_", "quic.udp_")
    for end in ("send", "receive")
)
_OFFLOADS = tuple(
    f"{section}.{way}" for section in ("udp", "udt", "rbudp", "quic") for way in ("gso", "gro")
)

LETTERS: tuple[Letter, ...] = (
    Letter(
        "udp", ("-u", "--udp"), None, "Send UDP datagrams: same as --transport udp.", ("transport",)
    ),
    Letter(
        "reverse",
        ("-R", "--reverse"),
        None,
        "Send from server to client: same as --direction reverse.",
        ("direction",),
    ),
    Letter(
        "bidir",
        ("--bidir",),
        None,
        "Send both ways at once: same as --direction bidirectional.",
        ("direction",),
    ),
    Letter(
        "length",
        ("-l", "--length"),
        "SIZE",
        "Set the block size (--block) or, with -u, the size of a datagram (--packet).",
        ("block_bytes", "udp.packet_bytes"),
    ),
    Letter(
        "window",
        ("-w", "--window"),
        "SIZE",
        "Set the send and receive buffers of both ends.",
        _BUFFERS,
    ),
    Letter(
        "blocks",
        ("-k", "--blockcount"),
        "N",
        "Send N blocks of the size in -l instead of for a time.",
        ("total_bytes",),
        sweeps=False,
    ),
    Letter(
        "zerocopy",
        ("-Z", "--zerocopy"),
        None,
        "Send with sendfile; --zerocopy=MODE is --send-mode MODE.",
        ("tcp.send_mode",),
    ),
    Letter(
        "skip_rx_copy",
        ("--skip-rx-copy",),
        None,
        "Discard received data in the kernel: same as --receive-mode discard.",
        ("tcp.receive_mode",),
    ),
    Letter(
        "gsro",
        ("--gsro",),
        None,
        "Offload datagrams at both ends: same as --gso --gro (default on).",
        _OFFLOADS,
    ),
    Letter(
        "affinity",
        ("-A", "--affinity"),
        "N[,M]",
        "Pin the client's streams to CPU N and the server's to M.",
        ("client_cpus", "server_cpus"),
    ),
    Letter(
        "bind",
        ("-B", "--bind"),
        "ADDR[%DEV]",
        "Send all streams from this address and device.",
        ("pairs",),
    ),
    Letter("version4", ("-4", "--version4"), None, "Use IPv4 only.", ("ip_version",)),
    Letter("version6", ("-6", "--version6"), None, "Use IPv6 only.", ("ip_version",)),
    Letter(
        "dscp",
        ("--dscp",),
        "NAME",
        "Set the DSCP of data packets, by name (EF, AF41, CS1) or number.",
        ("tos",),
    ),
)

PEER_FLAGS = frozenset(
    ("-t", "--time", "-i", "--interval", "-O", "--omit", "-b", "--bitrate", "--fq-rate")
)
"""Flags of iperf3 behind which a number needs no unit: seconds, or bits per second."""

PEER_PREFIX = "iperf3_"
"""Before the name of an option that came by such a flag, where it has others too."""

_PRECEDENCE = {f"af{cls}{drop}": 8 * cls + 2 * drop for cls in range(1, 5) for drop in range(1, 4)}
DSCP_NAMES: dict[str, int] = {
    **{f"cs{cls}": 8 * cls for cls in range(8)},
    **_PRECEDENCE,
    "ef": 46,
    "va": 44,
    "le": 1,
}
"""DSCP by name: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE)."""


def dscp_value(text: str) -> int:
    """DSCP from its name or number.

    Raises:
        ValueError: for another name, or a number outside 0 to 63.
    """
    word = text.strip().lower()
    if word in DSCP_NAMES:
        return DSCP_NAMES[word]
    try:
        value = int(word, 0)
    except ValueError:
        value = -1
    if not 0 <= value <= 63:
        raise ValueError(
            f"{text!r} is not a DSCP; allowed: 0 to 63, {', '.join(sorted(DSCP_NAMES))}"
        )
    return value
