"""What is asked of RBUDP's models by one command line, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from farline.errors import SystemFailure
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

_PLOT_PLACES = 120
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


def draw(request: Request, measured: tuple[Measured, ...], path: Path) -> None:
    """Writes the picture: over payload unless a curve over rate was asked for.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    from farline.cli.model_text import case_name
    from farline.plots.rbudp_model_figure import NamedCurves, draw_rbudp_model
    from farline.plots.style import paper_style, save

    over = request.over or "payload"
    places = _plot_places(request.case, over, measured)
    named = [
        NamedCurves(case_name(case, over), case_curves(case, request, over, places))
        for case in cases_of(request)
    ]
    try:
        with paper_style():
            save(draw_rbudp_model(named, measured), path.with_suffix(""), [path.suffix[1:]])
    except OSError as error:
        raise SystemFailure(f"--plot {path}: {error.strerror or error}") from None


def _plot_places(case: Case, over: Variable, measured: Iterable[Measured]) -> list[float]:
    """Close places over the range of the table, and wherever something was measured."""
    own = [one.case.payload_bytes if over == "payload" else one.case.rate_bps for one in measured]
    shown = [*table_places(case, over), *own]
    if over == "payload":
        found = np.geomspace(min(shown), max(shown), _PLOT_PLACES)
    else:
        found = np.linspace(max(1.0, max(shown) / _PLOT_PLACES), max(shown), _PLOT_PLACES)
    return [float(place) for place in found]
