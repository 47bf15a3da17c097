"""What several verbs share: the target, iperf3's habits, the store, interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from farline.cli.command import Command
from farline.spec.letters import LETTERS
from farline.tools import Stop
from farline.tools.signals import handled_by

if TYPE_CHECKING:
    from farline.store import Store
    from farline.store.quick import Spool

_Command = TypeVar("_Command", bound=Callable[..., Any])

STORE_HELP = (
    "Use the run store in this folder (default $FARLINE_STORE or ~/.local/share/farline/store)."
)

_SPELLINGS = {
    "--json=iperf3": "-J",
    "--json=farline": "--json",
    "--zerocopy=sendfile": "--zerocopy",
}


class RunCommand(Command):
    """A command with the options of a run: spellings with an optional value are resolved first.

    click would take the word after `--json` for its value; here only `--json=…` has one.
    """

    sets: ClassVar[Mapping[str, Sequence[str]]] = {letter.name: letter.sets for letter in LETTERS}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses `args` with such spellings replaced."""
        return super().parse_args(ctx, [_spelling(arg) for arg in args])


def _spelling(argument: str) -> str:
    if argument in _SPELLINGS:
        return _SPELLINGS[argument]
    if argument.startswith("--zerocopy="):
        return argument.replace("--zerocopy=", "--send-mode=", 1)
    if argument.startswith("--json="):
        raise click.UsageError(f"{argument}: allowed: --json, --json=farline, --json=iperf3")
    return argument


def target_options(command: _Command) -> _Command:
    """`HOST`, or `-c HOST` out of habit, and `-p PORT`."""
    command = click.option(
        "-p", "--port", type=click.IntRange(1, 65535), metavar="PORT",
        help="Connect to this control port of the server (default 5470).",
    )(command)  # fmt: skip
    command = click.option(
        "-c", "--client", metavar="HOST", help="Connect to HOST: same as the argument, for iperf3."
    )(command)
    return click.argument("host", required=False)(command)


def target_text(host: str | None, client: str | None, port: int | None) -> str:
    """The target as one text.

    Raises:
        click.UsageError: when no host, two hosts or two ports are named.
    """
    if host and client and host != client:
        raise click.UsageError(f"two hosts: {host} and -c {client}")
    named = host or client
    if not named:
        raise click.UsageError("no host is named: give HOST, HOST:PORT or a ticket (farline://...)")
    if port is None:
        return named
    if named.startswith("farline://") or named.count(":") == 1 or "]:" in named:
        raise click.UsageError(f"-p {port}: {named} already includes the port")
    bare = f"[{named}]" if ":" in named and not named.startswith("[") else named
    return f"{bare}:{port}"


def store_option(command: _Command) -> _Command:
    """`--store PATH`."""
    return click.option(
        "--store", "store_path", type=click.Path(path_type=Path, file_okay=False), help=STORE_HELP
    )(command)


def store_options(command: _Command) -> _Command:
    """`--store PATH` and `--no-store`."""
    command = click.option("--no-store", is_flag=True, help="Do not record the run in the store.")(
        command
    )
    return store_option(command)


def result_options(command: _Command) -> _Command:
    """`--json`, `--report FOLDER` and `--store PATH` of what is measured over a plan."""
    command = store_option(command)
    command = click.option(
        "--report", "report_dir", type=click.Path(path_type=Path, file_okay=False),
        help="Write a report with figures into this folder at the end.",
    )(command)  # fmt: skip
    return click.option(
        "--json", "as_json", is_flag=True, help="Print the results as one JSON document."
    )(command)


def open_store(store_path: Path | None, no_store: bool) -> Store | None:
    """The store to keep runs in, or nothing if none is wanted."""
    if no_store:
        if store_path is not None:
            raise click.UsageError("--store and --no-store cannot be combined")
        return None
    from farline.store import Store

    return Store(store_path)


def open_keeper(store_path: Path | None, no_store: bool) -> Store | Spool | None:
    """The same where nothing is read from it: also where the extra `analysis` is not installed."""
    from farline.spec.extras import has_analysis

    if no_store or has_analysis():
        return open_store(store_path, no_store)
    from farline.store.quick import Spool

    return Spool(store_path)


class Interruption:
    """Counts Ctrl-C: the first asks for a graceful end, the second for an end at once."""

    def __init__(self, quiet: bool) -> None:
        """Nothing asked yet; not `quiet` says what a second signal does."""
        self.count = 0
        self._quiet = quiet

    def __call__(self) -> Stop:
        """Whether to stop, and how."""
        return Stop(min(self.count, Stop.NOW))

    def ask(self, _signal: int, _frame: FrameType | None) -> None:
        """Signal handler."""
        self.count += 1
        # Whoever hangs up has taken the terminal along.
        with suppress(OSError):
            self._say()

    def _say(self) -> None:
        if self.count == 1 and not self._quiet:
            click.echo("farline: stopping; press Ctrl-C again to stop immediately", err=True)


@contextmanager
def interruptible(quiet: bool = False) -> Iterator[Interruption]:
    """SIGINT, SIGTERM and SIGHUP ask instead of killing, within the block.

    SIGHUP stays ignored where it was (`nohup`).
    """
    asked = Interruption(quiet)
    with handled_by(asked.ask):
        yield asked
