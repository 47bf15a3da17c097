"""`--state-dir` and `--keys`: where the server of this host keeps its records and its keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from farline.spec.user_folders import needed, user_folder

_Command = TypeVar("_Command", bound=Callable[..., Any])

KEY_FILES = ("server.pem", "ticket.key")
"""What a folder of keys has: the server's own, and the one behind its tickets."""


def default_state_dir() -> Path:
    """Where the server's key lives: `$XDG_STATE_HOME/farline/server`.

    Raises:
        UsageError: when the user has no home folder, and the environment names none.
    """
    state = user_folder("XDG_STATE_HOME", ".local/state")
    return needed(state, "server", "XDG_STATE_HOME, or use --state-dir") / "farline" / "server"


def folder_options(command: _Command) -> _Command:
    """Both options, as the arguments `state_dir` and `keys_dir`."""
    keys = click.option(
        "--keys",
        "keys_dir",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Keep the server's keys, server.pem and ticket.key, in this folder (default: the one"
        " of --state-dir).",
    )
    state = click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Keep the server's records of tickets, and its keys unless --keys is given, in this"
        " folder (default ~/.local/state/farline/server).",
    )
    return state(keys(command))


def keys_text(keys_dir: Path | None) -> str | None:
    """`--keys` as the extension takes it."""
    return None if keys_dir is None else str(keys_dir)
