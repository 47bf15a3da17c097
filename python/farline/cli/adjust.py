"""`farline adjust`: another number of streams, files at once or rate for a copy that runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from farline.cli.command import Command
from farline.cli.limits import RATE
from farline.cli.shown import shown
from farline.copying.adjusting import change_text, request_of
from farline.copying.control_socket import adjust
from farline.errors import LimitError

if TYPE_CHECKING:
    from farline.spec._types import Adjustment


@click.command(cls=Command, short_help="Change a copy while it runs.")
@click.argument("run", metavar="RUN|last")
@click.option(
    "-P",
    "--streams",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Use N data streams from now on.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Send at most N files at once from now on.",
)
@click.option(
    "--rate",
    type=RATE,
    help="Limit all data streams together to this rate from now on; 0bit/s removes the limit.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    run: str, streams: int | None, concurrency: int | None, rate: float | None, as_json: bool
) -> int:
    """Change one of your running copies on this host, without interrupting it.

    RUN is the name of the run, or the beginning or end of it; "last" is the newest running
    copy. The command waits until the change takes effect.
    """
    if streams is None and concurrency is None and rate is None:
        raise click.UsageError("give at least one of --streams, --concurrency, --rate")
    request = request_of(streams, concurrency, None if rate is None else int(rate))
    run_id, changes = adjust(run, request)
    if as_json:
        click.echo(json.dumps({"schema": 1, "run_id": run_id, "changes": changes}))
    else:
        for change in changes:
            if not change.get("refused"):
                click.echo(f"{run_id}: {shown(change_text(change))}")
        if not changes:
            click.echo(f"{run_id}: no session is running; the next one starts with this change")
    _check(changes)
    return 0


def _check(changes: list[Adjustment]) -> None:
    """What was refused is a failure of the command."""
    refused = [change_text(one) for one in changes if one.get("refused")]
    if refused:
        raise LimitError(f"adjust: {'; '.join(refused)}")
