"""`farline completion SHELL`: the script that makes the Tab key complete farline's commands."""

from __future__ import annotations

import sys

import click

from farline.cli.command import Command
from farline.cli.completing import SHELLS, answer, installing
from farline.cli.words import Words


@click.command(cls=Command, short_help="Complete farline's commands with the Tab key.")
@click.argument("shell", type=Words(list(SHELLS)))
def command(shell: str) -> int:
    """Print the script that lets SHELL complete farline's commands: bash, zsh or fish.

    Commands, options, their values, runs, campaigns, hosts, tickets, testbeds and tools are
    completed.
    """
    from farline.cli.group import cli

    if sys.stdout.isatty():
        click.echo(f"# in every new terminal:  {installing(shell)}", err=True)
    return answer(cli, f"{shell}_source")
