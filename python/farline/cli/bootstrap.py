"""`farline bootstrap`: the program for copies to a host without farline, sent ahead or removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.command import Command
from farline.cli.common import interruptible
from farline.cli.copy.options import login_options
from farline.cli.shown import shown
from farline.tools.events import Notice

if TYPE_CHECKING:
    from farline.tools.events import Steps

_Result = TypeVar("_Result")


@click.command(cls=Command, short_help="Send a program for copies to a host without farline.")
@click.argument("host", metavar="[USER@]HOST")
@click.option("--remove", is_flag=True, help="Remove the programs that were sent to that host.")
@click.option(
    "--program",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Send this program, not one that comes with farline.",
)
@login_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(host: str, remove: bool, program: Path | None, as_json: bool, **login: Any) -> int:
    """Send a program for copies to HOST over ssh, as `farline copy --bootstrap` does.

    The program needs neither Python nor root there. It is checked by its SHA-256 and kept
    in ~/.cache/farline, where a later copy finds it. --remove deletes it again.
    """
    from farline.cli.copy.command import ssh_command
    from farline.tools.bootstrap import remove_programs, send_program

    if remove and program is not None:
        raise click.UsageError("--remove and --program cannot be combined")
    if host.startswith("-") or ":" in host or "/" in host:
        raise click.UsageError(f"{host!r} is not a host as ssh takes it: [user@]host")
    rest = dict.fromkeys(("version4", "version6", "remote_farline", "bootstrap_program"))
    ssh = ssh_command({**rest, "bootstrap": False, **login})
    with interruptible() as asked:
        if remove:
            paths = _last(remove_programs(ssh, host, asked))
        else:
            paths = [_last(send_program(ssh, host, program, asked))]
    if as_json:
        word = "removed" if remove else "path"
        click.echo(json.dumps({"schema": 1, "host": host, word: paths if remove else paths[0]}))
        return 0
    for path in paths:
        click.echo(f"{host}:{shown(path)}" + ("  removed" if remove else ""))
    if not paths:
        click.echo(f"{host}: nothing to remove")
    return 0


def _last(steps: Steps[_Result]) -> _Result:
    """What steps come to; what they tell meanwhile goes to standard error."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result
        if isinstance(step, Notice):
            click.echo(f"farline: {step.text}", err=True)
