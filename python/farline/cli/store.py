"""`farline store`: what the store of runs holds, and bringing it to the present version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farline.cli.command import Command, Group
from farline.cli.common import store_option
from farline.cli.shown import shown
from farline.errors import SystemFailure, UsageError
from farline.spec.units import counted

if TYPE_CHECKING:
    from farline.store.migrate import StoreSurvey


@click.group("store", cls=Group, short_help="Check or migrate the store of runs.")
def command() -> None:
    """Check the store of runs, or bring it to the present version.

    Stores of every older version are read as they are: nothing has to be
    migrated before it is used.
    """


@command.command("migrate", cls=Command, short_help="Bring a store to the present version.")
@click.option("--check", is_flag=True, help="Read all of it, say what is there, change nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --check, print one JSON document.")
@store_option
def migrate(check: bool, as_json: bool, store_path: Path | None) -> int:
    """Write what older versions wrote as this version does.

    New files are written beside the old ones, which are deleted afterwards: a
    migration that is interrupted is begun again, and nothing is lost. An older
    farline may not read the result; copy the folder first to keep a way back.
    """
    from farline.store import Store
    from farline.store.migrate import migrate as write_anew
    from farline.store.migrate import survey

    if as_json and not check:
        raise UsageError("--json: works only with --check")
    layout = Store(store_path, create=False).layout
    if not check:
        runs = write_anew(layout)
        click.echo(f"{layout.root}: {counted(runs, 'run')} written as this version does")
        return 0
    found = survey(layout)
    if as_json:
        click.echo(json.dumps(found.document(), indent=2))
    else:
        for line in survey_lines(found):
            click.echo(shown(line))
    return 0 if found.is_sound else SystemFailure.exit_code


def survey_lines(found: StoreSurvey) -> Iterator[str]:
    """What is there, what a migration would do, what cannot be read."""
    from farline.store.upgrade import FORMAT_VERSION

    if not found.runs:
        yield "no runs"
    for version, runs in sorted(found.runs.items()):
        which = " (this one)" if version == FORMAT_VERSION else ""
        yield f"version {version}{which}: {counted(runs, 'run')}"
    if found.old_files:
        yield f"farline store migrate would write {counted(found.old_files, 'file')} anew"
    for line in (*found.damaged, *found.newer):
        yield f"cannot be read: {line}"
    if found.is_sound:
        yield "all of it can be read"
