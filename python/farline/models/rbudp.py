"""What RBUDP's models are asked and what they answer: a case, a prediction.

Symbols of He et al. 2002, section 4: `payload_bytes` is S_total, `rate_bps` is B_send (there in
bytes), `rtt_s` is 2 T_prop, `loss` is L, `packet_payload_bytes` is S_packet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

ModelName = Literal["printed", "passes", "early"]
"""`printed`: He et al. 2002 as it stands. `passes`: corrected, one report after each pass, the
paper's protocol. `early`: corrected, reports while the blast goes on, farline's default."""

MODEL_NAMES: tuple[ModelName, ...] = ("printed", "passes", "early")

PRINTED_PACKET_BYTES = 1500
"""S_packet of He et al. 2002: the MTU of Ethernet, headers not taken off."""

HEADER_BYTES = 16
"""RBUDP's own header in each datagram of farline."""

PACKET_PAYLOAD_BYTES = 1500 - 28 - HEADER_BYTES
"""Payload of a packet of farline that fills an Ethernet frame: less IPv4, UDP and RBUDP headers."""

ETHERNET_OVERHEAD_BYTES = 38 + 28 + HEADER_BYTES
"""What a packet takes of an Ethernet line besides its payload: preamble, header, checksum and gap
(38), IPv4 and UDP (28), RBUDP."""

INITIAL_WINDOW_SEGMENTS = 10
"""Segments that TCP sends before it hears anything (RFC 6928)."""

LOSS_MAX = 0.9
"""Largest loss that is modelled: beyond it a blast is no way to move data."""

PAYLOAD_MAX_BYTES = 10**18


@dataclass(frozen=True, slots=True)
class Case:
    """One blast over one path.

    Raises:
        ValueError: for a quantity out of range; the line names it and says what is allowed.
    """

    payload_bytes: int
    rate_bps: float
    """Rate of sending: payload bits per second where `wire_overhead_bytes` is 0."""
    rtt_s: float
    loss: float = 0.0
    """Share of the packets of a pass that never come; each is lost by itself."""
    packet_payload_bytes: int = PACKET_PAYLOAD_BYTES
    wire_overhead_bytes: int = 0
    """Bytes besides its payload that a packet takes of `rate_bps`; corrected models only."""
    settle_s: float | None = None
    """Wait for stragglers before a report of gaps; `settle_rule_s` if absent."""
    interval_s: float | None = None
    """Time between early reports; `interval_rule_s` if absent."""
    initial_window_segments: int = INITIAL_WINDOW_SEGMENTS

    def __post_init__(self) -> None:
        """Refuses what no blast can be."""
        _within("payload_bytes", self.payload_bytes, 1, PAYLOAD_MAX_BYTES, "bytes")
        _within("rate_bps", self.rate_bps, 1, 1e15, "bit/s")
        _within("rtt_s", self.rtt_s, 0, 3600, "seconds")
        _within("loss", self.loss, 0, LOSS_MAX, "of the packets")
        _within("packet_payload_bytes", self.packet_payload_bytes, 1, 65_507, "bytes")
        _within("wire_overhead_bytes", self.wire_overhead_bytes, 0, 65_535, "bytes")
        _within("settle_s", self.settling_s, 0, 3600, "seconds")
        _within("interval_s", self.reporting_s, 0.001, 3600, "seconds")
        _within("initial_window_segments", self.initial_window_segments, 1, 1 << 20, "segments")

    @property
    def packets(self) -> int:
        """Packets of the payload, the short last one included."""
        return -(-self.payload_bytes // self.packet_payload_bytes)

    @property
    def payload_rate_bps(self) -> float:
        """Payload bits per second while packets are being sent."""
        whole = self.packet_payload_bytes + self.wire_overhead_bytes
        return self.rate_bps * self.packet_payload_bytes / whole

    @property
    def settling_s(self) -> float:
        """The wait before a report of gaps: as stated, or by the rule."""
        return settle_rule_s(self.rtt_s) if self.settle_s is None else self.settle_s

    @property
    def reporting_s(self) -> float:
        """The time between early reports: as stated, or by the rule."""
        return interval_rule_s(self.rtt_s) if self.interval_s is None else self.interval_s


@dataclass(frozen=True, slots=True)
class Passes:
    """How often the packet that was lost most often was sent: N_resend + 1 of He et al. 2002.

    With early reports it is the same count, though nobody waits for whole passes. `low` and `high`
    hold nine blasts of ten between them (5 % and 95 %); where nothing is left to chance all three
    are equal.
    """

    mean: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model says of a case; times are means and add up to `time_s`."""

    model: ModelName
    case: Case
    passes: Passes
    send_s: float
    """Sending the payload once."""
    resend_s: float
    """Sending packets again."""
    report_s: float
    """Sending the reports: the paper's T_ack, all passes together; TCP's extra rounds included."""
    waiting_s: float
    """Round trips, and waits for stragglers, in which nothing is sent."""
    resent_bytes: float
    """Payload bytes that were sent again: S_resend."""
    time_low_s: float
    """At least nine blasts of ten take longer than this and shorter than `time_high_s`."""
    time_high_s: float

    @property
    def time_s(self) -> float:
        """T_total, from the first packet until the sender knows that all has come."""
        return self.send_s + self.resend_s + self.report_s + self.waiting_s

    @property
    def throughput_bps(self) -> float:
        """B_achievable: payload over time."""
        return 8 * self.case.payload_bytes / self.time_s

    @property
    def efficiency(self) -> float:
        """B_achievable over B_send."""
        return self.throughput_bps / self.case.rate_bps

    def sustained_bps(self, in_flight: int) -> float:
        """Throughput of many blasts one after the other, `in_flight` of them under way at once.

        The bounds of a closed system with one server (Denning and Buzen 1978, section 6): never
        above what leaves the sender without a pause, never above `in_flight` blasts in the time
        of one.
        """
        if in_flight < 1:
            raise ValueError(f"in_flight: {in_flight} is out of range; allowed: 1 or more")
        bits = 8 * self.case.payload_bytes
        sent_s = self.send_s * (1 + self.resent_bytes / self.case.payload_bytes)
        return min(bits / sent_s, in_flight * bits / self.time_s)


def settle_rule_s(rtt_s: float) -> float:
    """How long farline waits for stragglers: an eighth of the round trip, from 0.2 to 50 ms."""
    return min(max(0.0002, rtt_s / 8), 0.05)


def interval_rule_s(rtt_s: float) -> float:
    """How often farline asks for early reports: a quarter of the round trip, 5 to 50 ms."""
    return min(max(0.005, rtt_s / 4), 0.05)


def _within(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(f"{name}: {value:g} is out of range; allowed: {low:g} to {high:g} {unit}")
