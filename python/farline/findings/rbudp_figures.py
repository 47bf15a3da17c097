"""What only an RBUDP run has: blasts, passes, what the path carried beforehand, the known bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farline.findings.udt_figures import wire_loss
from farline.profiles.blasts import (
    Blasts,
    allowed_efficiency,
    blasts_of,
    carried_share,
    path_check_of,
)
from farline.profiles.series import SENDER, Columns, known, rows_of
from farline.spec._types import PathCheck, RunRecord, StreamRecord


@dataclass(frozen=True)
class RbudpFigures:
    """One direction of an RBUDP run; `None` is "not known".

    `payload_bytes` is the payload of a whole blast (S of He et al. 2002), `sent_bytes` what one
    stream moved in all. `paced_share` is the part of the time in which senders waited for their own
    pacing, `in_flight_mean` how many blasts of a stream were in flight on average. Of an emulated
    path, `wire_loss` says whether a link drops packets on purpose, `drops` are datagrams that a
    host dropped because a buffer was full.
    """

    packet_bytes: int | None
    payload_bytes: int
    sent_bytes: float
    in_flight: int
    early: bool
    receiver: str
    checksum: bool
    shared_path: str
    loss_bound: float | None
    udp_buffer_asked: int | None
    blasts: Blasts | None
    path_check: PathCheck | None
    paced_share: float | None
    in_flight_mean: float | None
    wire_loss: bool | None
    emulated: bool
    drops: int

    @property
    def passes(self) -> float:
        """Passes that each blast waits for: repeats while a blast goes on cost no wait."""
        return self.blasts.passes_mean if self.blasts and not self.early else 1.0

    @property
    def shared(self) -> bool:
        """Whether the path showed that others use it, or cannot carry the rate."""
        return bool(self.path_check and self.path_check["shared"])

    @property
    def carried_share(self) -> float | None:
        """What the path carried of the rate before the blasts; None where it was not measured."""
        return carried_share(self.path_check) if self.path_check else None

    def window_efficiency(self, rate_bps: float, rtt_us: float) -> float:
        """Share of a stream's rate that its blasts under way allow (He et al. 2002, eq. 4)."""
        return allowed_efficiency(
            rate_bps,
            rtt_us / 1e6,
            min(self.payload_bytes, self.sent_bytes or self.payload_bytes),
            in_flight=self.in_flight,
            passes=self.passes,
        )

    def total_efficiency(self, rate_bps: float, rtt_us: float) -> float:
        """Share of a stream's rate that its payload in all lets through (He et al. 2002, eq. 4)."""
        return allowed_efficiency(rate_bps, rtt_us / 1e6, self.sent_bytes or self.payload_bytes)


def rbudp_figures_of(
    record: RunRecord,
    samples: Columns,
    senders: Sequence[StreamRecord],
    receivers: Sequence[StreamRecord],
    sender_end: int,
) -> RbudpFigures | None:
    """The figures of a direction; None where the run is no RBUDP run."""
    spec: dict[str, Any] = dict(record["spec"])
    if spec.get("transport") != "rbudp":
        return None
    asked: dict[str, Any] = spec.get("rbudp") or {}
    rows = rows_of(samples, SENDER, sender_end)
    path = record.get("path")
    blasts = blasts_of(record, sender_end)
    moved = [stream["bytes"] for stream in receivers or senders]
    return RbudpFigures(
        packet_bytes=senders[0]["granted"]["packet_bytes"] if senders else None,
        payload_bytes=asked["payload_bytes"],
        sent_bytes=sum(moved) / len(moved) if moved else 0.0,
        in_flight=asked["in_flight"],
        early=asked.get("early", True),
        receiver=asked.get("receiver", "gather"),
        checksum=asked.get("checksum", True),
        shared_path=asked.get("shared_path", "warn"),
        loss_bound=asked.get("loss_bound"),
        udp_buffer_asked=asked.get("udp_receive_buffer_bytes"),
        blasts=blasts,
        path_check=path_check_of(record, sender_end),
        paced_share=_paced_share(samples, rows),
        in_flight_mean=_in_flight_mean(blasts, senders),
        wire_loss=wire_loss(path["topology"] if path else None),
        emulated=bool(path),
        drops=path["stamp"]["receive_buffer_drops"] if path else 0,
    )


def _paced_share(samples: Columns, rows: Sequence[int]) -> float | None:
    """Part of the time; None where no sender says how long it waited."""
    waits = [row for row in rows if known(samples, "paced_wait_us", [row])]
    span_us = sum(samples["end_us"][row] - samples["start_us"][row] for row in waits)
    return sum(known(samples, "paced_wait_us", waits)) / span_us if span_us else None


def _in_flight_mean(blasts: Blasts | None, senders: Sequence[StreamRecord]) -> float | None:
    """Time of all blasts over that of all senders; of blasts without a row, as the others."""
    run_us = sum(stream["elapsed_us"] for stream in senders)
    if blasts is None or not run_us:
        return None
    return blasts.elapsed_us * blasts.whole / blasts.kept / run_us
