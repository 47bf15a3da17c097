"""`farline export`: runs or their samples as CSV, Parquet or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from farline.cli.selection import (
    filter_options,
    read_filter,
    store_option,
)
from farline.profiles.perfmon_table import perfmon_table
from farline.store import Store
from farline.store.disk import publish
from farline.store.export import Receipts, put_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


FORMATS = ("csv", "parquet", "json")


@click.command(short_help="Write runs as CSV, Parquet or JSON.")
@click.option("--format", "kind", type=click.Choice(FORMATS), required=True, help="How to write.")
@click.option("--samples", "with_samples", is_flag=True, help="The interval samples of the runs.")
@click.option(
    "--links", "with_links", is_flag=True, help="The samples of the links they went over."
)
@click.option(
    "--perfmon", "with_perfmon", is_flag=True, help="UDT runs' statistics by libudt's names."
)
@click.option("--files", "with_files", is_flag=True, help="The receipts of copies: every name.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    required=True,
    help="File to write, replaced as a whole if it is there; - is standard output.",
)
@filter_options
@store_option
def command(
    kind: str,
    with_samples: bool,
    with_links: bool,
    with_perfmon: bool,
    with_files: bool,
    output: Path,
    campaign: str | None,
    transport: str | None,
    status: str | None,
    since: str | None,
    where: tuple[str, ...],
    store_path: Path | None,
) -> None:
    """Write runs that fit the filters: one row each, options and results as columns.

    Parquet has the whole record in a column, JSON has it as it is; CSV leaves it out. With
    --samples the rows are interval samples, named by run_id; JSON then has them beside each record.
    --links is the same for the links of emulated paths, --perfmon for the statistics of UDT runs by
    the names of libudt's perfmon, --files for what became of each name of copies.
    """
    if sum((with_samples, with_links, with_perfmon, with_files)) > 1:
        raise click.UsageError("--samples, --links, --perfmon, --files: write one table at a time")
    store = Store.to_read(store_path)
    runs = store.runs(read_filter(store, campaign, transport, status, since, where))
    if with_files:
        _write_files(output, kind, store, runs)
        return
    samples = None
    if with_samples or with_links or with_perfmon:
        read = store.link_samples if with_links else store.samples
        samples = read(runs["run_id"].to_pylist())
    if with_perfmon:
        samples = perfmon_table(runs, samples)
    _write(output, kind, lambda file: put_runs(file, kind, runs, samples))
    rows = len(runs if samples is None else samples)
    click.echo(f"{rows} rows of {len(runs)} runs", err=True)


def _write_files(output: Path, kind: str, store: Store, runs: pa.Table) -> None:
    receipts = Receipts(store, runs["run_id"].to_pylist())
    _write(output, kind, lambda file: receipts.put(file, kind))
    click.echo(f"{receipts.rows} rows of {len(runs)} runs", err=True)


def _write(output: Path, kind: str, put: Callable[[BinaryIO], None]) -> None:
    if str(output) != "-":
        publish(output.absolute().parent, output.absolute(), put)
        return
    if kind == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is no text for a terminal: name a file with -o")
    put(sys.stdout.buffer)
