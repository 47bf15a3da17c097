"""Pages of fairness measurements: who shared a line how, over the load of the others."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from farline.errors import UsageError
from farline.portal.documents import Name
from farline.portal.fairness_list import fairness_list, outcome_at
from farline.portal.pages.drawing import page
from farline.portal.pages.parts import Parts
from farline.portal.problems import NotFoundError

if TYPE_CHECKING:
    from farline.campaign.contention.outcome import Outcome
    from farline.fairness.contest import Contest, Estimate
    from farline.store import Store

MEASURES = (
    ("utilisation", "Used"), ("jain_demand", "Jain"), ("share", "Share"), ("harm", "Harm"),
    ("harm_fair", "Harm by a fair sharer"), ("harm_delay", "Harm to delay"),
    ("harm_loss", "Harm to loss"),
)  # fmt: skip
"""Measures of a load by name, and their columns."""


def routes(parts: Parts) -> APIRouter:
    """The routes."""
    router = APIRouter()
    guard, knowledge = parts.guard, parts.knowledge

    @router.get("/fairness")
    def listed(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        rows = fairness_list(knowledge)
        return page(request, "fairness_list.html.j2", caller, rows=rows)

    @router.get("/fairness/{name}")
    def show(request: Request, name: Name) -> Response:
        caller = guard.person(request).checked("see")
        values = knowledge.remembered(f"fairness {name}", lambda: _values(knowledge.store(), name))
        return page(request, "fairness.html.j2", caller, **values)

    return router


def _values(store: Store | None, name: str) -> dict[str, Any]:
    """What the page of a measurement shows.

    Raises:
        NotFoundError: when there is none of that name.
    """
    from farline.plots.plan_text import tables_toml

    if store is None:
        raise NotFoundError(f"measurement {name[:80]}: nothing has been measured yet")
    try:
        found = outcome_at(store, name)
    except UsageError:
        raise NotFoundError(f"measurement {name[:80]}: there is no such measurement") from None
    return {
        "journal": found.journal, "capacity_bps": found.capacity_bps, "on_wire": found.on_wire,
        "trials": found.trials, "invalid": found.invalid, "background": found.names["background"],
        "transfers": [
            {"name": found.names[key], "verdict": found.verdicts[key], "alone": one.alone_bps,
             "knee": one.knee, "rows": _rows(one), "trials": _trials(one)}
            for key, one in found.contests.items()
        ],
        "expectations": _expectations(found), "columns": [text for _, text in MEASURES],
        "figures": _figures(found), "plan_text": tables_toml(found.journal.plan.document()),
    }  # fmt: skip


def _rows(contest: Contest) -> list[dict[str, Any]]:
    return [
        {
            "load_bps": point.load_bps,
            "subject": point.measures["subject_bps"], "others": point.measures["background_bps"],
            "measures": [_figure(point.measures.get(name)) for name, _ in MEASURES],
        }
        for point in contest.points
    ]  # fmt: skip


def _figure(one: Estimate | None) -> str | None:
    if one is None:
        return None
    return f"{one.mean:.2f}" + ("" if one.low is None else f" ± {one.half:.2f}")


def _trials(contest: Contest) -> list[dict[str, Any]]:
    """Both sides in each repetition of each load, and the part of what both had that is ours."""
    return [
        {
            "load_bps": point.load_bps, "repetition": number, "subject_bps": mine,
            "background_bps": theirs,
            "part": mine / (mine + theirs) if mine + theirs > 0 else None,
        }
        for point in contest.points
        for number, (mine, theirs) in enumerate(
            zip(point.measures["subject_bps"].values, point.measures["background_bps"].values,
                strict=True), 1)
    ]  # fmt: skip


def _expectations(found: Outcome) -> list[Mapping[str, Any]]:
    from farline.api.contention import expectation_text

    return [
        {"text": expectation_text(one, found.names), "value": one.value, "holds": one.holds}
        for one in found.expectations
    ]


def _figures(found: Outcome) -> list[tuple[str, str, str]]:
    """Name, picture and caption of each figure; nothing before a repetition is whole."""
    from farline.api.contention import page_data
    from farline.plots.contention_figures import FIGURES, write_figures

    if not found.contests:
        return []
    with tempfile.TemporaryDirectory(prefix="farline-figures-") as made:
        write_figures(page_data(found), Path(made), ("svg",))
        return [
            (name, _picture(Path(made) / f"{name}.svg"), caption)
            for name, (_, caption) in FIGURES.items()
        ]


def _picture(path: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"
