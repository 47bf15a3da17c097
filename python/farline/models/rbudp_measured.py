"""Measured blasts beside what the corrected model says of them.

A run's own facts come first: its rate, whether reports came early, and, where it went over an
emulated path, that path's round-trip time and loss. What a record does not say is as stated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from farline.models.rbudp import Case, ModelName, Prediction
from farline.models.rbudp_corrected import predict

SENDS = 0
"""`role` of the end of a stream that sends: only that one knows when it was told of the end."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One blast of a run, or all blasts of one stream where several were under way at once.

    `passes` and `first_pass_loss` are of a single blast; `passes` is None for several.
    """

    run_id: str
    stream: int
    case: Case
    model: ModelName
    in_flight: int
    throughput_bps: float
    passes: int | None
    first_pass_loss: float
    """Share of the packets that were missing after the first pass."""

    @property
    def prediction(self) -> Prediction:
        """What the model says of one blast alone."""
        return predict(self.case, self.model)

    @property
    def predicted_bps(self) -> float:
        """What the model says of what was measured."""
        return (
            self.prediction.sustained_bps(self.in_flight)
            if self.in_flight > 1
            else (self.prediction.throughput_bps)
        )

    @property
    def excess(self) -> float:
        """Measured over predicted throughput, less 1."""
        return self.throughput_bps / self.predicted_bps - 1


def measured(
    record: Mapping[str, Any], stated: Case, path_rtt_s: float | None, path_loss: float | None
) -> tuple[Measured, ...]:
    """What the blasts of one run's record came to, stream by stream.

    `path_rtt_s` and `path_loss` are those of the emulated path it went over, None for any other.
    Empty when it is no RBUDP run, or its sending end kept no blast that ended whole.

    Raises:
        ValueError: when the record's figures make no case.
    """
    spec = record["spec"]
    if spec["transport"] != "rbudp":
        return ()
    options = spec["rbudp"]
    case = replace(
        stated,
        rate_bps=spec.get("rate_bps") or stated.rate_bps,
        rtt_s=stated.rtt_s if path_rtt_s is None else path_rtt_s,
        loss=stated.loss if path_loss is None else path_loss,
    )
    model: ModelName = "early" if options["early"] else "passes"
    found: list[Measured] = []
    for stream in record["streams"]:
        blasts = stream.get("blasts") or []
        if stream["role"] != SENDS or not blasts:
            continue
        own = _Run(str(record["run_id"]), stream["stream"], case, model, options["in_flight"])
        if own.in_flight == 1 or len(blasts) == 1:
            found += [_one(own, blast) for blast in blasts if blast["elapsed_us"] > 0]
        else:
            found += _together(own, record["streams"], blasts)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Run:
    run_id: str
    stream: int
    case: Case
    model: ModelName
    in_flight: int


def _one(own: _Run, blast: Mapping[str, Any]) -> Measured:
    return Measured(
        run_id=own.run_id,
        stream=own.stream,
        case=_case_of(own.case, blast),
        model=own.model,
        in_flight=1,
        throughput_bps=8e6 * blast["bytes"] / blast["elapsed_us"],
        passes=blast["passes"],
        first_pass_loss=blast["first_pass_lost_packets"] / blast["packets"],
    )


def _together(
    own: _Run, streams: Sequence[Mapping[str, Any]], blasts: Sequence[Mapping[str, Any]]
) -> list[Measured]:
    """All blasts of a stream as its receiver saw them; none where it gave no account."""
    lost = sum(blast["first_pass_lost_packets"] for blast in blasts)
    return [
        Measured(
            run_id=own.run_id,
            stream=own.stream,
            case=_case_of(own.case, blasts[0]),
            model=own.model,
            in_flight=own.in_flight,
            throughput_bps=8e6 * stream["bytes"] / stream["elapsed_us"],
            passes=None,
            first_pass_loss=lost / sum(blast["packets"] for blast in blasts),
        )
        for stream in streams
        if stream["stream"] == own.stream and stream["role"] != SENDS and stream["elapsed_us"] > 0
    ]


def _case_of(case: Case, blast: Mapping[str, Any]) -> Case:
    """The case with the blast's payload, and packets of a size that gives its count of them."""
    whole = replace(case, payload_bytes=blast["bytes"])
    if whole.packets == blast["packets"]:
        return whole
    return replace(whole, packet_payload_bytes=-(-blast["bytes"] // blast["packets"]))
