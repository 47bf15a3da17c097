"""`farline copy SRC... DST`: moves files between this host and others, or between two others.

Parses, finds the way, lets the engine run, shows and keeps what came of it. The engine is begun
before anything is imported that it does not need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import interruptible, store_options
from farline.cli.copy.end import NOWHERE, exit_code
from farline.cli.copy.keep import Keeper
from farline.cli.copy.options import (
    CopyCommand,
    Wish,
    filter_order,
    letter_options,
    manner_options,
    read_wish,
    ssh_options,
)
from farline.cli.copy.place import Ends, Here, ServerPlace, SshHost, read_ends
from farline.cli.copy.retry import Retry
from farline.cli.copy.session import Attempt, Direct, Mover, Repeated
from farline.cli.copy.view import JsonView, QuietView, ReceiptTail, StreamView, TextView, View
from farline.cli.copy.way import way_to
from farline.cli.mark_option import MARK_OPTION
from farline.cli.shown import shown
from farline.errors import FarlineError, InterruptedRun, UsageError
from farline.tools import Stop

if TYPE_CHECKING:
    from farline.cli.copy.receipt import ReceiptFile
    from farline.tools import StopQuestion
    from farline.tools.copy_run import CopyEvent
    from farline.tools.ssh import SshCommand


@click.command(cls=CopyCommand, short_help="Copy files and folders.")
@click.argument("places", nargs=-1, metavar="SRC... DST")
@letter_options
@manner_options
@ssh_options
@store_options
@click.option("--order", is_flag=True, hidden=True)
@MARK_OPTION
@click.pass_context
def command(context: click.Context, /, places: tuple[str, ...], order: bool, **options: Any) -> int:
    """Copy files and folders to DST: here, [user@]host:path, or a ticket's #path.

    One of SRC and DST may be on another host, reached over ssh or by a ticket
    (farline://...#path) of `farline serve --write` or `--read`; or both, and the
    data go directly between them. A folder with a slash at its end means what is
    in it. What is there already and not the same is left alone and named as
    failed, unless --overwrite says otherwise. A copy that broke off goes on where
    it was: repeat the command. What has arrived is kept meanwhile without asking
    (rsync's --partial).
    """
    if order:
        from farline.cli.copy.ordered import carry_out

        return carry_out(options["mark"])
    # numpy comes beside a copy's streams: the threads of its linear algebra, which no copy uses,
    # would spin for a tenth of a second.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    wish = read_wish(options, filter_order(context))
    if not options["quiet"]:
        for note in wish.notes:
            click.echo(f"farline: {note}", err=True)
    ends = read_ends(places)
    wish = _with_owners(wish, ends, options)
    _check_removal(wish, ends)
    if options["no_store"] and options["store_path"] is not None:
        raise click.UsageError("--store and --no-store contradict each other")
    with ExitStack() as stack:
        wish = stack.enter_context(_listed(wish, ends, options["source_list"], options["from0"]))
        mover, wish = _mover(wish, ends, options)
        stack.callback(mover.close)
        view = _view(options)
        receipt = _receipt(options["receipt"])
        keeper = Keeper(
            options["store_path"], options["no_store"], receipt, view.out, view.wants_files
        )
        stack.callback(keeper.close)
        # What a mover repeats by itself is not repeated here as well.
        manner = (0.0, 0) if mover.repeats else (options["retry_for"], options["retries"])
        copy = Copy(mover, wish, ends, view, keeper, Retry(*manner))
        asked = stack.enter_context(interruptible(quiet=True))
        return copy.run(Told(asked, view))


def _receipt(named: str | None) -> ReceiptFile | None:
    if named is None:
        return None
    from farline.cli.copy.receipt import receipt_file

    return receipt_file(named)


def _view(options: Mapping[str, Any]) -> View:
    as_json, as_stream = options["as_json"], options["as_stream"]
    if sum((as_json, as_stream, options["quiet"])) > 1:
        raise click.UsageError("one of --json, --json-stream and -q at a time")
    if as_stream:
        return StreamView(options["verbose"])
    if as_json:
        return JsonView()
    if options["quiet"]:
        if options["verbose"] or options["progress"] or options["stats"]:
            raise click.UsageError("-q says nothing: leave out -v, --progress and --stats")
        return QuietView()
    drops = options["write_engine"] in NOWHERE
    return TextView(options["verbose"], options["progress"] is not False, options["stats"], drops)


@contextmanager
def _listed(wish: Wish, ends: Ends, text: str | None, zeros: bool) -> Iterator[Wish]:
    """The wish with its list of names, standard input kept in a file: it can be read but once."""
    if text is None:
        yield wish
        return
    if not isinstance(ends.source, Here):
        raise click.UsageError("--files-from: goes with a source on this host")
    if text != "-" and not zeros:
        yield _with_copy(wish, source_list=str(Path(text).absolute()))
        return
    import shutil
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="farline-names-") as file:
        with Path(text).open("rb") if text != "-" else nullcontext(sys.stdin.buffer) as names:
            shutil.copyfileobj(names, file)
        if zeros:
            # One name without an end is told from lines by it; what is between two is no name.
            file.write(b"\0")
        file.flush()
        yield _with_copy(wish, source_list=file.name)


def _with_copy(wish: Wish, **settings: Any) -> Wish:
    copy = {**wish.document.get("copy", {}), **settings}
    return replace(wish, document={**wish.document, "copy": copy})


def _with_owners(wish: Wish, ends: Ends, options: Mapping[str, Any]) -> Wish:
    """`-a` keeps owners and groups, as with rsync; by a ticket only where they are asked for."""
    by_ticket = any(isinstance(end, ServerPlace) for end in (ends.source, ends.target))
    if not options["archive"] or by_ticket:
        return wish
    stated = wish.document.get("copy", {})
    return _with_copy(wish, **{"owner": True, "group": True, **stated})


def _check_removal(wish: Wish, ends: Ends) -> None:
    """Only the host that has the sources removes them: a reader may not, nor a server."""
    if not wish.document.get("copy", {}).get("remove_source_files"):
        return
    pulls = isinstance(ends.target, Here) and not isinstance(ends.source, Here)
    if pulls or isinstance(ends.source, ServerPlace):
        raise UsageError(
            f"--remove-source-files: a server of files removes none; run farline copy on"
            f" {ends.source}, to this host or by a ticket of farline serve --write"
        )


def ssh_command(options: Mapping[str, Any]) -> SshCommand:
    """How ssh is called, from the command line."""
    import shlex

    from farline.tools.ssh import SshCommand

    try:
        command = tuple(shlex.split(options["rsh"])) if options["rsh"] else ("ssh",)
    except ValueError as error:
        raise click.UsageError(f"-e: {options['rsh']!r}: {error}") from None
    family = "-4" if options["version4"] else "-6" if options["version6"] else None
    return SshCommand(
        command or ("ssh",), options["port"], options["identity"], tuple(options["ssh_option"]),
        options["ssh_config"], options["jump"], family, options["remote_farline"],
        options["start_timeout"],
    )  # fmt: skip


def _mover(wish: Wish, ends: Ends, options: Mapping[str, Any]) -> tuple[Mover, Wish]:
    """What makes the sessions, and the wish as it is for these two ends."""
    both_here = isinstance(ends.source, Here) and isinstance(ends.target, Here)
    neither = not isinstance(ends.source, Here) and not isinstance(ends.target, Here)
    ssh = ssh_command(options) if _over_ssh(ends, options) else None
    words = _server_words(options)
    most = _most_streams(options["data_ports"], wish.document.get("streams", 1))
    tunnelled, back_port = options["tunnel"], options["connect_back"]
    _check_roundabout(options, neither or wish.document.get("transport", "tcp") != "tcp")
    if neither:
        from farline.cli.copy.third import Ordered, ordered_ends

        host = ordered_ends(ends)
        other = ends.target if host == ends.source else ends.source
        may = "write" if host == ends.source else "read"
        assert ssh is not None
        manner = {
            "retries": options["retries"],
            "retry_for_s": options["retry_for"],
            "most_streams": most,
        }
        way = way_to(other, may, ssh, words, False)
        return Ordered(ssh, host, way, ends, manner), wish
    pushes = isinstance(ends.source, Here)
    other, may = (ends.target, "write") if pushes else (ends.source, "read")
    if both_here:
        wish = _in_clear_here(wish)
    way = way_to(other, may, ssh, words, tunnelled, back_port)
    return Direct(way, ends.sources, ends.destination, pushes, both_here, most), wish


def _check_roundabout(options: Mapping[str, Any], impossible: bool) -> None:
    """Refuses ways around a firewall where there is none, and two of them."""
    flags = {"tunnel": "--tunnel", "connect_back": "--connect-back", "single_port": "--single-port"}
    flags["data_ports"] = "--data-ports"
    asked = [flag for name, flag in flags.items() if _is_given(options[name])]
    for flag in ("--tunnel", "--connect-back"):
        if flag in asked and impossible:
            raise click.UsageError(f"{flag}: goes with TCP between this host and one over ssh")
    if "--connect-back" in asked and len(asked) > 1:
        other = next(flag for flag in asked if flag != "--connect-back")
        raise click.UsageError(f"--connect-back: the ports are here, which leaves {other} nothing")


def _over_ssh(ends: Ends, options: Mapping[str, Any]) -> bool:
    """Whether ssh is needed; its options go with nothing else."""
    if isinstance(ends.source, SshHost) or isinstance(ends.target, SshHost):
        return True
    for name, flag in (
        ("rsh", "-e"), ("port", "-P"), ("identity", "-i"), ("ssh_option", "-o"),
        ("ssh_config", "-F"), ("jump", "-J"), ("tunnel", "--tunnel"),
        ("single_port", "--single-port"), ("data_ports", "--data-ports"),
        ("connect_back", "--connect-back"), ("start_timeout", "--start-timeout"),
    ):  # fmt: skip
        if _is_given(options[name]):
            raise click.UsageError(f"{flag}: neither end is reached over ssh ([user@]host:path)")
    return False


def _is_given(value: Any) -> bool:
    """Whether an option was on the command line; a port may be 0."""
    return value not in (None, ()) and value is not False


def _server_words(options: Mapping[str, Any]) -> list[str]:
    ports = ["--data-ports", options["data_ports"]] if options["data_ports"] else []
    return [*ports, *(["--single-port"] if options["single_port"] else [])]


def _most_streams(ports: str | None, streams: int) -> int | None:
    """Streams of data for which there are ports; two more carry what both ends say.

    Raises:
        click.UsageError: for what is no range, and one too small: streams would wait for ever.
    """
    if ports is None:
        return None
    from farline.cli.serve import ports_of

    first, last = ports_of(ports)
    most = last - first + 1 - _MESSAGE_STREAMS
    if streams > most:
        raise click.UsageError(
            f"--data-ports {ports}: {last - first + 1} ports; {streams} streams take"
            f" {streams + _MESSAGE_STREAMS}, two more than streams"
        )
    return most


_MESSAGE_STREAMS = 2


def _in_clear_here(wish: Wish) -> Wish:
    """Between two folders of one host nothing is sealed, unless that was asked for."""
    stated = wish.document.get("copy", {}).get("cipher")
    return wish if stated is not None else _with_copy(wish, cipher="none")


@dataclass(eq=False, repr=False)
class Told:
    """Whether to stop; the view is told of it once, since it knows what stands on the terminal."""

    asked: StopQuestion
    view: View
    _is_told: bool = False

    def __call__(self) -> Stop:
        """Whether to stop, and how."""
        wanted = self.asked()
        if wanted is Stop.GRACEFULLY and not self._is_told:
            self._is_told = True
            self.view.stops()
        return wanted


@dataclass(eq=False, repr=False)
class Copy:
    """One copy as its user sees it: sessions until it is whole, then the end."""

    mover: Mover
    wish: Wish
    ends: Ends
    view: View
    keeper: Keeper
    retry: Retry
    tail: ReceiptTail | None = None

    def run(self, asked: StopQuestion) -> int:
        """Runs it; the exit code."""
        try:
            document = self._confirmed(asked)
            attempt = self._repeat(document, asked, self._keep)
            return self._finish(attempt)
        finally:
            self.view.close()

    def _repeat(self, document: Mapping[str, Any], asked: StopQuestion, each: Any) -> Attempt:
        receipt = self.keeper.receipt()
        if receipt is not None and self.view.wants_files:
            self.tail = ReceiptTail(receipt)
        return Repeated(self.mover, self.retry, self, asked, each).run(document, receipt)

    def begun(self) -> None:
        """What the end needs is imported while the data flow."""
        self.keeper.prepare()

    def event(self, event: CopyEvent) -> None:
        """Shown; names that were settled meanwhile come before how far it is."""
        if event.progress is not None:
            self._tell_files()
        self.view.event(event)
        self.keeper.meanwhile()

    def _tell_files(self) -> None:
        if self.tail is not None:
            while lines := self.tail.lines():
                for line in lines:
                    self.view.file(line)

    def waits(self, error: FarlineError, wait_s: float) -> None:
        """Shown."""
        self.view.waits(error, wait_s)

    def _keep(self, attempt: Attempt) -> None:
        self._tell_files()
        self.tail = None if self.tail is None else ReceiptTail(self.tail.path)
        self.keeper.keep(attempt)

    def _confirmed(self, asked: StopQuestion) -> dict[str, Any]:
        """The document; for `--delete` without a count, with the count that its user has typed."""
        document = self.wish.document
        copy = document.get("copy", {})
        if not self.wish.delete_asked:
            return document
        if copy.get("dry_run"):
            return {**document, "copy": {**copy, "delete": 0}}
        most = copy.get("max_delete")
        if not sys.stdin.isatty() and most is None:
            raise UsageError(
                "--delete asks on a terminal, and this is none: write --delete=COUNT, or"
                " --max-delete=N for N names at most;"
                " a dry run (-n --delete) says how many it would be"
            )
        look = {**document, "copy": {**copy, "delete": 0, "dry_run": True}}
        found = self._repeat(look, asked, lambda attempt: None)
        report = None if found.record is None else found.record.get("copy")
        if found.error is not None or report is None:
            raise found.error or UsageError("--delete: the dry run told nothing")
        count = report["deleted"]["files"]
        self.view.close()
        if most is None and count and not _typed(count, self.ends.destination, asked):
            raise UsageError("--delete: not confirmed; nothing was changed")
        return {**document, "copy": {**copy, "delete": count}}

    def _finish(self, attempt: Attempt) -> int:
        record = self.keeper.last
        where = {} if record is None else self._where(record["run_id"])
        self.view.finish(record, where)
        if attempt.error is not None:
            if record is None:
                raise attempt.error
            self._say(attempt.error)
            return attempt.error.exit_code
        assert record is not None
        code = exit_code(record)
        for error in (self.keeper.receipt_error, self.view.out.error):
            if error is not None:
                self._say(error)
                code = code or error.exit_code
        return code

    def _say(self, error: FarlineError) -> None:
        self.view.out.line(f"farline: {shown(error.message)}", err=True)

    def _where(self, run_id: str) -> dict[str, str]:
        where = {} if self.keeper.no_store else {"run": run_id}
        if self.keeper.receipt_copy is not None and self.keeper.receipt_error is None:
            where["receipt"] = self.keeper.receipt_copy.named
        return where


def _typed(count: int, destination: str, asked: StopQuestion) -> bool:
    import select

    asks = f"delete {count} names at {shown(destination)}? type {count}: "
    click.echo(asks, nl=False, err=True)
    # A read would begin again by itself after Ctrl-C: whoever asks must look up between.
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        if asked() is not Stop.GO_ON:
            raise InterruptedRun("--delete: not confirmed; nothing was changed")
    return sys.stdin.readline().strip() == str(count)
