"""A figure that a plan asks for: what lies on which axis, as values.

The table `[[figure]]` of a plan is read and checked in `farline.campaign.figure_table`; a
campaign's journal has it with plain values, and figures are drawn from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from farline.models.rbudp import PRINTED_PACKET_BYTES, Case, ModelName
from farline.plots.axes import Axis

RATE, PAYLOAD = "rate_bps", "payload_bytes"
OVER = (RATE, PAYLOAD)
"""What a line can run over: the one of the two that it does not state."""

PLACES = 121
"""Points of a line."""


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One line: which of RBUDP's models, for which path.

    Of `rate_bps` (bit/s) and `payload_bytes` one is None: that lies on the x axis. `loss` is the
    share of the packets of a pass that never come.
    """

    name: str
    rtt_s: float
    model: ModelName = "printed"
    loss: float = 0.0
    rate_bps: int | None = None
    payload_bytes: int | None = None

    @property
    def over(self) -> str:
        """What lies on the x axis."""
        return RATE if self.rate_bps is None else PAYLOAD

    def document(self) -> dict[str, Any]:
        """The table that reads to this."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {key: value for key, value in values.items() if value is not None}

    def throughput_bps(self, place: float) -> float:
        """B_achievable of He et al. 2002 at a rate in bit/s or a payload in bytes.

        The printed equations have packets of 1500 bytes, as the paper; the corrected ones have
        farline's.
        """
        from farline.models.rbudp_corrected import predict

        own = {RATE: self.rate_bps, PAYLOAD: self.payload_bytes} | {self.over: place}
        packet = {"packet_payload_bytes": PRINTED_PACKET_BYTES} if self.model == "printed" else {}
        case = Case(
            payload_bytes=round(float(own[PAYLOAD] or 0)),
            rate_bps=float(own[RATE] or 0),
            rtt_s=self.rtt_s,
            loss=self.loss,
            **packet,
        )
        return predict(case, self.model).throughput_bps


def model_line(table: Mapping[str, Any]) -> ModelLine:
    """The line of a table whose values are plain."""
    return ModelLine(**table)


def line_places(line: ModelLine, axis: Axis) -> tuple[Sequence[float], Sequence[float]]:
    """Where the line stands on an axis, and its throughput in bit/s there; nothing among words."""
    import numpy as np

    if not axis.ordered or min(axis.positions) == max(axis.positions):
        return [], []
    numbers = [float(value) for value in axis.values if isinstance(value, (int, float))]
    space = np.linspace if axis.scale == "linear" else np.geomspace
    places = space(max(1.0, min(numbers)), max(numbers), PLACES)
    positions = np.linspace(min(axis.positions), max(axis.positions), PLACES)
    return positions.tolist(), [line.throughput_bps(float(place)) for place in places]


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
