"""`farline show`: everything about one run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from farline.cli import lines
from farline.cli.blast_text import blast_document, print_blasts
from farline.cli.command import Command
from farline.cli.common import store_option
from farline.cli.files_text import receipt_lines
from farline.cli.path_text import queue_lines
from farline.cli.perfmon_text import print_perfmon
from farline.cli.shown import shown
from farline.copying.adjusting import change_text
from farline.copying.tuned_text import tuning_lines
from farline.errors import UsageError
from farline.profiles.blasts import blast_rows
from farline.profiles.perfmon import json_columns
from farline.profiles.perfmon_table import perfmon_of
from farline.store import Store
from farline.store.receipts import receipt

if TYPE_CHECKING:
    import pyarrow as pa


@click.command(cls=Command, short_help="Show one run.")
@click.argument("run_id", metavar="RUN|last")
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON document.")
@click.option(
    "--samples", "with_samples", is_flag=True, help="Also show the samples of each interval."
)
@click.option(
    "--perfmon",
    "as_perfmon",
    is_flag=True,
    help="Show the statistics of a UDT run, named as in libudt.",
)
@click.option("--blasts", "with_blasts", is_flag=True, help="Show each blast of an RBUDP run.")
@click.option(
    "--files", "with_files", is_flag=True, help="Show every name in the receipt of a copy."
)
@click.option("--failed", is_flag=True, help="With --files, show only names that failed.")
@click.option(
    "--all", "everything", is_flag=True, help="Also show host settings and all options of the run."
)
@store_option
def command(
    run_id: str,
    as_json: bool,
    with_samples: bool,
    as_perfmon: bool,
    with_blasts: bool,
    with_files: bool,
    failed: bool,
    everything: bool,
    store_path: Path | None,
) -> None:
    """Show one run.

    RUN is its name, or the beginning or end of it; "last" is the newest.
    """
    if sum((with_samples, as_perfmon, with_blasts, with_files)) > 1:
        raise click.UsageError("--samples, --perfmon, --blasts and --files cannot be combined")
    if failed and not with_files:
        raise click.UsageError("--failed: needs --files")
    store = Store.to_read(store_path)
    row = store.find_one(run_id)
    if with_files:
        _show_files(store, row, failed, as_json)
        return
    if with_blasts:
        _show_blasts(json.loads(row["record"]), as_json)
        return
    if as_perfmon:
        _show_perfmon(store, row, as_json)
        return
    samples = store.samples([row["run_id"]]) if with_samples else None
    links = store.link_samples([row["run_id"]]) if row["path.testbed"] else None
    is_copy = row["copied_files"] is not None
    mover = store.mover_samples([row["run_id"]]) if with_samples and is_copy else None
    if as_json:
        parts = {"samples": samples, "links": links if with_samples else None, "mover": mover}
        click.echo(json.dumps(_document(row, parts), indent=2))
        return
    _print_run(json.loads(row["record"]), row, links, everything)
    if samples is not None:
        _print_samples(samples)
    if mover is not None:
        _print_samples(mover)


def _show_files(store: Store, row: Mapping[str, Any], failed: bool, as_json: bool) -> None:
    """The receipt of a copy, as lines or as one JSON document.

    Raises:
        UsageError: when none was kept.
    """
    batches = receipt(store.layout, row["run_id"], failed=failed)
    if batches is None:
        raise UsageError(f"run {row['run_id']}: no receipt is stored; only copies have one")
    if not as_json:
        for line in receipt_lines(batches):
            click.echo(line)
        return
    rows = (json.dumps(line) for batch in batches for line in batch.to_pylist())
    click.echo(f'{{"schema": 1, "run_id": "{row["run_id"]}", "files": [')
    for number, text in enumerate(rows):
        click.echo(f"{',' if number else ''}{text}")
    click.echo("]}")


def _show_blasts(record: Any, as_json: bool) -> None:
    """Every blast that was kept, as a table or as JSON rows.

    Raises:
        UsageError: when the run is no RBUDP run, or no blast of it became whole.
    """
    transport = record["spec"].get("transport", "tcp")
    if transport != "rbudp":
        raise UsageError(f"run {record['run_id']} used {transport}: blasts exist only for RBUDP")
    if not blast_rows(record):
        raise UsageError(f"run {record['run_id']}: no blast completed")
    if as_json:
        click.echo(json.dumps(blast_document(record), indent=2))
    else:
        print_blasts(record)


def _show_perfmon(store: Store, row: Mapping[str, Any], as_json: bool) -> None:
    """The fields of libudt's CPerfMon per interval, as a table or as JSON columns.

    Raises:
        UsageError: when the run is no UDT run, or has no samples.
    """
    samples = store.samples([row["run_id"]])
    table = perfmon_of(json.loads(row["record"]), samples)
    if not len(samples):
        raise UsageError(f"run {row['run_id']} has no samples to compute perfmon from")
    if as_json:
        document = {"schema": 1, "run_id": row["run_id"], "perfmon": json_columns(table)}
        click.echo(json.dumps(document, indent=2))
    else:
        print_perfmon(table)


def _document(row: Mapping[str, Any], parts: Mapping[str, pa.Table | None]) -> dict[str, Any]:
    document = {
        "schema": 1,
        "campaign": row["campaign"],
        "labels": json.loads(row["labels"]),
        "record": json.loads(row["record"]),
    }
    known = {name: table for name, table in parts.items() if table is not None}
    return document | {n: table.drop_columns(["run_id"]).to_pydict() for n, table in known.items()}


def _print_run(
    record: Any, row: Mapping[str, Any], links: pa.Table | None, everything: bool
) -> None:
    """What a person reads; with `everything` the settings of both hosts and all options too."""
    click.echo(lines.spec_line(record["spec"], record["server_address"]))
    click.echo(f"started {record['started_at']}, {record['run_s']:.3f} s of data")
    if row["campaign"]:
        place = ", ".join(f"{k} {v}" for k, v in json.loads(row["labels"]).items())
        click.echo(f"campaign {row['campaign']}: {place}")
    if record.get("error"):
        click.echo(f"{record['status']}: {record['error']['message']}")
    tuning = json.loads(row["labels"]).get("tuning") if row["labels"] else None
    for change in record.get("adjustments") or []:
        # Streams that tuning tried are many: those that it kept are told below.
        if everything or tuning is None or change["knob"] != "streams":
            click.echo(f"at {change['at_us'] / 1e6:.1f} s: {shown(change_text(change))}")
    for line in tuning_lines(tuning) if isinstance(tuning, dict) else ():
        click.echo(shown(line))
    queues = queue_lines(links, record["path"]) if links is not None else []
    for line in [*lines.summary_lines(record), *queues, *lines.verdict_lines(record)]:
        click.echo(line)
    for end in ("client", "server"):
        if record[end]:
            _print_end(end, record[end], everything)
    if not everything:
        click.echo(f"farline show {row['run_id']} --all prints host settings and all options")
        return
    click.echo("options:")
    for line in json.dumps(record["spec"], indent=2).splitlines():
        click.echo(f"  {line}")


def _print_end(name: str, end: Mapping[str, Any], everything: bool) -> None:
    host, version, cpu = end["host"], end["version"], end["cpu"]
    click.echo(f"{name} {host['hostname']}: {host['operating_system']}, kernel {host['kernel']}")
    click.echo(
        f"  {host['cpu']['online']} CPUs, {host['cpu']['model']};"
        f" {host['memory_bytes'] / 2**30:.1f} GiB"
    )
    build = " ".join(word for word in (version["farline"], version["commit"]) if word)
    click.echo(
        f"  farline {build} ({version['profile']} build);"
        f" CPU time: user {cpu['user_s']:.3f} s, system {cpu['system_s']:.3f} s"
    )
    if not everything:
        return
    for interface in host["interfaces"]:
        if interface["up"]:
            click.echo(f"  {_interface_text(interface)}")
    for key, value in host["sysctls"].items():
        click.echo(f"  {key} = {value}")


def _interface_text(interface: Mapping[str, Any]) -> str:
    speed = interface.get("speed_bps")
    facts = [
        f"MTU {interface['mtu_bytes']}",
        interface.get("driver"),
        f"{speed / 1e9:g} Gbit/s" if speed else None,
        f"qdisc {interface['qdisc']}" if interface.get("qdisc") else None,
    ]
    on = [name for name, state in interface.get("offloads", {}).items() if state]
    facts.append(f"on: {', '.join(on)}" if on else None)
    return f"{interface['name']}: {', '.join(fact for fact in facts if fact)}"


def _print_samples(samples: pa.Table) -> None:
    """The samples, columns that hold nothing left out."""
    names = [
        name
        for name in samples.column_names
        if name != "run_id" and samples[name].null_count < len(samples)
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for row in samples.select(names).to_pylist():
        table.add_row(*("-" if row[name] is None else str(row[name]) for name in names))
    console = Console() if sys.stdout.isatty() else Console(width=1000)
    console.print(table)
