"""The verbs, and what happens to errors."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from farline.cli.failures import json_style, print_failure
from farline.cli.log_options import from_verb, log_options, with_log_options
from farline.cli.shown import shown
from farline.errors import FarlineError, InterruptedRun, SystemFailure, UsageError
from farline.logs import Log

_LOG = Log(__name__)


@dataclass(frozen=True)
class Verb:
    """Where a command lives, and its line in the list."""

    module: str
    help: str


COMMANDS: dict[str, Verb] = {
    "copy": Verb("farline.cli.copy.command", "Copy files and folders to, from and between hosts."),
    "serve": Verb("farline.cli.serve", "Serve copies and profiling runs to other hosts."),
    "probe": Verb("farline.cli.probe", "Run once towards a host and say what limited it."),
    "app-perf": Verb(
        "farline.cli.app_perf", "Measure what a host takes in, with and without one copy more."
    ),
    "profile": Verb("farline.cli.profile", "Run a campaign over a grid of parameters."),
    "model": Verb("farline.cli.model", "Say what a transport should reach on a path."),
    "testbed": Verb("farline.cli.testbed", "Emulate a wide-area network on this machine."),
    "runs": Verb("farline.cli.runs", "List the runs that were kept."),
    "show": Verb("farline.cli.show", "Show one run."),
    "export": Verb("farline.cli.export", "Write runs as CSV, Parquet or JSON."),
    "report": Verb("farline.cli.report", "Draw runs: figures and one HTML page."),
    "analyze": Verb("farline.cli.analyze", "Turn measurements into profiles, causes and a page."),
    "host": Verb("farline.cli.host", "Say what this host can do and what holds it back."),
    "ticket": Verb("farline.cli.ticket", "Make a ticket for this host's server."),
    "trust": Verb("farline.cli.trust", "Remember a ticket or a server's key, or forget it."),
}


class LazyGroup(click.Group):
    """Lists verbs without importing them."""

    verbs: Mapping[str, Verb] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, in the order of the table."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the verb's module; its command is named `command`."""
        if cmd_name not in self.verbs:
            return None
        module = importlib.import_module(self.verbs[cmd_name].module)
        command: click.Command = module.command
        return with_log_options(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self.verbs.items()])


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"farline {version('farline')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    help="Measures, explains and moves bulk data over long fat networks.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    "-v",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version and exit.",
)
def cli() -> None:
    """Chooses the verb; all work is the verb's."""


cli.params.extend(log_options())


def run(arguments: Sequence[str]) -> int:
    """Runs the command line; errors become one line (or a document) and an exit code."""
    _begin_anew()
    code = _run(arguments)
    left_out = _left_out(from_verb(arguments))
    return code or left_out


def _begin_anew() -> None:
    if (left_out := sys.modules.get("farline.store.left_out")) is not None:
        left_out.forget()


def _run(arguments: Sequence[str]) -> int:
    try:
        outcome = cli.main(args=list(arguments), prog_name="farline", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        if not _is_output_broken():
            raise
        _drop_output()
        return _failed(SystemFailure(f"standard output: {error.strerror}"), arguments)
    except (click.Abort, KeyboardInterrupt):
        return _failed(InterruptedRun("interrupted"), arguments)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return UsageError.exit_code
    except click.ClickException as error:
        return _failed(UsageError(_with_help(error)), arguments)
    except FarlineError as error:
        return _failed(error, arguments)


_READERS = ("analyze", "explain", "export", "model", "report", "runs", "show")
"""Verbs whose results stand on the store: with a file of it left out they are not whole."""


def _left_out(arguments: Sequence[str]) -> int:
    """Says what the store's readers left out; the exit code for it, 0 if nothing was."""
    left_out = sys.modules.get("farline.store.left_out")
    if left_out is None or not arguments or arguments[0] not in _READERS:
        return 0
    lines: tuple[str, ...] = left_out.noted()
    left_out.forget()
    for line in lines:
        click.echo(f"farline: {shown(line)}", err=True)
    if not lines:
        return 0
    plural = "" if len(lines) == 1 else "s"
    click.echo(f"farline: {len(lines)} file{plural} left out; the rest is above", err=True)
    return SystemFailure.exit_code


def _is_output_broken() -> bool:
    """Whether it is standard output that takes nothing more, seen by one empty line."""
    try:
        click.echo()
    except OSError:
        return True
    return False


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_help(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"{error.format_message().rstrip('.')}{hint}"


def _failed(error: FarlineError, arguments: Sequence[str]) -> int:
    _LOG.error("failed", kind=error.kind, reason=error.message, exit_code=error.exit_code)
    print_failure(error, json_style(from_verb(arguments)))
    return error.exit_code
