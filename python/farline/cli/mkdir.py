"""`farline mkdir`: folders on another host."""

from __future__ import annotations

from typing import Any

import click

from farline.cli.command import Command
from farline.cli.far_names import LOCATION, MORE, opened, reach_options


@click.command(cls=Command, short_help="Make a folder on another host.")
@click.argument("location", metavar=LOCATION)
@click.argument("more", nargs=-1, metavar=MORE)
@click.option(
    "-p",
    "--parents",
    is_flag=True,
    help="Make missing folders above it too; accept one that exists.",
)
@reach_options
def command(location: str, more: tuple[str, ...], parents: bool, **options: Any) -> int:
    """Make folders below the folder of a ticket, or on a host that ssh reaches.

    LOCATION is farline://...#path or [user@]host:path; PATH is another path on the same host. A
    ticket must allow writing.
    """
    with opened(location, more, "write", options) as (folder, paths):
        for path in paths:
            folder.make_folder(path, parents)
    return 0
