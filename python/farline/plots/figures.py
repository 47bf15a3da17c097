"""Which figures a campaign gets, and under which names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.plots.axes import parameter_axis
from farline.plots.curves import CurveSet, default_views, select_curves
from farline.plots.data import CampaignData, middle_run
from farline.plots.distribution_figure import draw_distribution
from farline.plots.heat_figure import draw_heat
from farline.plots.labels import (
    LIMIT_TEXT,
    THROUGHPUT,
    Quantity,
    parameter_label,
    percent,
    setting_text,
    settings_text,
    size_unit,
)
from farline.plots.link_series import link_series
from farline.plots.payload import payload_bytes
from farline.plots.response_figure import draw_response
from farline.plots.series import Way, run_series
from farline.plots.series_figure import draw_series
from farline.plots.style import (
    FAILED,
    LIMIT_COLOURS,
    PAGE_INCHES,
    new_figure,
    palette,
    paper_style,
    save,
)
from farline.plots.wanted import wanted_figures
from farline.plots.wanted_figure import draw_wanted, wanted_caption
from farline.plots.whole_file import write_whole
from farline.profiles.response import ResponsePoint, Row, is_figure, setting_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from farline.plots.link_series import LinkSeries


def draw_limits(bars: Sequence[tuple[str, Mapping[str, int]]], label: str) -> Figure:
    """Each bar is a text and its counts by limit; "not complete" counts failed and partial runs."""
    from matplotlib.ticker import MaxNLocator

    names = [name for name in LIMIT_TEXT if any(counts.get(name) for _, counts in bars)]
    figure, (panel,) = new_figure(1, PAGE_INCHES / 2 + 1, 1.2 + 0.26 * len(bars))
    starts = [0] * len(bars)
    for name in names:
        _draw_segments(panel, name, [counts.get(name, 0) for _, counts in bars], starts)
    panel.set_yticks(range(len(bars)), [text for text, _ in bars])
    panel.invert_yaxis()
    panel.set_xlabel("Runs")
    panel.set_ylabel(label)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    handles, texts = panel.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper left", ncols=3, columnspacing=1.0)
    return figure


def _draw_segments(panel: Axes, name: str, counts: Sequence[int], starts: list[int]) -> None:
    failed = name == "not complete"
    bars = [index for index, count in enumerate(counts) if count]
    panel.barh(
        bars,
        [counts[index] for index in bars],
        left=[starts[index] for index in bars],
        height=0.62,
        label=LIMIT_TEXT[name],
        color="white" if failed else LIMIT_COLOURS[name],
        edgecolor=FAILED if failed else "white",
        hatch="////" if failed else None,
        linewidth=0.6,
    )
    for index, count in enumerate(counts):
        starts[index] += count


MAX_QUEUES = 6
"""Queues that are drawn: those in which most waited."""


def draw_queues(series: Sequence[LinkSeries]) -> Figure:
    """The most that waited in each interval, per queue; crosses where packets were lost."""
    shown = sorted(series, key=lambda one: -int(one.backlog_max_bytes.max(initial=0)))[:MAX_QUEUES]
    figure, panels = new_figure(1, height_inches=2.2, heights=[1.0])
    panel = panels[0]
    factor, unit = size_unit([float(one.backlog_max_bytes.max(initial=0)) for one in shown])
    for one, colour in zip(shown, palette(len(shown), False), strict=True):
        text = f"{one.name}, {one.direction}"
        panel.plot(one.times_s, one.backlog_max_bytes / factor, color=colour, lw=1.0, label=text)
        lost = one.drops > 0
        if lost.any():
            heights = one.backlog_max_bytes[lost] / factor
            panel.plot(one.times_s[lost], heights, "x", color=FAILED, ms=4)
    panel.set_ylabel(f"Waiting ({unit})")
    panel.set_xlabel("Time (s)")
    panel.set_ylim(bottom=0)
    panel.set_xlim(left=0)
    figure.legend(loc="outside upper left", ncols=3)
    return figure


MAX_RESPONSES = 4
"""Parameters that get a response figure of their own; the page shows any."""

MAX_STRIPS = 24
"""Settings in the figure of repetitions: the best ones."""

CPU = "cpu_s_per_gb"
CAPTIONS = "captions.txt"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, its file's name without the suffix, and what a paper would write below it."""

    name: str
    figure: Figure
    caption: str


