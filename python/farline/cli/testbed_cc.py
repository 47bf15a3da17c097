"""`farline testbed cc`: congestion controls that a kernel may lack."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from farline.testbeds import congestion


@click.group(short_help="Congestion controls that the kernel may lack.")
def cc() -> None:
    """H-TCP, Scalable TCP and HighSpeed TCP, where the kernel has no module of them."""


@cc.command("list", short_help="Say which can be had here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_all(as_json: bool) -> None:
    """Say which can be had here, how, and why not."""
    found = congestion.available()
    if as_json:
        document = {"schema": 1, "congestion_controls": [asdict(one) for one in found]}
        click.echo(json.dumps(document, indent=2))
        return
    for one in found:
        click.echo(f"{one.name:<16}{one.state:<13}{one.reason}")


@cc.command(short_help="Load one into the kernel.")
@click.argument("name")
def load(name: str) -> None:
    """Load NAME into the kernel: every socket of this machine may use it from then on."""
    found = congestion.load(name)
    click.echo(f"{found.name} is there: -C {found.kernel_name}")


@cc.command(short_help="Take one out of the kernel again.")
@click.argument("name")
def unload(name: str) -> None:
    """Take NAME, that was loaded, out of the kernel again."""
    congestion.unload(name)
    click.echo(f"{name} is unloaded")
