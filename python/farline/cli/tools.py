"""`farline tools`: which movers and testers of others can be driven, and what each can do."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command
from farline.errors import FarlineError

if TYPE_CHECKING:
    from farline.drivers import Driver


@click.command(cls=Command, short_help="List the tools that farline can drive.")
@click.argument("names", nargs=-1, metavar="[TOOL...]")
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the movers and testers that --tool can name.

    Each has a line: whether it is installed here and in which version, or which
    package brings it. With TOOL, show what it takes and what it calls it.
    """
    from farline.drivers import drivers, find_driver

    chosen = [find_driver(name) for name in names] or list(drivers().values())
    documents = [_document(one) for one in chosen]
    if as_json:
        click.echo(json.dumps({"schema": 1, "tools": documents}, indent=2))
    elif names:
        for document in documents:
            _print_one(document)
    else:
        _print_list(documents)


def _document(known: Driver) -> dict[str, Any]:
    """What is known of a tool on this host."""
    from farline.drivers import Here

    try:
        version, is_installed = known.version(Here()), known.find(Here()) is not None
    except FarlineError:
        version, is_installed = None, False
    able = known.abilities
    return {
        "name": known.name,
        "title": known.title,
        "kind": able.kind,
        "installed": is_installed,
        "version": version,
        "package": known.package,
        "transports": list(able.transports),
        "directions": list(able.directions),
        "takes": dict(able.takes),
        "server": [place.__name__.lower() for place in able.places],
    }


def _print_list(documents: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("tool", "kind", "version here", "what it does"):
        table.add_column(head, overflow="fold")
    for one in documents:
        here = (one["version"] or "yes") if one["installed"] else "not installed"
        table.add_row(one["name"], one["kind"], here, one["title"])
    console = Console() if sys.stdout.isatty() else Console(width=100)
    console.print(table)
    for one in documents:
        if not one["installed"]:
            click.echo(f"{one['name']}: install {one['package']}")


_PLACES = {
    "here": "on this host",
    "inhost": "on a testbed's host",
    "overssh": "over ssh",
    "standing": "one that runs already",
}


def _print_one(one: dict[str, Any]) -> None:
    here = (one["version"] or "installed") if one["installed"] else "not installed"
    rows = [
        (one["name"], f"{one['title']} ({one['kind']})"),
        ("here", here),
        ("package", one["package"]),
        ("transports", ", ".join(one["transports"])),
        ("directions", ", ".join(one["directions"])),
        ("server", ", ".join(_PLACES[place] for place in one["server"])),
    ]
    for name, text in rows:
        click.echo(f"{name:<12}{text}")
    click.echo("takes")
    for path, flag in one["takes"].items():
        click.echo(f"  {path:<28}{flag}".rstrip())
