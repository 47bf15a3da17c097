"""Tables of the profiles of Yun et al. 2015 beside the paper's own figures.

    .venv/bin/python -m scripts.tpg_profiles STORE

reads the newest campaign of each plan `plans/tpg-*.toml` from a store, prints the tables and puts
them into docs/design/tpg-profiles.md, each between its two marks. A campaign that is not there
leaves its table as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from farline.plots.data import CampaignData
from farline.plots.labels import setting_text
from farline.profiles.response import ResponsePoint, Setting, setting_order
from scripts.page_tables import markdown, run

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "tpg-profiles.md"
CONTROL = "udt.congestion_control"
CONTROLS = ("native", "bbr")
PAPER_MBPS = dict(enumerate((450, 1762, 2487, 2584, 2810, 2847, 7216, 8713, 6300, 6536), 1))
"""Yun et al. 2015, Table I: throughput of each experiment in Mb/s."""


def table_1(data: CampaignData) -> str:
    """The ten settings: throughput and rank in the paper and here, and the means of RTT."""
    head = ["experiment", "paper Mb/s", "rank"]
    head += [f"{name} {what}" for name in CONTROLS for what in ("Mb/s", "rank", "RTT µs")]
    means = {name: _by_point(data, "total_bps", name) for name in CONTROLS}
    times = {name: _by_point(data, "mean_rtt_us", name) for name in CONTROLS}
    paper = ranks({number: float(mbps) for number, mbps in PAPER_MBPS.items()})
    here = {name: ranks(_values(means[name])) for name in CONTROLS}
    rows = []
    for number, mbps in PAPER_MBPS.items():
        row = [str(number), f"{mbps}", str(paper[number])]
        for name in CONTROLS:
            rank = here[name].get(number)
            row += [_mbps(means[name].get(number)), "-" if rank is None else str(rank)]
            row.append(_plain(times[name].get(number)))
        rows.append(row)
    lines = [markdown(head, rows), ""]
    for name in CONTROLS:
        if len(here[name]) == len(paper):
            likeness = spearman([paper[n] for n in paper], [here[name][n] for n in paper])
            lines.append(f"Rank correlation with the paper (Spearman), {name}: {likeness:.2f}.")
    return "\n".join(lines).rstrip()


def grid_table(data: CampaignData, x: str, curves: str) -> str:
    """Mean throughput in Gb/s with half of its 95 % interval, `curves` down and `x` across."""
    points = {(p.settings[curves], p.settings[x]): p for p in data.throughput}
    down = sorted({key[0] for key in points}, key=setting_order)
    across = sorted({key[1] for key in points}, key=setting_order)
    rows = [
        [setting_text(curves, low), *(_gbps(points.get((low, value))) for value in across)]
        for low in down
    ]
    return markdown(["", *(setting_text(x, value) for value in across)], rows)


TABLES: Mapping[str, Callable[[CampaignData], str]] = {
    "tpg-packet-size": lambda data: grid_table(data, "udt.packet_bytes", "buffers_bytes"),
    "tpg-block-size": lambda data: grid_table(data, "block_bytes", "buffers_bytes"),
    "tpg-buffers": lambda data: grid_table(data, "send_buffers_bytes", "receive_buffers_bytes"),
    "tpg-streams": lambda data: grid_table(data, "streams", CONTROL),
    "tpg-table1": table_1,
}
"""What is made of each plan's campaign."""


def ranks(values: Mapping[Any, float]) -> dict[Any, int]:
    """Place of each value, the largest first; equal values share the better place."""
    every = list(values.values())
    return {key: 1 + sum(other > value for other in every) for key, value in values.items()}


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation of two lists of ranks."""
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)


def _by_point(data: CampaignData, column: str, control: str) -> dict[Setting, ResponsePoint]:
    return {
        p.settings["point"]: p
        for p in data.points.get(column, ())
        if p.settings.get(CONTROL, control) == control
    }


def _values(points: Mapping[Setting, ResponsePoint]) -> dict[Setting, float]:
    return {name: point.mean for name, point in points.items() if point.mean is not None}


def _mbps(point: ResponsePoint | None) -> str:
    return _spread(point, 1e6, 0)


def _gbps(point: ResponsePoint | None) -> str:
    return _spread(point, 1e9, 2)


def _plain(point: ResponsePoint | None) -> str:
    return "-" if point is None or point.mean is None else f"{point.mean:.0f}"


def _spread(point: ResponsePoint | None, factor: float, places: int) -> str:
    if point is None or point.mean is None:
        return "-"
    half = "" if point.high is None else f" ± {(point.high - point.mean) / factor:.{places}f}"
    return f"{point.mean / factor:.{places}f}{half}"


if __name__ == "__main__":
    sys.exit(run(PAGE, TABLES, sys.argv))
