"""Tables of the experiments of He et al. 2002 as they came out here, beside the model.

    .venv/bin/python -m scripts.rbudp_experiments STORE

reads the newest campaign of each plan `plans/rbudp-*.toml` from a store, prints the tables and
puts them into docs/design/rbudp-experiments.md, each between its two marks. A campaign that is not
there leaves its table as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from farline.plots.data import BLAST_PASSES, BLAST_RATE, FIRST_BLAST_LOSS, CampaignData
from farline.plots.labels import setting_text
from farline.plots.wanted import ModelLine, wanted_figures
from farline.profiles.response import Setting, setting_order
from scripts.page_tables import markdown, run

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "rbudp-experiments.md"
RATE, RECEIVER, PAYLOAD, POINT = "rate_bps", "rbudp.receiver", "payload_bytes", "point"
RECEIVERS = ("naive", "gather", "fake")
COLUMNS = (BLAST_RATE, FIRST_BLAST_LOSS, BLAST_PASSES)

Means = Mapping[tuple[Setting, Setting], float]


def rate_table(data: CampaignData) -> str:
    """Sending rates down; each receiver's throughput, loss of the first blast, passes across."""
    (line,) = models(data)
    means = {column: means_of(data, column, RATE, RECEIVER) for column in COLUMNS}
    head = ["sending rate", "eq. 3 Mb/s"]
    head += [f"{name} {what}" for name in RECEIVERS for what in ("Mb/s", "loss %", "passes")]
    rows = []
    for rate in places(means[BLAST_RATE]):
        cells = [setting_text(RATE, rate), mbps(line.throughput_bps(number(rate)))]
        for name in RECEIVERS:
            cells += row_cells(means, rate, name)
        rows.append(cells)
    return markdown(head, rows)


def payload_table(data: CampaignData) -> str:
    """Payloads down; what was measured at each point, and the models' lines across."""
    means = {column: means_of(data, column, PAYLOAD, POINT) for column in COLUMNS}
    points = list(dict.fromkeys(point for _, point in means[BLAST_RATE]))
    points.sort(key=setting_order)
    head = ["payload", *(line.name for line in models(data))]
    head += [f"{point}: {what}" for point in points for what in ("Mb/s", "loss %", "passes")]
    rows = []
    for size in places(means[BLAST_RATE]):
        cells = [setting_text(PAYLOAD, size)]
        cells += [mbps(line.throughput_bps(number(size))) for line in models(data)]
        for point in points:
            cells += row_cells(means, size, point)
        rows.append(cells)
    return markdown(head, rows)


TABLES: Mapping[str, Callable[[CampaignData], str]] = {
    "rbudp-rates-receiver": rate_table,
    "rbudp-rates-network": rate_table,
    "rbudp-payload": payload_table,
}
"""What is made of each plan's campaign."""


def models(data: CampaignData) -> tuple[ModelLine, ...]:
    """Lines of the model in the plan's first figure."""
    return wanted_figures(data.plan)[0].models


def means_of(data: CampaignData, column: str, down: str, across: str) -> Means:
    """Means of a column by two parameters."""
    return {
        (point.settings[down], point.settings[across]): point.mean
        for point in data.points.get(column, ())
        if point.mean is not None
    }


def places(means: Means) -> list[Setting]:
    """Values down, in order."""
    return sorted({down for down, _ in means}, key=setting_order)


def row_cells(means: Mapping[str, Means], down: Setting, across: Setting) -> Iterator[str]:
    """Throughput, loss and passes of one setting; a dash where no run came to its end."""
    for column, text in zip(COLUMNS, (mbps, "{:.2f}".format, "{:.3g}".format), strict=True):
        value = means[column].get((down, across))
        yield "-" if value is None else text(value)


def mbps(rate_bps: float) -> str:
    """A rate in Mb/s with four digits."""
    return f"{rate_bps / 1e6:.4g}"


def number(value: Setting) -> float:
    """A value of a parameter that is a quantity."""
    if not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


if __name__ == "__main__":
    sys.exit(run(PAGE, TABLES, sys.argv))
