"""`farline stat`: what a name on another host stands for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command
from farline.cli.far_names import LOCATION, MORE, opened, reach_options
from farline.cli.shown import shown
from farline.spec.options import OptionType
from farline.spec.units import size_human

if TYPE_CHECKING:
    from farline.tools.names import Name


def _read_sums(text: str) -> tuple[str, ...]:
    from farline.tools.names import SUMS

    words = tuple(dict.fromkeys(text.split(",")))
    for word in words:
        if word not in SUMS:
            raise ValueError(f"{word!r} is not allowed; one or more of: {', '.join(SUMS)}")
    return words


@click.command(cls=Command, short_help="Show a file on another host and its checksums.")
@click.argument("location", metavar=LOCATION)
@click.argument("more", nargs=-1, metavar=MORE)
@click.option(
    "--sum",
    "sums",
    type=OptionType(_read_sums),
    metavar="SUM,...",
    help="Compute these checksums there: blake3, adler32, md5.",
)
@click.option("-L", "--dereference", "follow", is_flag=True, help="Follow a link at the end.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document for each name.")
@reach_options
def command(
    location: str,
    more: tuple[str, ...],
    sums: tuple[str, ...] | None,
    follow: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Show files and folders below the folder of a ticket, or on a host that ssh reaches.

    LOCATION is farline://...#path or [user@]host:path; PATH is another path on the same host.
    For a checksum that host reads the whole file, but sends none of it.
    """
    with opened(location, more, "read", options) as (folder, paths):
        for number, path in enumerate(paths):
            name = folder.stat(path, follow, sums or ())
            if as_json:
                click.echo(json.dumps({"path": path, **name.document()}))
            else:
                click.echo("\n" * (number > 0) + _text(path, name))
    return 0


def _text(path: str, name: Name) -> str:
    changed = datetime.fromtimestamp(name.mtime_ns // 10**9, tz=UTC)
    rows = [
        ("path", path),
        ("kind", name.kind),
        ("size", f"{size_human(name.bytes)} ({name.bytes} bytes)"),
        ("changed", f"{changed:%Y-%m-%d %H:%M:%S}.{name.mtime_ns % 10**9:09d} UTC"),
        ("mode", f"{name.mode:04o}"),
    ]
    if name.target is not None:
        rows.append(("leads to", name.target))
    rows += name.sums.items()
    return "\n".join(shown(f"{word:<9} {value}") for word, value in rows)
