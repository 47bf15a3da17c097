"""`farline nodes`: what the nodes of an end have, without a copy."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command
from farline.cli.common import interruptible
from farline.cli.copy.options import login_options, remote_farline_option
from farline.cli.shown import shown
from farline.errors import FarlineError, InterruptedRun
from farline.spec.units import counted, rate_human, size_human

if TYPE_CHECKING:
    from farline.cluster.survey import Survey, SurveyedNode
    from farline.copying.locations import Location
    from farline.tools.events import Steps
    from farline.tools.ssh_command import SshCommand

_UNKNOWN = "unknown"
WIDTH = 100
"""Columns of the table where it is not on a terminal."""


@click.command("nodes", cls=Command, short_help="Show what transfer nodes have.")
@click.argument("place", metavar="NODES[/PATH]")
@click.option("--json", "as_json", is_flag=True, help="Print what each has as one JSON document.")
@login_options
@click.option("-4", "version4", is_flag=True, help="Use IPv4 only with ssh.")
@click.option("-6", "version6", is_flag=True, help="Use IPv6 only with ssh.")
@remote_farline_option
def command(place: str, as_json: bool, **options: Any) -> int:
    """Show what transfer nodes have: CPUs, memory, fastest network interface, disk.

    NODES[/PATH] is an end of several nodes as farline copy takes it, such as dtn[1-8]:/data,
    slurm:xfer:4/data, testbed:nodes:sink-[1-2] or a pool of pools.toml; or one host. The disk is
    that of PATH, / by default. Nothing is copied or written; nodes that an engine gave for this go
    back to it. A node that does not answer is named, and the exit code is that of its failure.
    """
    from farline.cluster.survey import read_place, survey
    from farline.tools import Stop

    location = read_place(place)
    with interruptible(quiet=True) as asked:
        # What was started on nodes ends with a Ctrl-C, too.
        found = _followed(survey(location, _ssh(location, options), asked))
        if asked() is not Stop.GO_ON:
            raise InterruptedRun("stopped")
    if as_json:
        click.echo(json.dumps(found.document(), indent=2))
    else:
        _print(found)
    return _told(found)


def _ssh(location: Location, options: Mapping[str, Any]) -> SshCommand | None:
    from farline.cli.copy.command import over_ssh, ssh_command
    from farline.copying.locations import Endpoints, ThisHost

    options = {**options, "bootstrap": False, "bootstrap_program": None}
    ends = Endpoints(location.host, (location.path,), ThisHost(), "/")
    return ssh_command(options) if over_ssh(ends, options) else None


def _followed(steps: Steps[Survey]) -> Survey:
    """The survey; what it waits for is told meanwhile."""
    from farline.tools.events import Notice

    try:
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                found: Survey = end.value
                return found
            if isinstance(event, Notice):
                click.echo(f"farline: {shown(event.text)}", err=True)
    finally:
        steps.close()


def _print(found: Survey) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    answered = [node for node in found.nodes if node.error is None]
    if not answered:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("node", "data address", "CPUs", "memory", "fastest interface", "disk there"):
        table.add_column(head, overflow="fold")
    for node in answered:
        table.add_row(*map(shown, row(node)))
    click.echo(shown(str(found.location)))
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    console.print(table)


def row(node: SurveyedNode) -> tuple[str, ...]:
    """The cells of a node that has answered."""
    has = node.capacity
    cpus = str(has.get("cpus", _UNKNOWN))
    if (numa := has.get("numa_nodes", 1)) > 1:
        cpus += f" in {numa} NUMA nodes"
    memory = size_human(has["memory_bytes"]) if "memory_bytes" in has else _UNKNOWN
    speed = rate_human(has["nic_bps"]) if "nic_bps" in has else _UNKNOWN
    disk = _UNKNOWN
    if "free_bytes" in has:
        disk = f"{size_human(has['free_bytes'])} free"
    if "disk_bytes" in has:
        disk += f" of {size_human(has['disk_bytes'])}"
    if node.has_path is False:
        disk += "; no such path yet"
    return node.name, node.address, cpus, memory, speed, disk


def _told(found: Survey) -> int:
    """Names what is missing; the exit code is that of the first node that did not answer."""
    for node in found.nodes:
        if node.error is not None:
            click.echo(f"farline: {shown(_named(node.name, node.error))}", err=True)
    if found.missing:
        more = counted(found.missing, "node")
        click.echo(f"farline: {more} more can be had when they are free", err=True)
    return 0 if found.error is None else found.error.exit_code


def _named(name: str, error: FarlineError) -> str:
    """The line of an error, which names the node."""
    return error.message if name in error.message else f"{name}: {error.message}"
