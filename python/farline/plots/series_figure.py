"""One run over time: throughput of every stream and their sum, and below it what else is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from farline.plots.labels import rate_unit, size_unit, time_unit
from farline.plots.series import PANELS, DirectionSeries, Panel, RunSeries, Way
from farline.plots.style import COLUMN_INCHES, FAINT, GRID, WORDS_LIGHT, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from farline.plots.series import Numbers

COLOURS: Mapping[Way, str] = {"forward": WORDS_LIGHT[0], "reverse": WORDS_LIGHT[1]}
_UNITS: Mapping[str, Callable[[Sequence[float]], tuple[float, str]]] = {
    "µs": time_unit,
    "B": size_unit,
    "packets": lambda _: (1.0, "packets"),
}
WAY_TEXT: Mapping[Way, str] = {"forward": "client to server", "reverse": "server to client"}


def draw_series(series: RunSeries, omitted_s: Mapping[Way, float]) -> Figure:
    """Panels above each other over one time axis; panels without any figure are left out.

    `omitted_s` is the warm-up of each direction that steady-state figures leave out.
    """
    gauges = [panel for panel in PANELS if _tables(series, panel.name)]
    figure, panels = new_figure(
        1 + len(gauges), COLUMN_INCHES, 2.2 + 1.2 * len(gauges), [1.6] + [1.0] * len(gauges)
    )
    _draw_throughput(panels[0], series)
    for panel, gauge in zip(panels[1:], gauges, strict=True):
        _draw_gauge(panel, series, gauge)
    for panel in panels:
        panel.set_ylim(bottom=0)
        panel.set_xlim(0, float(series.edges_s[-1]))
        _shade_warm_up(panel, max(omitted_s.values(), default=0.0), panel is panels[0])
    panels[-1].set_xlabel("Time since the start of the run (s)")
    handles, texts = panels[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=2, columnspacing=1.0)
    return figure


def _draw_throughput(panel: Axes, series: RunSeries) -> None:
    factor, unit = rate_unit([float(d.total_bps.max()) for d in series.directions])
    for direction in series.directions:
        colour = COLOURS[direction.way]
        many = len(direction.streams_bps) > 1
        for rates in direction.streams_bps.values() if many else ():
            _stairs(panel, series, rates / factor, colour, 0.6, 0.45, None)
        _stairs(panel, series, direction.total_bps / factor, colour, 1.5, 1.0, _text(direction))
        if many:
            panel.plot([], [], color=colour, lw=0.6, alpha=0.6, label="each stream")
    panel.set_ylabel(f"Throughput ({unit})")


def _text(direction: DirectionSeries) -> str:
    text = WAY_TEXT[direction.way]
    return text if direction.seen_by == "receiver" else f"{text} (as sent)"


def _draw_gauge(panel: Axes, series: RunSeries, gauge: Panel) -> None:
    tables = _tables(series, gauge.name)
    largest = [_largest(list(table.values())) for _, table in tables]
    factor, unit = _UNITS[gauge.unit](largest)
    for way, table in tables:
        for values in table.values():
            panel.plot(series.middles_s, values / factor, color=COLOURS[way], lw=0.9, alpha=0.75)
    panel.set_ylabel(f"{gauge.label} ({unit})")


def _tables(series: RunSeries, name: str) -> list[tuple[Way, dict[int, Numbers]]]:
    return [(d.way, getattr(d, name)) for d in series.directions if getattr(d, name)]


def _largest(arrays: Sequence[Numbers]) -> float:
    import numpy as np

    return float(max(np.nanmax(array) for array in arrays))


def _stairs(
    panel: Axes,
    series: RunSeries,
    values: Numbers,
    colour: str,
    width: float,
    alpha: float,
    text: str | None,
) -> None:
    panel.stairs(
        values, series.edges_s, color=colour, lw=width, alpha=alpha, label=text, baseline=None
    )


def _shade_warm_up(panel: Axes, until_s: float, name_it: bool) -> None:
    if until_s <= 0:
        return
    panel.axvspan(0, until_s, color=GRID, alpha=0.7, lw=0, zorder=0)
    if name_it:
        panel.annotate(
            "warm-up",
            (until_s, 0.02),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            xytext=(2, 1),
            color=FAINT,
        )
