"""`farline analyze ingest`: takes in logs of other tools and keeps them in the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import json_option, reading_from, reading_options
from farline.cli.selection import store_option
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.analysis import Refused, Taken

_HELP = """Take in logs of other tools and keep them in the store.

\b
  farline analyze ingest gridftp-transfer.log iperf3/*.json
  farline analyze ingest transfers.csv --map rate_bps=mbps:Mbit/s,rtt_ms=rtt

FILE is a log, a pattern or a folder of logs; what format it has is found out. The same log taken
in again is recognised, one that has grown replaces its earlier self. Records that cannot be read
are counted, and the first are shown with why. The exit code is 0 if all was taken in or was there
already, 23 if logs were refused or records could not be read, 1 if nothing was taken in.
"""

PARTLY = 23
"""The exit code where a part was left out, as of a copy (and of rsync)."""


@click.command("ingest", help=_HELP, short_help="Take in logs of other tools and keep them.")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@reading_options
@click.option(
    "--malformed", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.tsv",
    help="Write every record that could not be read here, with its place and why.",
)  # fmt: skip
@click.option("--list", "as_list", is_flag=True, help="List the logs that are kept.")
@click.option(
    "--forget", multiple=True, metavar="LOG",
    help="Remove a kept log, by its name or digest; several if given.",
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
        raise UsageError("what is to be taken in? Name a log, or --list or --forget")
    if files and (forget or as_list):
        raise UsageError("name logs to take in, or --list, or --forget: one at a time")
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
        return UsageError.exit_code
    whole = len(taken) == len(outcome) and not any(
        one.kept.counts.get("malformed") for one in taken
    )
    return 0 if whole else PARTLY