def write_figures(data: CampaignData, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Draw every figure of the campaign into `folder`; returns the files."""
    return write_drawn(_figures(data), folder, formats)


def write_drawn(figures: Iterable[Drawn], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Draw figures into `folder`, with their captions beside them; returns the figures' files."""
    folder.mkdir(parents=True, exist_ok=True)
    written, captions = [], []
    with paper_style():
        for drawn in figures:
            written += save(drawn.figure, folder / drawn.name, formats)
            captions.append(f"{drawn.name}: {drawn.caption}\n")
    write_whole(folder / CAPTIONS, "\n".join(captions))
    return written


def _figures(data: CampaignData) -> Iterator[Drawn]:
    yield from _responses(data)
    yield from _wanted(data)
    bars, label = _limit_bars(data)
    said = "Runs by what limited them; hatched: failed or interrupted."
    yield Drawn("limits", draw_limits(bars, label), said)
    best = data.best
    if best is None:
        return
    ranked = sorted(data.throughput, key=lambda point: -(point.mean or -1.0))[:MAX_STRIPS]
    named = [(settings_text(point.settings), point) for point in ranked]
    yield Drawn("repetitions", draw_distribution(named, THROUGHPUT), _strips_caption(data, named))
    yield from _series_figures(data, best)


def _wanted(data: CampaignData) -> Iterator[Drawn]:
    """The figures that the plan asks for; one that has nothing to show is left out."""
    for wanted in wanted_figures(data.plan):
        figure = draw_wanted(data, wanted)
        if figure is not None:
            yield Drawn(wanted.name, figure, wanted_caption(data, wanted))


def _responses(data: CampaignData) -> Iterator[Drawn]:
    views = default_views(data.throughput, data.parameters, data.best)
    cpu = next((q for q in data.quantities if q.column == CPU), None)
    for index, (x, curve, held) in enumerate(views[:MAX_RESPONSES]):
        throughput = _curves(data, THROUGHPUT, x, curve, held)
        stem, said = x.replace(".", "-"), _caption(data, throughput)
        yield Drawn(f"response-{stem}", draw_response(throughput), f"Throughput{said}")
        if index == 0 and cpu is not None:
            below = _curves(data, cpu, x, curve, held)
            both = f"Throughput, and CPU seconds of both ends per gigabyte{said}"
            yield Drawn(f"cpu-{stem}", draw_response(throughput, below), both)
        if index == 0 and curve is not None and data.best is not None:
            rows = parameter_axis(
                curve, (c.value for c in throughput.curves), payload_bytes(data.rows)
            )
            yield Drawn("heat", draw_heat(throughput, rows), f"Mean throughput{said}")


def _curves(
    data: CampaignData, quantity: Quantity, x: str, curve: str | None, held: Mapping[str, object]
) -> CurveSet:
    return select_curves(
        data.points[quantity.column],
        quantity,
        x,
        curve,
        held,  # type: ignore[arg-type]
        payload_bytes(data.rows),
        data.reference.get(quantity.column),
    )


def _limit_bars(data: CampaignData) -> tuple[list[tuple[str, dict[str, int]]], str]:
    """One bar per value of the parameter with most values, and the parameter's label."""
    if not data.parameters:
        return [("all runs", _counts(data.throughput))], ""
    counts = {name: len({p.settings[name] for p in data.throughput}) for name in data.parameters}
    name = max(data.parameters, key=lambda parameter: counts[parameter])
    values = sorted({p.settings[name] for p in data.throughput}, key=setting_order)
    bars = [
        (setting_text(name, v), _counts([p for p in data.throughput if p.settings[name] == v]))
        for v in values
    ]
    return bars, parameter_label(name)


def _counts(points: Sequence[ResponsePoint]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for point in points:
        for limit, count in point.limits.items():
            counts[limit] = counts.get(limit, 0) + count
    lost = sum(point.failed + point.partial for point in points)
    return {**counts, "not complete": lost} if lost else counts


def _series_figures(data: CampaignData, best: ResponsePoint) -> Iterator[Drawn]:
    chosen = {"best": best, "reference": data.reference.get(THROUGHPUT.column)}
    for name, point in chosen.items():
        run_id = middle_run(point) if point is not None else None
        if run_id is None or run_id not in data.samples:
            continue
        series = run_series(data.samples[run_id])
        row = next(row for row in data.rows if row["run_id"] == run_id)
        if series is not None:
            yield Drawn(
                f"time-{name}", draw_series(series, omitted_s(row)), _time_caption(name, row)
            )
        yield from _queue_figure(data, name, run_id)


def _queue_figure(data: CampaignData, name: str, run_id: str) -> Iterator[Drawn]:
    """The queues under a run, where it went over an emulated path and anything waited."""
    if run_id not in data.links:
        return
    topology = data.document(run_id)["path"].get("topology")
    busy = [one for one in link_series(data.links[run_id], topology) if one.busy]
    if busy:
        said = f"The queues of the emulated path in run {run_id}: the most that waited in each "
        said += "interval. Crosses: packets were lost in it."
        yield Drawn(f"queues-{name}", draw_queues(busy), said)


def _caption(data: CampaignData, shown: CurveSet) -> str:
    runs = [point.n for curve in shown.curves for point in curve.points if point.n] or [0]
    span = f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
    parts = [f" over {parameter_label(shown.axis.name).lower()}"]
    if shown.curve_parameter:
        parts.append(f", one curve per value of {parameter_label(shown.curve_parameter).lower()}")
    if shown.fixed:
        parts.append(f", at {settings_text(shown.fixed)}")
    level = percent(data.confidence)
    parts.append(f". Means of {span} runs with {level} confidence intervals (Student's t).")
    if any(point.n == 0 for curve in shown.curves for point in curve.points):
        parts.append(" Crosses: settings without a completed run.")
    return "".join(parts)


def _strips_caption(data: CampaignData, named: Sequence[tuple[str, ResponsePoint]]) -> str:
    shown, total = len(named), len(data.throughput)
    which = f"the best {shown} of {total} settings" if shown < total else "every setting"
    level = percent(data.confidence)
    return f"Single runs, quartiles and mean with {level} confidence interval of {which}."


def _time_caption(name: str, row: Row) -> str:
    which = "the best setting" if name == "best" else "the reference setting"
    return (
        f"The middle run of {which} ({row['run_id']}): payload per interval at the receiver, "
        "round-trip time and congestion window at the sender. Shaded: warm-up."
    )


def omitted_s(row: Row) -> dict[Way, float]:
    """Warm-up of each direction that the run's steady-state figures leave out."""
    found: dict[Way, float] = {}
    ways: tuple[Way, ...] = ("forward", "reverse")
    for way in ways:
        value = row.get(f"{way}_omitted_s")
        if is_figure(value):
            found[way] = float(value)  # type: ignore[arg-type]
    return found
