"""`farline tools`: which movers and testers of others can be driven, and what each can do."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, get_args

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

    Each line says whether the tool is installed here and in which version, or which
    package to install. With TOOL, show which options it takes, and its names for them.
    """
    from farline.drivers import drivers

    documents = [_named(name) for name in names or drivers()]
    if as_json:
        click.echo(json.dumps({"schema": 1, "tools": documents}, indent=2))
    elif names:
        for document in documents:
            _print_one(document)
    else:
        _print_list(documents)


def _named(name: str) -> dict[str, Any]:
    """What is known of the tool of that name, farline's own engine among them."""
    from farline.drivers import NATIVE, find_driver

    return _own_engine() if name == NATIVE else _document(find_driver(name))


def _own_engine() -> dict[str, Any]:
    """farline's own engine, which needs no driver: every option of the spec is its own."""
    from farline.drivers import NATIVE
    from farline.spec._types import Direction, Transport
    from farline.tools.native import version_info

    return {
        "name": NATIVE,
        "title": "farline's own engine, where no tool is named",
        "kind": "mover and tester",
        "installed": True,
        "version": version_info()["farline"],
        "package": "farline",
        "transports": list(get_args(Transport)),
        "directions": list(get_args(Direction)),
        "takes": {},
        "server": list(_PLACES),
    }


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
    if not one["takes"]:
        return
    click.echo("takes")
    for path, flag in one["takes"].items():
        click.echo(f"  {path:<28}{flag}".rstrip())
