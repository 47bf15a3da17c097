"""`farline ls`: the names in a folder on another host."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command
from farline.cli.far_names import LOCATION, MORE, opened, reach_options
from farline.cli.shown import shown
from farline.spec.units import size_human

if TYPE_CHECKING:
    from farline.api.folder import Folder
    from farline.tools.names import Name

_TYPES = {"folder": stat.S_IFDIR, "link": stat.S_IFLNK, "file": stat.S_IFREG}


@click.command(cls=Command, short_help="List a folder on another host.")
@click.argument("location", metavar=LOCATION)
@click.argument("more", nargs=-1, metavar=MORE)
@click.option("-R", "--recursive", is_flag=True, help="List the folders below it too.")
@click.option("-d", "--directory", is_flag=True, help="Show a folder itself, not what is in it.")
@click.option("-1", "--names", "names_only", is_flag=True, help="Print names only.")
@click.option("-b", "--bytes", "in_bytes", is_flag=True, help="Print sizes in bytes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document for each name.")
@reach_options
def command(
    location: str,
    more: tuple[str, ...],
    recursive: bool,
    directory: bool,
    names_only: bool,
    in_bytes: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """List names below the folder of a ticket, or on a host that ssh reaches.

    LOCATION is farline://...#path or [user@]host:path; PATH is another path on the same host. Each
    line has permissions, size, last change and name, sorted by name.
    """
    with opened(location, more, "read", options) as (folder, paths):
        for path in paths:
            for place, name in _found(folder, path, recursive, directory):
                if as_json:
                    click.echo(json.dumps({"path": place, **name.document()}))
                elif names_only:
                    click.echo(shown(place))
                else:
                    click.echo(_line(place, name, in_bytes))
    return 0


def _found(
    folder: Folder, path: str, recursive: bool, directory: bool
) -> Iterator[tuple[str, Name]]:
    """Names with their paths below what was asked for."""
    from farline.tools.names import NoFolder

    if not directory:
        try:
            yield from _below(folder, path, "", recursive)
            return
        except NoFolder:
            pass
    name = folder.stat(path)
    yield name.name or path, name


def _below(folder: Folder, path: str, place: str, recursive: bool) -> Iterator[tuple[str, Name]]:
    for name in folder.list(f"{path.rstrip('/')}/{place}" if place else path):
        below = f"{place}/{name.name}" if place else name.name
        yield below, name
        if recursive and name.kind == "folder":
            yield from _below(folder, path, below, recursive)


def _line(place: str, name: Name, in_bytes: bool) -> str:
    mode = stat.filemode(_TYPES.get(name.kind, 0) | name.mode)
    size = str(name.bytes) if in_bytes else size_human(name.bytes)
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(name.mtime_ns / 1e9))
    end = "/" if name.kind == "folder" else ""
    target = f" -> {name.target}" if name.target is not None else ""
    return shown(
        f"{mode}  {size if name.kind == 'file' else '-':>12}  {changed}  {place}{end}{target}"
    )
