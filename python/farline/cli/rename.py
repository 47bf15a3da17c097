"""`farline rename`: another name for a file or folder on another host."""

from __future__ import annotations

from typing import Any

import click

from farline.cli.command import Command
from farline.cli.far_names import LOCATION, opened, reach_options


@click.command(cls=Command, short_help="Rename a file on another host.")
@click.argument("location", metavar=LOCATION)
@click.argument("new", metavar="NEW")
@click.option("-f", "--force", is_flag=True, help="Replace a file that has the new name.")
@click.option("-p", "--parents", is_flag=True, help="Make missing folders above the new name.")
@reach_options
def command(location: str, new: str, force: bool, parents: bool, **options: Any) -> int:
    """Rename a file or folder below the folder of a ticket, or on a host that ssh reaches.

    LOCATION is farline://...#path or [user@]host:path; NEW is a path on the same host, not below
    the old one. A ticket must allow writing.
    """
    with opened(location, (new,), "write", options) as (folder, (path, to)):
        folder.rename(path, to, force, parents)
    return 0
