"""A figure that a plan asks for: what lies on which axis, as values.

The table `[[figure]]` of a plan is read and checked in `farline.campaign.figure_table`; a
campaign's journal has it with plain values, and figures are drawn from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from farline.plots.model_line import ModelLine, model_line

Kind = Literal["curves", "bars", "series"]
"""Means over a parameter; bars of means; throughput of one run of each setting over time."""

Scale = Literal["auto", "linear", "log2", "log10", "log2-KiB"]
"""Scale of the x axis; `log2-KiB` writes the exponent, as Yun et al. 2015, Fig. 7: 7 is 128 KiB."""

KINDS: tuple[Kind, ...] = get_args(Kind)
SCALES: tuple[Scale, ...] = get_args(Scale)
THROUGHPUT_COLUMN = "total_bps"


@dataclass(frozen=True, slots=True)
class WantedFigure:
    """One figure of a plan.

    `x` and `curves` are names of what the plan varies, `panels` values of `curves` (without
    curves: of `x`) that go into one panel each, `where` what else is held at which value. `y`
    are columns of results, drawn one above the other, `models` lines in those of throughput.
    """

    name: str
    kind: Kind = "curves"
    x: str | None = None
    curves: str | None = None
    panels: tuple[tuple[Any, ...], ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    x_scale: Scale = "auto"
    x_label: str | None = None
    y: tuple[str, ...] = (THROUGHPUT_COLUMN,)
    models: tuple[ModelLine, ...] = ()
    caption: str = ""

    def document(self) -> dict[str, Any]:
        """The table that reads to this; what was not said is not in it."""
        said = {item.name: getattr(self, item.name) for item in fields(self)}
        said |= {"panels": [list(panel) for panel in self.panels], "y": list(self.y)}
        said["model"] = [line.document() for line in said.pop("models")]
        usual = {"kind": "curves", "x_scale": "auto", "y": [THROUGHPUT_COLUMN]}
        return {
            key: dict(value) if isinstance(value, Mapping) else value
            for key, value in said.items()
            if value not in (None, [], {}, "") and value != usual.get(key)
        }


def wanted_figures(journal: Mapping[str, Any]) -> list[WantedFigure]:
    """The figures in the plan of a campaign's journal."""
    tables = (journal.get("plan") or {}).get("figure") or []
    return [wanted_figure(table) for table in tables]


def wanted_figure(table: Mapping[str, Any]) -> WantedFigure:
    """The figure of a table whose values are plain."""
    values = dict(table)
    if "panels" in values:
        values["panels"] = tuple(tuple(panel) for panel in values["panels"])
    if "y" in values:
        values["y"] = tuple(values["y"])
    if "model" in values:
        values["models"] = tuple(model_line(line) for line in values.pop("model"))
    return WantedFigure(**values)
