"""The page of a fairness measurement: verdicts first, then curves, tables and method."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import SystemFailure
from farline.plots.contention_figures import FIGURES, write_figures
from farline.plots.labels import NOTHING, digits, percent, plural, rate_range_text
from farline.plots.page_parts import Tile, render
from farline.plots.tables import Cell, Column, Table, TableRow
from farline.plots.whole_file import write_whole
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.fairness.contest import Contest, Estimate
    from farline.plots.contention_values import ContentionData

PAGE = "report.html"
FORMATS = ("png", "svg")
_COLUMNS = (
    ("utilisation", "Utilisation"),
    ("jain_demand", "Jain over demands"),
    ("jain", "Jain, raw"),
    ("max_min_distance", "Max-min distance"),
    ("share", "Share taken"),
    ("harm", "Harm: throughput"),
    ("harm_delay", "Harm: delay"),
    ("harm_loss", "Harm: loss"),
    ("harm_subject", "Harm to the transfer"),
    ("convergence_s", "Convergence (s)"),
)


def write_contention(data: ContentionData, out_dir: Path, formats: Sequence[str] = FORMATS) -> Path:
    """Writes `report.html` and `figures/` into `out_dir`; the page's path.

    Raises:
        SystemFailure: when the folder cannot be written.
    """
    kinds = list(dict.fromkeys((*formats, "svg")))
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        files = write_figures(data, out_dir / "figures", kinds)
        pictures = {path.stem: path.read_bytes() for path in files if path.suffix == ".svg"}
        for path in files:
            if path.suffix[1:] not in formats:
                path.unlink()
        page = out_dir / PAGE
        names = [path.name for path in files if path.suffix[1:] in formats]
        write_whole(page, render_contention(data, pictures, names))
    except OSError as error:
        raise SystemFailure(f"{out_dir}: cannot write the report: {error.strerror}") from error
    return page


def render_contention(
    data: ContentionData, pictures: dict[str, bytes], figure_names: Sequence[str] = ()
) -> str:
    """The whole page as text; `pictures` are SVG files by the name of the figure."""
    values = page_values(data, pictures, figure_names)
    return render("contention.html.j2", values, ("page/report.css",), (), "{}")


def page_values(
    data: ContentionData, pictures: dict[str, bytes], figure_names: Sequence[str]
) -> dict[str, Any]:
    """Everything the template names."""
    verdicts = list(data.verdicts.items())
    return {
        "title": f"{data.title} · farline",
        "heading": data.title,
        "made": data.made,
        "facts": data.facts,
        "lead": verdicts[0][1].line if verdicts else "",
        "verdicts": [(data.names[name], verdict) for name, verdict in verdicts],
        "tiles": _tiles(data),
        "figures": [
            (name, _picture(pictures[name]), caption)
            for name, (_draw, caption) in FIGURES.items()
            if name in pictures
        ],
        "tables": [
            (data.names[name], name, _table(contest)) for name, contest in data.contests.items()
        ],
        "asserted": data.asserted,
        "method": _method(data),
        "plan_text": data.plan_text,
        "reproduce": data.command,
        "version": data.version,
        "figure_names": figure_names,
    }


def _picture(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _tiles(data: ContentionData) -> list[Tile]:
    found = [
        Tile(
            f"Harm by {data.names[name]}",
            digits(max(0.0, contest.full.measures["harm"].mean), 2),
            f"a fair sharer: {digits(contest.full.measures['harm_fair'].mean, 2)}",
            data.verdicts[name].level in ("harsh", "unfit"),
        )
        for name, contest in data.contests.items()
    ]
    if data.asserted:
        held = sum(one.holds for one in data.asserted)
        note = "the plan's own assertions"
        all_held = held == len(data.asserted)
        found.append(Tile("Expectations", f"{held} of {len(data.asserted)}", note, not all_held))
    return found


def _table(contest: Contest) -> Table:
    columns = [
        Column("Applied load", number=True),
        Column("Transfer", number=True),
        Column("Background", number=True),
        *(Column(text, number=True) for _, text in _COLUMNS),
    ]
    rows = [
        TableRow(
            [
                Cell(rate_human(point.load_bps), f"{point.load_bps:.0f}"),
                _rate_cell(point.measures["subject_bps"]),
                _rate_cell(point.measures["background_bps"]),
                *(_cell(point.measures.get(name)) for name, _ in _COLUMNS),
            ]
        )
        for point in contest.points
    ]
    return Table(columns, rows)


def _rate_cell(one: Estimate) -> Cell:
    known = one.low is not None and one.high is not None
    interval = f" ({rate_range_text(one.low or 0.0, one.high or 0.0)})" if known else ""
    return Cell(f"{rate_human(one.mean)}{interval}", f"{one.mean:.0f}")


def _cell(one: Estimate | None) -> Cell:
    if one is None:
        return Cell(NOTHING)
    half = f" ± {one.half:.2f}" if one.low is not None else ""
    return Cell(f"{one.mean:.2f}{half}", f"{one.mean:.6f}")


def _method(data: ContentionData) -> list[str]:
    found = [
        f"Every repetition measures the transfer alone, the background alone at each load, and both"
        f" together, in drawn order. Rates are {data.kind}, within the time in which both run,"
        " without the start of the transfer. Measures are formed within a repetition; intervals are"
        f" Student's t over repetitions at {percent(data.confidence)}.",
        "Harm to throughput is (alone - contended) / alone, harm to delay and loss (contended -"
        " alone) / contended (Ware et al. 2019). Two equal sharers of a full line harm each other"
        " by 0.5; so harm is set beside that of a reference, or of a sharer that takes its max-min"
        " fair share. Jain's index is taken over max-min fair shares, since the raw index calls it"
        " unfair that somebody asks for little and gets it.",
    ]
    if data.invalid:
        found.append(
            f"{plural(data.invalid, 'trial')} did not count: the emulated path was not accurate."
        )
    return found
