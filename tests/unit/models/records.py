"""Records of RBUDP runs, made by hand."""

from __future__ import annotations

from typing import Any

from tests.support.records import make_record, make_spec


def made_blast(
    payload_bytes: int, elapsed_s: float, passes: int = 6, lost_packets: int = 28_846
) -> dict[str, Any]:
    """One blast of packets of 1456 bytes, as a record has it."""
    packets = -(-payload_bytes // 1456)
    return {
        "bytes": payload_bytes, "passes": passes, "packets": packets,
        "first_pass_lost_packets": lost_packets, "sent_packets": packets + lost_packets,
        "elapsed_us": round(elapsed_s * 1e6),
    }  # fmt: skip


def made_run(
    number: int,
    blasts: list[dict[str, Any]],
    *,
    rate_bps: int = 610_000_000,
    early: bool = False,
    in_flight: int = 1,
    elapsed_s: float = 10.0,
) -> dict[str, Any]:
    """The record of an RBUDP run with one stream: its sender's account and its receiver's."""
    options = {"early": early, "in_flight": in_flight, "payload_bytes": 64 << 20}
    spec = make_spec(transport="rbudp", rate_bps=rate_bps, rbudp=options)
    record = make_record(number, spec)
    sent = sum(blast["bytes"] for blast in blasts)
    own = {"stream": 0, "bytes": sent, "elapsed_us": round(elapsed_s * 1e6)}
    received = [{**blast, "sent_packets": 0, "elapsed_us": 1} for blast in blasts]
    record["streams"] = [
        {**own, "end": 0, "role": 0, "blasts": blasts},
        {**own, "end": 1, "role": 1, "blasts": received},
    ]
    return record
