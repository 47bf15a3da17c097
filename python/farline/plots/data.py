"""What a report is made from: one campaign's runs, points and samples, out of the store.

The only file of this room that reads the store. Everything behind it takes values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.plots.labels import QUANTITIES, THROUGHPUT, Quantity
from farline.plots.link_series import LINK_COLUMNS, columns_of
from farline.plots.plan_text import grid_axes, plan_toml, rerun_command, shown_names, varied_of
from farline.profiles.blasts import blast_rows
from farline.profiles.compare import best_point
from farline.profiles.response import (
    ResponsePoint,
    Row,
    is_determined,
    is_figure,
    response,
    setting_of,
    sweepable_parameters,
    varying_parameters,
)

if TYPE_CHECKING:
    from farline.plots.link_series import LinkColumns
    from farline.plots.series import Columns
    from farline.store import Store

BLAST_RATE, BLAST_PASSES, FIRST_BLAST_LOSS = "blast_bps", "blast_passes", "first_blast_loss"


def with_blasts(rows: Sequence[Row]) -> list[Row]:
    """The rows, those of RBUDP runs with their blasts' columns."""
    return [{**row, **_blast_columns(row)} for row in rows]


def _blast_columns(row: Row) -> Mapping[str, Any]:
    """Payload bits per second of a blast by itself, its passes on average, loss in per cent.

    Nothing for a run of another transport, and for one in which no blast became whole.
    """
    if row.get("transport") != "rbudp" or not row.get("record"):
        return {}
    blasts = [one.blast for one in blast_rows(json.loads(row["record"]))]
    if not blasts:
        return {}
    bits = 8 * sum(blast["bytes"] for blast in blasts)
    seconds = sum(blast["elapsed_us"] for blast in blasts) / 1e6
    packets = sum(blast["packets"] for blast in blasts)
    lost = sum(blast["first_pass_lost_packets"] for blast in blasts)
    return {
        BLAST_RATE: bits / seconds if seconds else None,
        BLAST_PASSES: sum(blast["passes"] for blast in blasts) / len(blasts),
        FIRST_BLAST_LOSS: 100 * lost / packets if packets else None,
    }


LAST = "last"
"""What names the newest campaign."""

SAMPLE_COLUMNS = (
    "end", "stream", "role", "start_us", "end_us", "bytes", "rtt_us", "cwnd_bytes",
    "packets", "lost_packets", "flight_packets", "send_period_ns",
)  # fmt: skip
"""Sample columns that are drawn."""


@dataclass(frozen=True)
class CampaignData:
    """One campaign, ready to be drawn.

    `rows` are its runs in time order, `parameters` the options its grid varies, `points` one
    entry per setting of the grid for every quantity that any run has a figure for, all in the
    same order. `reference` is the setting that the campaign interleaves, for every quantity too.
    """

    name: str
    rows: Sequence[Row]
    parameters: Sequence[str]
    points: Mapping[str, Sequence[ResponsePoint]]
    reference: Mapping[str, ResponsePoint]
    samples: Mapping[str, Columns] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The campaign's journal: target, seed, plan, when it finished."""
    confidence: float = 0.95
    count_invalid: bool = False
    """Whether runs count whose emulated path did not do what it should."""
    links: Mapping[str, LinkColumns] = field(default_factory=dict)
    """Samples of the links of every run over an emulated path."""

    @property
    def throughput(self) -> Sequence[ResponsePoint]:
        """Points by total throughput."""
        return self.points[THROUGHPUT.column]

    @property
    def best(self) -> ResponsePoint | None:
        """The setting with the highest mean throughput."""
        return best_point(self.throughput)

    @property
    def quantities(self) -> list[Quantity]:
        """What can be drawn: throughput, and whatever else the runs have figures for."""
        return [quantity for quantity in QUANTITIES if quantity.column in self.points]

    @property
    def plan_text(self) -> str:
        """The plan as a plan file, with the seed that was used; empty where none was kept."""
        return plan_toml(self.plan)

    @property
    def command(self) -> str:
        """What to type to run the campaign again."""
        return rerun_command(self.plan, str(self.rows[0].get("server_address") or "HOST"))

    @property
    def unfinished(self) -> bool:
        """Whether the campaign kept a plan and has not come to its end."""
        return bool(self.plan) and self.plan.get("finished_at") is None

    def document(self, run_id: str) -> dict[str, Any]:
        """The whole record of one run."""
        row = next(row for row in self.rows if row["run_id"] == run_id)
        return dict(json.loads(row["record"]))


def campaign_data(
    name: str,
    rows: Sequence[Row],
    samples: Mapping[str, Columns] | None = None,
    plan: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    count_invalid: bool = False,
    links: Mapping[str, LinkColumns] | None = None,
) -> CampaignData:
    """Points and parameters of a campaign's rows."""
    rows = _with_shown_names(with_blasts(rows), plan or {})
    grid, references = split_reference(rows)
    parameters = _parameters(grid, plan or {})
    columns = [q.column for q in QUANTITIES if q is THROUGHPUT or _has_figures(rows, q.column)]

    def points(part: Sequence[Row], names: Sequence[str], column: str) -> list[ResponsePoint]:
        return response(part, names, column, confidence, count_invalid)

    return CampaignData(
        name=name,
        rows=rows,
        parameters=parameters,
        points={c: points(grid, parameters, c) for c in columns},
        reference={c: points(references, (), c)[0] for c in columns if references},
        samples=samples or {},
        plan=plan or {},
        confidence=confidence,
        count_invalid=count_invalid,
        links=links or {},
    )


