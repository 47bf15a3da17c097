"""`farline testbed cc`: congestion controls that a kernel may lack."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from farline.cli.command import Command, Group
from farline.testbeds import congestion


@click.group(cls=Group, short_help="Load congestion controls that the kernel lacks.")
def cc() -> None:
    """Load H-TCP, Scalable TCP and HighSpeed TCP where the kernel has no module for them."""


@cc.command("list", cls=Command, short_help="List congestion controls.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_all(as_json: bool) -> None:
    """List congestion controls, and whether and how each can be used on this host."""

    found = congestion.available()
    if as_json:
        document = {"schema": 1, "congestion_controls": [asdict(one) for one in found]}
        click.echo(json.dumps(document, indent=2))
        return
    for one in found:
        click.echo(f"{one.name:<16}{one.state:<13}{one.reason}")


@cc.command(cls=Command, short_help="Load a congestion control.")
@click.argument("name")
def load(name: str) -> None:
    """Load a congestion control into the kernel, for all programs on this machine."""
    found = congestion.load(name)
    click.echo(f"{found.name} is loaded: -C {found.kernel_name}")


@cc.command(cls=Command, short_help="Unload a congestion control.")
@click.argument("name")
def unload(name: str) -> None:
    """Unload a congestion control that farline loaded."""
    congestion.unload(name)
    click.echo(f"{name} is unloaded")
