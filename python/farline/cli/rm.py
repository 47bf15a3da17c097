"""`farline rm`: files and folders of another host are removed."""

from __future__ import annotations

from typing import Any

import click

from farline.cli.command import Command
from farline.cli.far_names import LOCATION, MORE, opened, reach_options
from farline.spec.units import counted


@click.command(cls=Command, short_help="Remove files on another host.")
@click.argument("location", metavar=LOCATION)
@click.argument("more", nargs=-1, metavar=MORE)
@click.option("-r", "--recursive", is_flag=True, help="Remove folders with everything in them.")
@click.option("-f", "--force", is_flag=True, help="Ignore names that do not exist.")
@click.option("-v", "--verbose", is_flag=True, help="Print how many names were removed.")
@reach_options
def command(
    location: str,
    more: tuple[str, ...],
    recursive: bool,
    force: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Remove names below the folder of a ticket, or on a host that ssh reaches.

    LOCATION is farline://...#path or [user@]host:path; PATH is another path on the same host. A
    link is removed, not what it points to; an empty folder is removed without -r too. A ticket
    must allow writing.
    """
    from farline.tools.names import NoSuchName

    count = 0
    with opened(location, more, "write", options) as (folder, paths):
        for path in paths:
            try:
                count += folder.remove(path, recursive)
            except NoSuchName:
                if not force:
                    raise
    if verbose:
        click.echo(f"{counted(count, 'name')} removed")
    return 0
