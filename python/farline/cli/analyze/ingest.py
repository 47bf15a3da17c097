"""`farline analyze ingest`: takes in logs of other tools and keeps them in the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import json_option, reading_from, reading_options
from farline.cli.command import Command
from farline.cli.common import store_option
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.analysis import Refused, Taken

_HELP = """Import logs of other tools into the store.

FILE is a log, a pattern or a folder of logs; the format is detected. A log that was imported
before is recognised, and one that has grown replaces its earlier version. Records that cannot
be read are counted and the first of them explained.
"""

PARTLY = 23
"""The exit code where a part was left out, as of a copy (and of rsync)."""


@click.command(
    "ingest", cls=Command, help=_HELP, short_help="Import logs of other tools into the store."
)
@click.argument("files", metavar="[FILE]...", nargs=-1)
@reading_options
@click.option(
    "--malformed", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.tsv",
    help="Write records that cannot be read to this file, with their place and the reason.",
)  # fmt: skip
@click.option("--list", "as_list", is_flag=True, help="List the logs in the store.")
@click.option(
    "--forget", multiple=True, metavar="LOG",
    help="Remove a log from the store, by name or digest; repeat for several.",
)  # fmt: skip
@json_option
@store_option
def command(as_json: bool, as_list: bool, **options: Any) -> int:
    """Takes in, forgets, lists; the exit code."""
    from farline import analysis
    from farline.cli.analyze import ingest_text as text
    from farline.cli.analyze.progress import progress
    from farline.store import Store

    files, forget = options["files"], options["forget"]
    if not (files or forget or as_list):
        raise UsageError("nothing to ingest: name a log, or use --list or --forget")
    if files and (forget or as_list):
        raise UsageError("name logs, or use --list or --forget: one of these at a time")
    if not files:
        store = Store(options["store_path"], create=False)
        gone = [store.forget_transfers(name) for name in forget]
        text.show_kept(store.transfer_logs() if as_list else None, gone, as_json)
        return 0
    store, reading = Store(options["store_path"]), reading_from(options)
    with progress() as seen:
        outcome = analysis.ingest(
            store, files, reading, malformed=options["malformed"], on_progress=seen
        )
    text.show_outcome(outcome, as_json)
    return exit_code(outcome)


def exit_code(outcome: Sequence[Taken | Refused]) -> int:
    """What became of all logs together."""
    from farline.analysis import Taken

    taken = [one for one in outcome if isinstance(one, Taken)]
    if not taken:
        codes = [one.exit_code for one in outcome if not isinstance(one, Taken)]
        return max(codes, default=UsageError.exit_code)
    whole = len(taken) == len(outcome) and not any(
        one.kept.counts.get("malformed") for one in taken
    )
    return 0 if whole else PARTLY
