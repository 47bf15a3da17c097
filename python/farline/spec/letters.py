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
    sweeps: bool = True


LETTERS: tuple[Letter, ...] = (
    Letter("udp", ("-u", "--udp"), None, "Send datagrams: --transport udp."),
    Letter("reverse", ("-R", "--reverse"), None, "Server to client: --direction reverse."),
    Letter("bidir", ("--bidir",), None, "Both ways at once: --direction bidirectional."),
    Letter(
        "length",
        ("-l", "--length"),
        "SIZE",
        "Block size (--block); with -u, the size of a datagram (--packet).",
    ),
    Letter("window", ("-w", "--window"), "SIZE", "Both buffers of the transport, of both ends."),
    Letter(
        "blocks",
        ("-k", "--blockcount"),
        "N",
        "Send N blocks of the size -l says, instead of a duration.",
        sweeps=False,
    ),
    Letter(
        "zerocopy", ("-Z", "--zerocopy"), None, "Send by sendfile; --zerocopy=MODE is --send-mode."
    ),
    Letter(
        "skip_rx_copy", ("--skip-rx-copy",), None, "Receive by discard: --receive-mode discard."
    ),
    Letter(
        "gsro", ("--gsro",), None, "Offload of datagrams at both ends: --gso --gro (the default)."
    ),
    Letter(
        "affinity",
        ("-A", "--affinity"),
        "N[,M]",
        "CPU of the client's streams, and of the server's.",
    ),
    Letter("bind", ("-B", "--bind"), "ADDR[%DEV]", "Source address and device of all streams."),
    Letter("version4", ("-4", "--version4"), None, "IPv4 only."),
    Letter("version6", ("-6", "--version6"), None, "IPv6 only."),
    Letter("dscp", ("--dscp",), "NAME", "DSCP of data packets, by name (EF, AF41, CS1) or number."),
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
            f"{text!r} is no DSCP: allowed are 0 to 63, {', '.join(sorted(DSCP_NAMES))}"
        )
    return value
