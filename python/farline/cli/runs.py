"""`farline runs`: what was run, newest last."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from farline.cli.command import Command
from farline.cli.common import store_option
from farline.cli.runs_table import campaigns_table, runs_table
from farline.cli.selection import filter_options, read_filter
from farline.spec.units import counted
from farline.store import Store

if TYPE_CHECKING:
    from rich.table import Table


UNBOUNDED = 1000
"""Width of a table that goes into a file or a pipe."""

_HIDDEN = ("record", "labels")
"""Columns that are documents: `show --json` and `export` have them."""


@click.command(cls=Command, short_help="List recorded runs.")
@filter_options
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=50,
    metavar="N",
    help="List at most N runs, the newest ones (default 50).",
)
@click.option("--all", "everything", is_flag=True, help="List all runs.")
@click.option("--campaigns", "as_campaigns", is_flag=True, help="List campaigns instead of runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--compact", is_flag=True, help="Merge the files of the store and print what was done."
)
@store_option
def command(
    campaign: str | None,
    transport: str | None,
    status: str | None,
    since: str | None,
    where: tuple[str, ...],
    limit: int,
    everything: bool,
    as_campaigns: bool,
    as_json: bool,
    compact: bool,
    store_path: Path | None,
) -> None:
    """List recorded runs, the newest last."""
    store = Store.to_read(store_path)
    if compact:
        _print_compaction(store, as_json)
        return
    if as_campaigns:
        _print_campaigns(store.campaigns().to_pylist(), as_json)
    else:
        wanted = read_filter(store, campaign, transport, status, since, where)
        rows = store.runs(wanted, None if everything else limit).to_pylist()
        _print_runs(rows, as_json)


def _print_compaction(store: Store, as_json: bool) -> None:
    done = store.compact(everything=True)
    if as_json:
        click.echo(json.dumps({"schema": 1, **asdict(done)}))
    elif done.busy:
        click.echo("another process is merging the store; nothing was done")
    else:
        files = counted(done.merged_files, "file")
        click.echo(
            f"merged {counted(done.merged_runs, 'run')} out of {files},"
            f" removed {counted(done.removed_files, 'file')}"
        )


def _print_campaigns(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"schema": 1, "campaigns": list(rows)}, indent=2))
        return
    if not rows:
        click.echo("no campaign yet; farline profile starts one")
        return
    _print_table(campaigns_table(rows))


def _print_runs(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        shown = [{k: v for k, v in row.items() if k not in _HIDDEN} for row in rows]
        click.echo(json.dumps({"schema": 1, "runs": shown}, indent=2))
        return
    _print_table(runs_table(rows, _width()))


def _width() -> int:
    """Columns of the terminal; where nobody looks at one, nothing has to fit."""
    return Console().width if sys.stdout.isatty() else UNBOUNDED


def _print_table(table: Table) -> None:
    Console(width=_width()).print(table)
