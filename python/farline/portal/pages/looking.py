"""Pages that show what is known: the overview, a path, findings, campaigns."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from farline.portal.documents import Name
from farline.portal.knowledge import Pair
from farline.portal.pages.drawing import page
from farline.portal.pages.parts import Parts
from farline.portal.problems import NotFoundError
from farline.store.paths import PastTransfer

STEPS = 8
"""Colours of the matrix."""

MOST_POINTS, MOST_ROWS = 2000, 50
"""Points of a chart, and rows of the table beside it."""

SANDBOX = "sandbox allow-scripts"
"""A report brings scripts and a policy of its own: it is shown as if it were another site's."""


def routes(parts: Parts) -> APIRouter:
    """The routes."""
    router = APIRouter()
    knowledge, guard = parts.knowledge, parts.guard

    @router.get("/")
    def overview(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        return page(
            request, "overview.html.j2", caller, counts=parts.transfers.counts(caller),
            now_s=parts.settings.now(), **matrix(knowledge.now.pairs),
        )  # fmt: skip

    @router.get("/paths/{source}/{destination}")
    def path(request: Request, source: Name, destination: Name) -> Response:
        caller = guard.person(request).checked("see")
        pairs = [one for one in knowledge.now.pairs if one.source == source]
        pair = next((one for one in pairs if one.destination == destination), None)
        if pair is None:
            raise NotFoundError(f"{source} to {destination}: no transfer is known of this path")
        rows = knowledge.now.by_path[source, destination]
        return page(
            request, "path.html.j2", caller, pair=pair, now_s=parts.settings.now(),
            **path_values(pair, rows, knowledge.now.pairs),
        )  # fmt: skip

    @router.get("/findings")
    def findings(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        infrastructure = knowledge.infrastructure
        sites = () if infrastructure is None else infrastructure.sites
        return page(
            request, "findings.html.j2", caller, found=parts.findings.document(), sites=sites
        )

    @router.get("/campaigns")
    def campaigns(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        return page(request, "campaigns.html.j2", caller, campaigns=knowledge.campaigns())

    @router.get("/campaigns/{name}/report")
    def report(request: Request, name: Name) -> Response:
        guard.person(request).checked("see")
        text = knowledge.remembered(f"report {name}", lambda: _report(parts, name))
        headers = {"Content-Security-Policy": SANDBOX, "Cache-Control": "no-store"}
        return HTMLResponse(text, headers=headers)

    return router


def matrix(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Senders as rows, receivers as columns; a step of colour for each, by rate on a log scale."""
    senders = sorted({one.source for one in pairs})
    receivers = sorted({one.destination for one in pairs})
    table = {(one.source, one.destination): one for one in pairs}
    rates = [one.rate_bps for one in pairs if one.rate_bps > 0]
    cells = {
        ends: step_of(one.rate_bps, min(rates), max(rates)) if rates else 0
        for ends, one in table.items()
    }
    return {
        "senders": senders, "receivers": receivers, "table": table, "steps": cells,
        "pairs": sorted(pairs, key=lambda one: one.rate_bps),
        "slowest_bps": min(rates, default=None), "fastest_bps": max(rates, default=None),
        "step_count": STEPS,
    }  # fmt: skip


def step_of(rate_bps: float, low_bps: float, high_bps: float) -> int:
    """The step of colour, 0 to `STEPS - 1`, of a rate between the slowest and the fastest."""
    import math

    if rate_bps <= 0:
        return 0
    if high_bps <= low_bps:
        return STEPS - 1
    share = math.log(rate_bps / low_bps) / math.log(high_bps / low_bps)
    return min(STEPS - 1, max(0, int(share * STEPS)))


def path_values(pair: Pair, rows: Sequence[PastTransfer], pairs: Sequence[Pair]) -> dict[str, Any]:
    """The history of a path, its limits, what changed when, and how it stands among others."""
    timed = [row for row in rows if row.ended_s][-MOST_POINTS:]
    limits = Counter(row.limit or "unknown" for row in rows).most_common()
    others = [one for one in pairs if one.rtt_ms and one.rate_bps]
    return {
        "rows": list(rows[:-MOST_ROWS - 1:-1]),
        "limits": limits,
        "changes": changes(rows),
        "history": {
            "at": [row.ended_s for row in timed],
            "files": [row.rate_bps if row.modality == "E" else None for row in timed],
            "memory": [row.rate_bps if row.modality != "E" else None for row in timed],
            "capacity": pair.capacity_bps,
        },
        "profile": {
            "rtt_ms": [one.rtt_ms for one in others],
            "rate_bps": [one.rate_bps for one in others],
            "names": [f"{one.source} to {one.destination}" for one in others],
            "here": [one is pair for one in others],
        },
    }  # fmt: skip


def changes(rows: Sequence[PastTransfer]) -> list[tuple[float | None, str]]:
    """What of hosts and settings was another from one transfer to the next; the newest first."""
    facts = {
        "from_kernel": "kernel of the sender", "to_kernel": "kernel of the receiver",
        "nic_bps": "speed of the interfaces", "congestion_control": "congestion control",
        "streams": "streams", "transport": "transport",
    }  # fmt: skip
    found: list[tuple[float | None, str]] = []
    known: dict[str, Any] = {}
    for row in rows:
        for name, words in facts.items():
            value = getattr(row, name)
            if value is not None and known.get(name, value) != value:
                found.append((row.ended_s, f"{words}: {_fact(name, known[name])} → "
                              f"{_fact(name, value)}"))  # fmt: skip
            if value is not None:
                known[name] = value
    return found[:-21:-1]


def _fact(name: str, value: Any) -> str:
    from farline.portal.pages.words import rate

    return rate(value) if name == "nic_bps" else str(value)


def _report(parts: Parts, name: str) -> str:
    """The page of a campaign's report, made anew when the store has changed."""
    from farline.api.report_page import write_page

    store = parts.knowledge.store()
    if store is None:
        raise NotFoundError(f"campaign {name[:80]}: nothing has been measured yet")
    with tempfile.TemporaryDirectory(prefix="farline-report-") as made:
        return write_page(store, name, Path(made), ()).read_text("utf-8")