def _with_shown_names(rows: Sequence[Row], plan: Mapping[str, Any]) -> Sequence[Row]:
    """The rows with the points and groups of options of the plan as columns too."""
    names, varied = shown_names(plan), varied_of(plan)
    if not names:
        return rows
    return [
        {**row, **{name: varied.get(str(row.get("setting")), {}).get(name) for name in names}}
        for row in rows
    ]


def _parameters(grid: Sequence[Row], plan: Mapping[str, Any]) -> list[str]:
    """What varies and was meant to; what only follows from that is left out."""
    varying = varying_parameters(grid, [*shown_names(plan), *sweepable_parameters()])
    axes = grid_axes(plan)
    meant = [name for name in varying if name in axes]
    return [
        name for name in varying if name in axes or not axes or not is_determined(grid, name, meant)
    ]


def split_reference(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of the grid and rows of the reference setting.

    A reference that is itself a setting of the grid counts in both; a campaign that has nothing
    but its reference is a grid of one.
    """
    references = [row for row in rows if row.get("reference")]
    grid = [row for row in rows if not row.get("reference")]
    if not grid:
        return list(rows), references
    names = sweepable_parameters()
    settings = {tuple(setting_of(row, name) for name in names) for row in grid}
    held = [name for name in names if len({setting_of(row, name) for row in grid}) == 1]
    varied = {name: {setting_of(row, name) for row in grid} for name in names if name not in held}
    on_grid = [
        row
        for row in references
        if tuple(setting_of(row, name) for name in names) in settings
        or (row.get("point") is None and _stands_on(row, grid[0], held, varied))
    ]
    return grid + on_grid, references


def middle_run(point: ResponsePoint) -> str | None:
    """The run in the middle of a setting's runs: what is typical, not what is best."""
    if not point.values:
        return None
    order = sorted(range(point.n), key=lambda index: point.values[index])
    return point.run_ids[order[(point.n - 1) // 2]]


def load_campaign(
    store_path: Path, campaign: str = LAST, count_invalid: bool = False
) -> CampaignData:
    """Read a campaign from the store; with `count_invalid`, or where its plan says so, all count.

    Raises:
        UsageError: when there is no such store, or no such campaign in it.
    """
    from farline.store import RunFilter, Store

    store = Store(store_path, create=False)
    name = store.campaign_name(campaign)
    rows = [by_option(row) for row in store.runs(RunFilter(campaign=name)).to_pylist()]
    samples = _samples(store, [str(row["run_id"]) for row in rows])
    plan = _plan(store, name)
    rules = (plan.get("plan") or {}).get("campaign", {})
    return campaign_data(
        name,
        rows,
        samples,
        plan,
        confidence=float(rules.get("confidence", 0.95)),
        count_invalid=count_invalid or bool(rules.get("count_invalid")),
        links=_links(store, [str(row["run_id"]) for row in rows if row.get("path.testbed")]),
    )


def by_option(row: Row) -> Row:
    """A row of the store with every option under its own name, as a plan says what varies."""
    from farline.store.columns import OTHER_NAMES

    return {**row, **{path: row[column] for path, column in OTHER_NAMES.items()}}


def _links(store: Store, run_ids: Sequence[str]) -> dict[str, LinkColumns]:
    """Drawn columns of the links' samples of every run that has any."""
    table = store.link_samples(run_ids) if run_ids else None
    if table is None or table.num_rows == 0:
        return {}
    names = table["run_id"].to_numpy(zero_copy_only=False)
    columns = columns_of(table, LINK_COLUMNS)
    return {
        str(name): {key: column[names == name] for key, column in columns.items()}
        for name in dict.fromkeys(names.tolist())
    }


def _samples(store: Store, run_ids: Sequence[str]) -> dict[str, Columns]:
    """Drawn columns of every run, as integers with -1 for unknown."""
    import numpy as np

    table = store.samples(run_ids)
    if table.num_rows == 0:
        return {}
    names = table["run_id"].to_numpy(zero_copy_only=False)
    columns = {
        name: table[name].fill_null(-1).to_numpy().astype(np.int64) for name in SAMPLE_COLUMNS
    }
    starts = np.concatenate(([0], np.flatnonzero(names[1:] != names[:-1]) + 1, [len(names)]))
    return {
        str(names[first]): {name: column[first:last] for name, column in columns.items()}
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    }


def _plan(store: Store, name: str) -> dict[str, Any]:
    from farline.spec.json_text import read_object
    from farline.store import left_out

    path = store.path / "campaigns" / f"{name}.json"
    try:
        return read_object(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        left_out.note(f"{path}: damaged: {error}")
        return {}


def _has_figures(rows: Sequence[Row], column: str) -> bool:
    return any(is_figure(row.get(column)) for row in rows)


def _stands_on(
    row: Row, grid_row: Row, held: Sequence[str], varied: Mapping[str, set[Any]]
) -> bool:
    """Whether the reference is the missing cell of a grid that does not repeat it."""
    return all(setting_of(row, name) == setting_of(grid_row, name) for name in held) and all(
        setting_of(row, name) in values for name, values in varied.items()
    )
