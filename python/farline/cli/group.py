"""The command `farline`: finds the verb that is called, and what happens to errors."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from farline.cli.command import Command, Group
from farline.cli.failures import json_style, print_failure
from farline.cli.log_options import from_verb, log_options, with_log_options
from farline.cli.shown import shown
from farline.cli.verbs import COMMANDS, Verb
from farline.errors import FarlineError, InternalError, InterruptedRun, SystemFailure, UsageError
from farline.logs import Log
from farline.spec.extras import missing_text

_LOG = Log(__name__)


class LazyGroup(Group):
    """Lists verbs without importing them."""

    verbs: Mapping[str, Verb] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, in the order of the table."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the verb's module; its command is named `command`."""
        if cmd_name not in self.verbs:
            return None
        try:
            module = importlib.import_module(self.verbs[cmd_name].module)
        except ModuleNotFoundError as error:
            if (text := missing_text(f"farline {cmd_name}", error)) is None:
                raise
            return with_log_options(_not_installed(cmd_name, self.verbs[cmd_name].help, text))
        command: click.Command = module.command
        return with_log_options(command)


def _not_installed(name: str, help_line: str, text: str) -> click.Command:
    """Stands for a verb whose packages are missing: its help says so, and nothing else works."""

    def refuse() -> None:
        raise UsageError(text)

    return Command(
        name,
        callback=refuse,
        help=f"{help_line}\n\nNot installed: {text}.",
        short_help=help_line,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"farline {version('farline')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    help="Measure, explain and copy bulk data over long fat networks.",
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
    if (instruction := os.environ.get("_FARLINE_COMPLETE")) is not None:
        from farline.cli.completing import answer

        return answer(cli, instruction)
    _begin_anew()
    try:
        code = _run(arguments)
    except Exception as error:
        code = _defect(error, arguments)
    left_out = _left_out(from_verb(arguments))
    return code or left_out


def _defect(error: Exception, arguments: Sequence[str]) -> int:
    """What nobody has foreseen: where it happened, for who mends it, and a line for who met it."""
    import traceback

    traceback.print_exc()
    line = f"a defect in farline: {type(error).__name__}: {error}; please report it, with all above"
    return _failed(InternalError(line), arguments)


def _begin_anew() -> None:
    if (left_out := sys.modules.get("farline.store.left_out")) is not None:
        left_out.forget()


def _run(arguments: Sequence[str]) -> int:
    out, err = sys.stdout, sys.stderr
    try:
        outcome = cli.main(args=list(arguments), prog_name="farline", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except FarlineError as error:
        # Before the system's own: some are both (`farline.tools.names`).
        return _failed(error, arguments)
    except BrokenPipeError:
        _drop_output()
        return 0
    except SystemExit:
        # So click ends where nobody reads on, whatever the mode, with wrappers around both files.
        if sys.stdout is out:
            raise
        sys.stdout, sys.stderr = out, err
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
    except ModuleNotFoundError as error:
        text = missing_text(_user(arguments), error)
        if text is None:
            raise
        return _failed(UsageError(text), arguments)


def _user(arguments: Sequence[str]) -> str:
    words = from_verb(arguments)
    return f"farline {words[0]}" if words else "farline"


_READERS = (
    "analyze", "estimate", "explain", "export", "model", "report", "reproduce", "runs", "show",
)  # fmt: skip
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
    from farline.cli.click_words import plain_message

    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"{plain_message(error).rstrip('.')}{hint}"


def _failed(error: FarlineError, arguments: Sequence[str]) -> int:
    _LOG.error("failed", kind=error.kind, reason=error.message, exit_code=error.exit_code)
    print_failure(error, json_style(from_verb(arguments)))
    return error.exit_code
