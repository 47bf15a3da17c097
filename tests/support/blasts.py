"""RBUDP runs made by hand: streams with their blasts, and what the path carried before."""

from __future__ import annotations

from typing import Any, cast

from farline.spec._types import Blast, PathCheck, RunRecord
from tests.support.runs import CLIENT, RECEIVER, SENDER, SERVER, run_record, stream

PAYLOAD = 1456
RESOLVED = {"payload_bytes": 64 << 20, "in_flight": 8}
"""What a record's spec always says."""

GRANTED: dict[str, Any] = {
    "mss_bytes": None,
    "congestion_control": None,
    "packet_bytes": PAYLOAD + 16,
    "send_buffer_bytes": 8 << 20,
    "receive_buffer_bytes": 128 << 20,
    "gso": True,
    "gro": True,
    "min_rtt_us": 110_000,
}


def blast(size_bytes: int = 64 << 20, *, lost: int = 0, passes: int = 1, **more: int) -> Blast:
    """One blast, as its sender tells of it; 0.88 s long if nothing else is said."""
    packets = -(-size_bytes // PAYLOAD)
    made: dict[str, int] = {
        "bytes": size_bytes,
        "passes": passes,
        "packets": packets,
        "first_pass_lost_packets": lost,
        "sent_packets": packets + lost,
        "elapsed_us": 880_000,
    }
    return cast(Blast, made | more)


def path_check(carried_bps: float, rate_bps: float = 610e6, **more: Any) -> PathCheck:
    """What was measured before the blasts, over 110 ms without a queue."""
    made: dict[str, Any] = {
        "rate_bps": int(rate_bps),
        "carried_bps": int(carried_bps),
        "min_rtt_us": 110_000,
        "idle_rtt_us": 110_000,
        "lost_share": 0.0,
        "shared": carried_bps < 0.95 * rate_bps,
    }
    return cast(PathCheck, made | more)


def rbudp_record(
    *blasts: Blast,
    bps: float = 600e6,
    rate_bps: int = 610_000_000,
    check: PathCheck | None = None,
    sender: dict[str, Any] | None = None,
    receiver: dict[str, Any] | None = None,
    rbudp: dict[str, Any] | None = None,
    **more: Any,
) -> RunRecord:
    """A forward run of 10 s with the given blasts, `bps` delivered of the stated rate."""
    kept = list(blasts)
    lost = sum(each["first_pass_lost_packets"] for each in kept)
    moved = round(bps * 10 / 8)
    told: dict[str, Any] = {"bytes": moved, "whole_blasts": len(kept), "path_check": check}
    sent = moved // PAYLOAD + lost
    sends = {"packets": sent, "retransmits": lost, "blasts": kept, **GRANTED, **told}
    heard = [cast(Blast, {**each, "sent_packets": 0}) for each in kept]
    takes = {"packets": sent, "lost_packets": lost, "blasts": heard, **GRANTED, **told}
    spec = {"transport": "rbudp", "rate_bps": rate_bps, "rbudp": {**RESOLVED, **(rbudp or {})}}
    return run_record(
        stream(CLIENT, SENDER, **(sends | (sender or {}))),
        stream(SERVER, RECEIVER, **(takes | (receiver or {}))),
        spec=spec | more.pop("spec", {}),
        **more,
    )
