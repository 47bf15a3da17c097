"""What the blasts of an RBUDP run come to: passes, losses of the first pass, efficiency.

A blast is a payload that is sent at the stated rate and repeated until nothing of it is missing
(He et al. 2002, section 3). Records keep the first 256 of each stream; the counters of the streams
have all. Formulas are those of He et al. 2002, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from farline.profiles.series import SENDER
from farline.spec._types import Blast, PathCheck, RunRecord, StreamRecord


@dataclass(frozen=True)
class BlastRow:
    """One blast of one stream, numbered from 0 in the order in which they ended."""

    stream: int
    sender_end: int
    number: int
    blast: Blast

    @property
    def throughput_bps(self) -> float:
        """Payload bits per second, from its first packet until it was known to be whole."""
        return _rate_bps(self.blast["bytes"], self.blast["elapsed_us"])

    @property
    def lost_share(self) -> float:
        """Share of its packets that were missing after they had been sent once."""
        return _share(self.blast["first_pass_lost_packets"], self.blast["packets"])

    @property
    def repeated_packets(self) -> int | None:
        """Packets sent again; None where only the receiver told of the blast."""
        sent = self.blast["sent_packets"]
        return max(0, sent - self.blast["packets"]) if sent else None


@dataclass(frozen=True)
class Blasts:
    """The blasts of one direction together; `whole` counts those too that no row was kept of.

    `elapsed_us` is the sum over the blasts that were kept.
    """

    whole: int
    kept: int
    payload_bytes: int
    packets: int
    first_pass_lost_packets: int
    passes_mean: float
    passes_most: int
    elapsed_us: int
    throughput_bps: float

    @property
    def first_pass_lost_share(self) -> float:
        """Share of the packets missing after the first pass ("first blast" in He et al. 2002)."""
        return _share(self.first_pass_lost_packets, self.packets)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _rate_bps(moved_bytes: int, elapsed_us: int) -> float:
    return moved_bytes * 8e6 / elapsed_us if elapsed_us else 0.0


def blast_rows(record: RunRecord) -> list[BlastRow]:
    """Every blast that the record has, stream by stream.

    What the sender says counts: it knows what was repeated. Where it did not report, the receiver
    stands in.
    """
    rows = []
    for number in sorted({stream["stream"] for stream in record["streams"]}):
        told = _telling(stream for stream in record["streams"] if stream["stream"] == number)
        if told is not None:
            sends = told["end"] if told["role"] == SENDER else 1 - told["end"]
            kept = enumerate(told.get("blasts") or ())
            rows += [BlastRow(number, sends, index, blast) for index, blast in kept]
    return rows


def _telling(ends: Iterable[StreamRecord]) -> StreamRecord | None:
    """The end of a stream that tells of its blasts, the sender first."""
    known = [end for end in ends if end.get("blasts")]
    return min(known, key=lambda end: end["role"], default=None)


def blasts_of(record: RunRecord, sender_end: int) -> Blasts | None:
    """The blasts of the direction in which `sender_end` sends; None where none became whole.

    The throughput is that of a blast by itself: all payload over all times, which overlap where
    several are under way at once.
    """
    rows = [row for row in blast_rows(record) if row.sender_end == sender_end]
    if not rows:
        return None
    blasts = [row.blast for row in rows]
    elapsed_us = sum(blast["elapsed_us"] for blast in blasts)
    return Blasts(
        whole=max(len(rows), _whole(record, sender_end)),
        kept=len(rows),
        payload_bytes=max(blast["bytes"] for blast in blasts),
        packets=sum(blast["packets"] for blast in blasts),
        first_pass_lost_packets=sum(blast["first_pass_lost_packets"] for blast in blasts),
        passes_mean=sum(blast["passes"] for blast in blasts) / len(blasts),
        passes_most=max(blast["passes"] for blast in blasts),
        elapsed_us=elapsed_us,
        throughput_bps=_rate_bps(sum(blast["bytes"] for blast in blasts), elapsed_us),
    )


def _whole(record: RunRecord, sender_end: int) -> int:
    """Blasts that ended whole, by the end of each stream that counted more."""
    counts: dict[int, int] = {}
    for stream in record["streams"]:
        sends = stream["end"] if stream["role"] == SENDER else 1 - stream["end"]
        if sends == sender_end:
            number = stream["stream"]
            counts[number] = max(counts.get(number, 0), stream.get("whole_blasts", 0))
    return sum(counts.values())


def path_checks_of(record: RunRecord, sender_end: int) -> list[PathCheck]:
    """What was measured before the blasts from `sender_end` began: one for each pair of addresses.

    Both ends of a stream hold the same.
    """
    found: dict[int, PathCheck] = {}
    for stream in record["streams"]:
        sends = stream["end"] if stream["role"] == SENDER else 1 - stream["end"]
        check = stream.get("path_check")
        if check and sends == sender_end:
            found.setdefault(stream["stream"], check)
    return list(found.values())


def path_check_of(record: RunRecord, sender_end: int) -> PathCheck | None:
    """The worst of them, a shared path first; None where nobody looked."""
    checks = path_checks_of(record, sender_end)
    return min(
        checks, key=lambda each: (not each["shared"], carried_share(each) or 1), default=None
    )


def carried_share(check: PathCheck) -> float | None:
    """What the path carried of the stated rate; None where no train was measured.

    None was at rate 0 or a very low one, and where nothing of the trains came.
    """
    stated_bps, carried_bps = check["rate_bps"], check["carried_bps"]
    return carried_bps / stated_bps if stated_bps and carried_bps else None


def allowed_efficiency(
    rate_bps: float, rtt_s: float, payload_bytes: float, *, in_flight: int = 1, passes: float = 1.0
) -> float:
    """Share of the sending rate that a payload lets through (He et al. 2002, eq. 4).

    Eq. 4 is for one blast and one pass: 1 / (1 + RTT·B/S). Each pass more waits for a report of
    its own; with `in_flight` blasts under way as many times the payload goes in the same time.
    """
    waiting = passes * rtt_s * rate_bps / 8 / payload_bytes
    return min(1.0, in_flight / (1.0 + waiting))


def payload_for(rate_bps: float, rtt_s: float, efficiency: float) -> float:
    """Payload bytes for a wanted share of the sending rate: S = RTT·B·r / (1 − r), from eq. 4."""
    return rtt_s * rate_bps / 8 * efficiency / (1.0 - efficiency)
