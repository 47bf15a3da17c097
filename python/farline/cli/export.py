"""`farline export`: runs or their samples as CSV, Parquet or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from farline.cli.command import Command
from farline.cli.common import store_option
from farline.cli.selection import filter_options, read_filter
from farline.cli.words import Words
from farline.profiles.perfmon_table import perfmon_table
from farline.spec.units import counted
from farline.store import Store
from farline.store.disk import publish
from farline.store.export import Receipts, put_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


FORMATS = ("csv", "parquet", "json")
_ENDINGS = {f".{kind}": kind for kind in FORMATS}


@click.command(cls=Command, short_help="Write runs as CSV, Parquet or JSON.")
@click.option(
    "--format", "kind", type=Words(FORMATS), help="Write this format (default: by the file name)."
)
@click.option(
    "--samples",
    "with_samples",
    is_flag=True,
    help="Write the samples of each interval instead of runs.",
)
@click.option("--links", "with_links", is_flag=True, help="Write the samples of emulated links.")
@click.option(
    "--perfmon",
    "with_perfmon",
    is_flag=True,
    help="Write the statistics of UDT runs, named as in libudt.",
)
@click.option(
    "--files", "with_files", is_flag=True, help="Write every name in the receipts of copies."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    required=True,
    help="Write to this file and replace it; - is standard output.",
)
@filter_options
@store_option
def command(
    kind: str | None,
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
    """Write the selected runs to a file, one row for each run.

    The format follows from the ending of the file name: .csv, .parquet or .json. JSON and
    Parquet also contain the whole record of each run.
    """
    if sum((with_samples, with_links, with_perfmon, with_files)) > 1:
        raise click.UsageError("--samples, --links, --perfmon, --files: choose one table at a time")

    kind = kind or format_of(output)
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
    click.echo(f"{counted(rows, 'row')} of {counted(len(runs), 'run')}", err=True)


def format_of(output: Path) -> str:
    """The format that the ending of a file's name asks for.

    Raises:
        click.UsageError: when it asks for none.
    """
    if str(output) == "-":
        raise click.UsageError(f"-o -: standard output: add --format {'|'.join(FORMATS)}")
    kind = _ENDINGS.get(output.suffix.lower())
    if kind is None:
        *endings, last = _ENDINGS
        raise click.UsageError(
            f"-o {output}: unknown file type; name the file {', '.join(endings)} or {last},"
            " or add --format"
        )
    return kind


def _write_files(output: Path, kind: str, store: Store, runs: pa.Table) -> None:
    receipts = Receipts(store, runs["run_id"].to_pylist())
    _write(output, kind, lambda file: receipts.put(file, kind))
    click.echo(f"{counted(receipts.rows, 'row')} of {counted(len(runs), 'run')}", err=True)


def _write(output: Path, kind: str, put: Callable[[BinaryIO], None]) -> None:
    if str(output) != "-":
        publish(output.absolute().parent, output.absolute(), put)
        return
    if kind == "parquet" and sys.stdout.isatty():
        raise click.UsageError(
            "Parquet is binary and cannot be printed to a terminal: name a file with -o"
        )
    put(sys.stdout.buffer)
