"""`farline cat`: what is in a file on another host."""

from __future__ import annotations

import sys
from typing import Any

import click

from farline.cli.command import Command
from farline.cli.far_names import LOCATION, opened, reach_options
from farline.cli.limits import SIZE

_PART_BYTES = 4 << 20


@click.command(cls=Command, short_help="Print a file on another host.")
@click.argument("location", metavar=LOCATION)
@click.option("--offset", type=SIZE, default="0B", help="Start at this byte.")
@click.option("--count", type=SIZE, help="Print at most this many bytes (default: to the end).")
@reach_options
def command(location: str, offset: float, count: float | None, **options: Any) -> int:
    """Print a file below the folder of a ticket, or on a host that ssh reaches.

    LOCATION is farline://...#path or [user@]host:path. A ticket must allow reading. For more
    than a few megabytes use farline copy.
    """
    at, left = int(offset), None if count is None else int(count)
    with opened(location, (), "read", options) as (folder, (path,)):
        while left is None or left > 0:
            wanted = _PART_BYTES if left is None else min(left, _PART_BYTES)
            data = folder.read(path, at, wanted)
            sys.stdout.buffer.write(data)
            at += len(data)
            left = None if left is None else left - len(data)
            if len(data) < wanted:
                break
        sys.stdout.buffer.flush()
    return 0
