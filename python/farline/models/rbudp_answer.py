"""What may be asked of RBUDP's models at once, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from farline.models.rbudp import PAYLOAD_MAX_BYTES, Case, ModelName, Prediction
from farline.models.rbudp_corrected import predict
from farline.models.rbudp_curves import (
    Curve,
    Variable,
    crossings,
    curve,
    payload_for,
    round_places,
)
from farline.models.rbudp_gaps import Gap, as_printed, gaps
from farline.models.rbudp_measured import Measured
from farline.models.rbudp_printed import printed_payload_bytes

_RATE_STEPS = 10


@dataclass(frozen=True)
class Request:
    """What was asked: the case, which models, and what else to say of them."""

    case: Case
    models: tuple[ModelName, ...]
    in_flight: int
    efficiency: float | None
    over: Variable | None
    beside: Case | None
    plot: Path | None


@dataclass(frozen=True)
class Answer:
    """What came out."""

    predictions: tuple[Prediction, ...]
    gaps: tuple[Gap, ...]
    """Where the printed equations mislead; empty where these were not asked for."""
    equation_4_bytes: float | None
    """The paper's closed form for the payload of the wanted efficiency; None where none is."""
    payloads: dict[ModelName, int | None]
    """Payload in bytes for the wanted efficiency by each model; None where none reaches it."""
    curves: tuple[tuple[Case, tuple[Curve, ...]], ...]
    """Of the case, then of the one beside it."""
    crossings: dict[ModelName, tuple[int, ...]]
    """By each model, payloads in bytes at which the two cases give the same."""
    measured: tuple[Measured, ...]


def answer_of(request: Request, measured: tuple[Measured, ...]) -> Answer:
    """Asks the models."""
    wanted, case = request.efficiency, request.case
    closed = printed_payload_bytes(case.rate_bps, case.rtt_s, wanted) if wanted else None
    return Answer(
        predictions=tuple(predict(own, name) for name, own in model_cases(case, request.models)),
        gaps=gaps(case) if "printed" in request.models else (),
        equation_4_bytes=closed,
        payloads=_payloads(request),
        curves=_curves(request),
        crossings=_crossings(request),
        measured=measured,
    )


def cases_of(request: Request) -> list[Case]:
    """The case, and the one beside it."""
    return [request.case] if request.beside is None else [request.case, request.beside]


def model_cases(case: Case, models: Iterable[ModelName]) -> list[tuple[ModelName, Case]]:
    """Each model with the case as it takes it: the printed one knows packets of 1500 bytes."""
    return [(name, as_printed(case) if name == "printed" else case) for name in models]


def case_curves(
    case: Case, request: Request, over: Variable, places: list[float]
) -> tuple[Curve, ...]:
    """The curve of each model that was asked for."""
    return tuple(curve(own, name, over, places) for name, own in model_cases(case, request.models))


def _curves(request: Request) -> tuple[tuple[Case, tuple[Curve, ...]], ...]:
    over = request.over
    if over is None:
        return ()
    places = table_places(request.case, over)
    return tuple((case, case_curves(case, request, over, places)) for case in cases_of(request))


def _payloads(request: Request) -> dict[ModelName, int | None]:
    if request.efficiency is None:
        return {}
    found: dict[ModelName, int | None] = {}
    for name, own in model_cases(request.case, request.models):
        try:
            found[name] = payload_for(own, request.efficiency, name)
        except ValueError:
            # The share was checked: what is left to refuse is that no payload reaches it.
            found[name] = None
    return found


def _crossings(request: Request) -> dict[ModelName, tuple[int, ...]]:
    if request.beside is None:
        return {}
    places = table_places(request.case, "payload")
    low, high = round(places[0]), round(places[-1])
    pairs = zip(
        model_cases(request.case, request.models),
        model_cases(request.beside, request.models),
        strict=True,
    )
    return {
        name: crossings(_throughput(one, name), _throughput(other, name), low, high)
        for (name, one), (_, other) in pairs
    }


def _throughput(case: Case, name: ModelName) -> Callable[[int], float]:
    return lambda size: predict(replace(case, payload_bytes=size), name).throughput_bps


def table_places(case: Case, over: Variable) -> list[float]:
    """Round payloads from a thousandth to ten times the case's; or tenths of its rate."""
    if over == "payload":
        own = case.payload_bytes
        places = {*round_places(max(1, own / 1000), min(own * 10, PAYLOAD_MAX_BYTES)), own}
        return sorted(float(place) for place in places)
    steps = range(1, _RATE_STEPS + 1)
    return sorted({float(max(1, round(case.rate_bps * step / _RATE_STEPS))) for step in steps})
