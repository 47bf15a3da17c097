"""`farline testbed status`: hosts, links, what waits and what was lost, how late packets came."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from farline.cli.command import Command
from farline.cli.common import interruptible
from farline.cli.path_text import lateness_text
from farline.spec.units import rate_human, size_human, time_human
from farline.testbeds.link_status import LinkRow, look
from farline.testbeds.lookup import find_bed

if TYPE_CHECKING:
    from farline.testbeds import Testbed

WATCH_S = 1.0
LOOK_S = 0.3
"""Time that a single look takes, for rates: a few samples."""

WIDTH = 80


@click.command(cls=Command, short_help="Show hosts, links and counters.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--watch", is_flag=True, help="Update every second until interrupted.")
def status(name: str | None, as_json: bool, watch: bool) -> None:
    """Show the hosts and links of a testbed, with counters, and how late the emulator runs."""
    bed = find_bed(name)
    if watch and as_json:
        raise click.UsageError("--watch and --json cannot be combined")
    if watch:
        _watch(bed)
        return
    time.sleep(LOOK_S)
    rows, counters = look(bed)
    if as_json:
        click.echo(json.dumps(_document(bed, counters), indent=2))
        return
    _console().print(_drawn(bed, rows, counters))


def _console() -> Any:
    return (
        Console(highlight=False) if sys.stdout.isatty() else Console(width=WIDTH, highlight=False)
    )


def _watch(bed: Testbed) -> None:
    with interruptible(quiet=True) as asked, Live(console=_console(), auto_refresh=False) as live:
        while not asked.count:
            time.sleep(WATCH_S)
            live.update(_drawn(bed, *look(bed)), refresh=True)


def host_documents(bed: Testbed) -> list[dict[str, Any]]:
    """Hosts with their devices and addresses."""
    return [
        {
            "name": host.name,
            "devices": host.devices,
            "addresses": host.addresses,
            "addresses6": host.addresses6,
        }
        for host in bed.hosts.values()
    ]


def host_lines(bed: Testbed) -> list[str]:
    """A line for each device of each host."""
    width = max(len(name) for name in bed.hosts) + 2
    lines = []
    for host in bed.hosts.values():
        for place, port in enumerate(host.ports):
            name = host.name if place == 0 else ""
            lines.append(f"  {name:<{width}}{port.device:<7}{port.address:<16}{port.address6}")
    return lines


def link_line(link: Mapping[str, Any]) -> str:
    """A link in one line: rate, round-trip time, loss, MTU."""
    forward = link["forward"]
    back = link.get("reverse") or forward
    rate = forward.get("rate_bps")
    rtt_us = 1e6 * ((forward.get("delay_s") or 0.0) + (back.get("delay_s") or 0.0))
    loss = (forward.get("loss") or {}).get("random")
    facts = [
        rate_human(rate) if rate else "no rate limit",
        f"RTT {time_human(rtt_us)}",
        f"loss {loss:g}" if loss else None,
        f"MTU {forward.get('mtu_bytes') or 1500}",
    ]
    return f"link {link['name']}: {', '.join(fact for fact in facts if fact)}"


def _document(bed: Testbed, counters: Mapping[str, Any]) -> dict[str, Any]:
    facts = bed.describe()
    return {
        "schema": 1,
        **{key: facts[key] for key in ("name", "pid", "started_unix_s", "warnings", "failure")},
        "hosts": host_documents(bed),
        "topology": bed.topology(),
        "counters": counters,
    }


def _drawn(bed: Testbed, rows: Sequence[LinkRow], counters: Mapping[str, Any]) -> Group:
    facts = bed.describe()
    lines = [f"testbed {bed.name} ({facts['topology']}), up {counters['at_s']:.0f} s"]
    failure = facts["failure"]
    lines += [f"failed: {failure['message']}"] if failure else []
    lines += [*facts["warnings"], *host_lines(bed)]
    tail = [f"{row.name} {row.ends}: {_other_text(row.other)}" for row in rows if row.other]
    tail += _relay_lines(counters["relay"])
    return Group(
        Text("\n".join(lines), no_wrap=True, overflow="ellipsis"),
        _table(rows, _console().width),
        Text("\n".join(tail), overflow="fold"),
    )


def _other_text(other: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in other.items())


def _relay_lines(relay: Mapping[str, Any]) -> list[str]:
    """Since the start: how late packets were handed over, and what went wrong."""
    troubles = {
        name.replace("_", " "): relay[name]
        for name in (
            "ring_drops", "arena_drops", "write_drops", "receive_buffer_drops", "memory_prunes",
            "checksum_errors", "sample_rows_dropped",
        )
        if relay[name]
    }  # fmt: skip
    said = ", ".join(f"{count} {name}" for name, count in troubles.items()) or "nothing unexplained"
    return [f"{relay['deliveries']} deliveries, {lateness_text(relay)}", f"since the start: {said}"]


_COLUMNS: Mapping[str, Callable[[LinkRow], str]] = {
    "link": lambda row: row.name,
    "": lambda row: row.way,
    "from, to": lambda row: row.ends,
    "rate": lambda row: rate_human(row.rate_bps) if row.rate_bps else "-",
    "delay": lambda row: time_human(1e6 * row.delay_s),
    "carried": lambda row: rate_human(row.carried_bps),
    "queue": lambda row: size_human(row.backlog_bytes),
    "most": lambda row: size_human(row.backlog_max_bytes),
    "packets": lambda row: str(row.in_packets),
    "dropped": lambda row: str(row.dropped),
    "lost": lambda row: str(row.lost),
}
_LEAVE_FIRST = ("packets", "from, to", "most")
"""Columns that make room on a narrow terminal, in this order."""


def _table(rows: Sequence[LinkRow], width: int) -> Table:
    names, console = list(_COLUMNS), Console(width=10_000)
    for leave in (None, *_LEAVE_FIRST):
        if leave is not None:
            names.remove(leave)
        table = _table_of(rows, names)
        if console.measure(table).maximum <= width:
            break
    return table


def _table_of(rows: Sequence[LinkRow], names: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in names:
        left = name in ("link", "", "from, to")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_COLUMNS[name](row)) for name in names))
    return table
