"""`farline import-config`: configurations of other tools as what farline and ssh read."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from farline.cli.command import Command
from farline.cli.words import Words
from farline.errors import SpecError, SystemFailure
from farline.spec.user_folders import expanded

_DEFAULTS = {
    "rclone": "~/.config/rclone/rclone.conf",
    "globus": "~/.globusonline/lta/config-paths",
}
_MOST_BYTES = 64 << 20


@click.command(cls=Command, short_help="Convert other tools' configurations.")
@click.argument("tool", type=Words(["rclone", "globus", "perfsonar"]))
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def command(tool: str, file: Path | None) -> int:
    """Print a configuration of another tool as one for farline; nothing is changed.

    rclone's remotes over SFTP become hosts for ~/.ssh/config; the folders of a Globus Connect
    Personal become tickets to make; a perfSONAR mesh (pSConfig) becomes a file of sites. farline
    uses ssh's own configuration as it is.
    """
    from farline.spec.imported import from_globus, from_perfsonar, from_rclone

    path = file or _default(tool)
    text = _read(path)
    try:
        if tool == "rclone":
            found = from_rclone(text)
        elif tool == "globus":
            found = from_globus(text, str(expanded("~")))
        else:
            found = from_perfsonar(text)
    except SpecError as error:
        raise SpecError(f"{path}: {error.message}") from None
    click.echo(f"# from {path}; for {found.place}")
    click.echo(found.text, nl=False)
    for line in found.left_out:
        click.echo(f"left out: {line}", err=True)
    if not found.text:
        click.echo(f"farline: {path}: it contains nothing that farline can use", err=True)
        return 1
    return 0


def _default(tool: str) -> Path:
    if tool not in _DEFAULTS:
        raise click.UsageError("perfsonar needs a file: name the mesh's JSON document")
    return expanded(_DEFAULTS[tool])


def _read(path: Path) -> str:
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise SpecError(f"{path}: longer than 64 MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text in UTF-8") from None
