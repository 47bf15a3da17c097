"""Which page belongs to a command, and how the commands of a group are listed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import click

from farline.cli.manual.page import Page
from farline.cli.verbs import HasVerbs

_FILES = {
    "": "start",
    "copy": "copy",
    "adjust": "copy",
    "estimate": "estimate",
    "check": "copy",
    "ls": "names",
    "stat": "names",
    "cat": "names",
    "mkdir": "names",
    "rename": "names",
    "rm": "names",
    "serve": "serve",
    "portal": "portal",
    "ticket": "serve",
    "trust": "serve",
    "bootstrap": "copy",
    "probe": "measure",
    "tune": "measure",
    "app-perf": "measure",
    "profile": "measure",
    "fairness": "measure",
    "host": "measure",
    "nodes": "measure",
    "storage": "storage",
    "tools": "measure",
    "model": "model",
    "reproduce": "reproduce",
    "testbed": "testbed",
    "analyze": "analyze",
}
"""Where the pages of a verb are; those of others are in `results`."""

Rows = list[tuple[str, str]]


def page_of(ctx: click.Context) -> Page:
    """The page of a command; an empty one for a command that has none."""
    path = " ".join(command_path(ctx))
    verb = path.partition(" ")[0]
    file = importlib.import_module(f"farline.cli.manual.{_FILES.get(verb, 'results')}")
    pages: dict[str, Page] = file.PAGES
    return pages.get(path, Page())


def command_path(ctx: click.Context) -> list[str]:
    """The words of a command behind `farline`, such as `testbed`, `up`."""
    words = [] if ctx.parent is None else [*command_path(ctx.parent), str(ctx.info_name)]
    return words


def command_groups(
    group: click.Group, ctx: click.Context, everything: bool
) -> Iterator[tuple[str, Rows]]:
    """The commands of a group under their headings; with `everything`, those below them too."""
    found: dict[str, Rows] = {}
    for name in group.list_commands(ctx):
        rows = found.setdefault(_title(group, name), [])
        rows.append((name, _short_help(group, ctx, name)))
        if everything:
            rows += _below(group, ctx, name)
    yield from found.items()


def _title(group: click.Group, name: str) -> str:
    return group.verbs[name].title if isinstance(group, HasVerbs) else "Commands"


def _short_help(group: click.Group, ctx: click.Context, name: str) -> str:
    """From the table where there is one: nothing has to be imported for it."""
    if isinstance(group, HasVerbs):
        return group.verbs[name].help
    command = group.get_command(ctx, name)
    return command.get_short_help_str(limit=72) if command is not None else ""


def _below(group: click.Group, ctx: click.Context, name: str) -> Rows:
    command = group.get_command(ctx, name)
    if not isinstance(command, click.Group):
        return []
    below = click.Context(command, parent=ctx, info_name=name)
    rows: Rows = []
    for one in command.list_commands(below):
        rows.append((f"{name} {one}", _short_help(command, below, one)))
        rows += [(f"{name} {words}", text) for words, text in _below(command, below, one)]
    return rows
