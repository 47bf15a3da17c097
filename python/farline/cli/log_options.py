"""`--log-level`, `--log-format` and `--log-file`: before and after any verb."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from farline.cli.words import Words
from farline.logs import LEVEL_VARIABLE, start_from_environment

_CHOICE = "farline.log"
"""Where the context keeps what was chosen so far."""

_LEVEL_HELP = (
    "Log at LEVEL: error, warn, info, debug or trace, or ROOM=LEVEL,... for single rooms"
    " (default $FARLINE_LOG, or off)."
)


@dataclass
class _Choice:
    level: str | None = None
    format: str | None = None
    file: Path | None = None

    def is_given(self) -> bool:
        """Whether any of the options was."""
        return any(value is not None for value in (self.level, self.format, self.file))


def log_options(hidden: bool = False) -> list[click.Option]:
    """The options; `hidden` ones work and are not listed."""
    common: dict[str, Any] = {"expose_value": False, "callback": _keep, "hidden": hidden}
    return [
        click.Option(["--log-level"], metavar="LEVEL", help=_LEVEL_HELP, **common),
        click.Option(
            ["--log-format"], type=Words(("text", "json")),
            help="Write log lines in this format (default text).", **common,
        ),
        click.Option(
            ["--log-file"], type=click.Path(path_type=Path, dir_okay=False),
            help="Append log lines to this file instead of standard error; SIGUSR1 reopens it.",
            **common,
        ),
    ]  # fmt: skip


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None:
        choice = context.meta.setdefault(_CHOICE, _Choice())
        setattr(choice, str(parameter.name).removeprefix("log_"), value)


def with_log_options(command: click.Command) -> click.Command:
    """`command`, and each that is below it, with the options; the log starts before its work."""
    if any(parameter.name == "log_level" for parameter in command.params):
        return command
    command.params.extend(log_options(hidden=True))
    if isinstance(command, click.Group):
        for below in command.commands.values():
            with_log_options(below)
    elif command.callback is not None:
        command.callback = _logged(command.callback)
    return command


def from_verb(arguments: Sequence[str]) -> Sequence[str]:
    """`arguments` from the verb on: without options of the log before it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("--log-"):
        at += 1 if "=" in arguments[at] else 2
    return arguments[at:]


def _logged(work: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(work)
    def logged(*arguments: Any, **options: Any) -> Any:
        start_log(click.get_current_context().meta.get(_CHOICE, _Choice()))
        return work(*arguments, **options)

    return logged


def start_log(choice: _Choice) -> None:
    """Starts the log if an option or the environment asks for it.

    Raises:
        UsageError: for an unknown level or room.
        SystemFailure: when the file cannot be opened.
    """
    if not choice.is_given():
        stream = sys.modules.get("farline.logs.stream")
        if not start_from_environment() and stream is not None:
            stream.stop()
        return
    from farline.logs.levels import parse_levels
    from farline.logs.stream import start

    stated = os.environ.get(LEVEL_VARIABLE, "")
    text, source = (choice.level, "--log-level") if choice.level else (stated, LEVEL_VARIABLE)
    start(parse_levels(text, source), choice.format or "text", choice.file)
