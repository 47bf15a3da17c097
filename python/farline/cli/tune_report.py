"""The page or picture of `farline tune --report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farline.cli.tune_text import choice_lines, cost_text
from farline.plots.page_parts import Tile
from farline.plots.tuning_figure import Point, TuningPage, TuningPicture, save_tuning
from farline.spec.units import rate_human, size_human

if TYPE_CHECKING:
    from pathlib import Path

    from farline.tuning.choice import Choice
    from farline.tuning.job import TuneResult

_CURVE_POINTS = 60


def save_report(result: TuneResult, choice: Choice, far: str, path: Path) -> None:
    """Writes it.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    save_tuning(picture_of(choice), page_of(result, choice, far), path)


def picture_of(choice: Choice) -> TuningPicture:
    """What is drawn of a choice."""
    samples = [Point(one.setting.streams, one.rate_bps) for one in choice.samples]
    believed = [
        Point(setting.streams, one.rate_bps, one.low_bps, one.high_bps)
        for setting, one in choice.believed
        if one is not None
    ]
    curve: list[Point] = []
    if choice.fit is not None:
        counts = [point.streams for point in samples]
        places = np.geomspace(min(counts), max(counts), _CURVE_POINTS)
        rates = choice.fit.rate(places)
        curve = [Point(n, float(rate)) for n, rate in zip(places, rates, strict=True)]
    return TuningPicture(samples, believed, curve, choice.setting.streams, choice.default.streams)


def page_of(result: TuneResult, choice: Choice, far: str) -> TuningPage:
    """What is written around it."""
    now = result.situation
    rtt = "" if now is None or now.rtt_ms is None else f"RTT {now.rtt_ms:.3g} ms; "
    lines = [line.strip() for line in choice_lines(result, choice, (), far)]
    table = [
        (
            one.setting.text, rate_human(one.rate_bps), f"{one.seconds:.1f} s",
            size_human(one.size_bytes), one.limit or "",
        )
        for one in choice.samples
    ]  # fmt: skip
    return TuningPage(
        heading=f"How to use the path to {far}",
        facts=f"{rtt}{choice.basis}",
        lead=lines[0],
        tiles=list(_tiles(result, choice)),
        lines=lines[1:],
        table=table,
    )


def _tiles(result: TuneResult, choice: Choice) -> list[Tile]:
    tiles = [Tile("Choice", choice.setting.text, f"default {choice.default.text}")]
    if choice.expected is not None:
        low, high = rate_human(choice.expected.low_bps), rate_human(choice.expected.high_bps)
        note = f"80 % interval {low} to {high}"
        tiles.append(Tile("Expected", rate_human(choice.expected.rate_bps), note))
    if result.cost is not None and choice.samples:
        note = cost_text(result.cost, choice.within_noise)
        tiles.append(Tile("Samples", str(len(choice.samples)), note))
    return tiles
