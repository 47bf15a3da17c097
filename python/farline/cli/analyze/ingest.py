"""`farline analyze ingest`: takes in logs of other tools and keeps them in the store.

What is kept and how it is recognised again is the store's (`Store.append_transfers`); what is
printed is in `ingest_text`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.logs import Refused, Taken
from farline.cli.analyze.options import json_option, reading_from, reading_options
from farline.cli.selection import store_option
from farline.errors import FarlineError, SystemFailure, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.cli.analyze.logs import OnMalformed, OnProgress, Reading
    from farline.ingest import Log, Malformed
    from farline.store import Store

_HELP = """Take in logs of other tools and keep them in the store.

\b
  farline analyze ingest gridftp-transfer.log iperf3/*.json
  farline analyze ingest transfers.csv --map rate_bps=mbps:Mbit/s,rtt_ms=rtt

FILE is a log, a pattern or a folder of logs; what format it has is found out. The same log taken
in again is recognised, one that has grown replaces its earlier self. Records that cannot be read
are counted, and the first are shown with why. The exit code is 0 if all was taken in or was there
already, 23 if logs were refused or records could not be read, 1 if nothing was taken in.
"""

PARTLY = 23
"""The exit code where a part was left out, as of a copy (and of rsync)."""


@click.command("ingest", help=_HELP, short_help="Take in logs of other tools and keep them.")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@reading_options
@click.option(
    "--malformed", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.tsv",
    help="Write every record that could not be read here, with its place and why.",
)  # fmt: skip
@click.option("--list", "as_list", is_flag=True, help="List the logs that are kept.")
@click.option(
    "--forget", multiple=True, metavar="LOG",
    help="Remove a kept log, by its name or digest; several if given.",
)  # fmt: skip
@json_option
@store_option
def command(as_json: bool, as_list: bool, **options: Any) -> int:
    """Takes in, forgets, lists; the exit code."""
    from farline.cli.analyze import ingest_text as text
    from farline.store import Store

    files, forget = options["files"], options["forget"]
    if not (files or forget or as_list):
        raise UsageError("what is to be taken in? Name a log, or --list or --forget")
    if files and (forget or as_list):
        raise UsageError("name logs to take in, or --list, or --forget: one at a time")
    if not files:
        store = Store(options["store_path"], create=False)
        gone = [store.forget_transfers(name) for name in forget]
        text.show_kept(store.transfer_logs() if as_list else None, gone, as_json)
        return 0
    store = Store(options["store_path"])
    outcome = take_in(store, files, reading_from(options), options["malformed"])
    text.show_outcome(outcome, as_json)
    return exit_code(outcome)


def exit_code(outcome: Sequence[Taken | Refused]) -> int:
    """What became of all logs together."""
    taken = [one for one in outcome if isinstance(one, Taken)]
    if not taken:
        return UsageError.exit_code
    whole = len(taken) == len(outcome) and not any(
        one.kept.counts.get("malformed") for one in taken
    )
    return 0 if whole else PARTLY


def take_in(
    store: Store, names: Sequence[str], reading: Reading, malformed: Path | None
) -> list[Taken | Refused]:
    """Takes in every log that is named; one that is refused does not hold up the others.

    Raises:
        UsageError: when a name means no file.
        SystemFailure: when the file for malformed records cannot be written.
    """
    from farline.cli.analyze.files import named_files
    from farline.cli.analyze.progress import progress

    paths = named_files(names)
    with progress(paths) as advance, _malformed_file(malformed) as listener:
        return [_take(store, path, reading, advance(path), listener(path)) for path in paths]


def _take(
    store: Store,
    path: Path,
    reading: Reading,
    on_progress: OnProgress | None,
    on_malformed: OnMalformed | None,
) -> Taken | Refused:
    log: Log | None = None
    try:
        log = reading.log(path, on_progress, on_malformed)
        done = store.append_transfers(
            _rows(log), path, reader=reading.name_of(log), counts=_counts(log)
        )
        if done.look.outcome == "same" and on_malformed is not None:
            # Its rows are kept; its malformed records are nowhere but in the log.
            for _ in log.batches():
                pass
    except FarlineError as error:
        return Refused(path, error.message, log.tally if log is not None else None)
    there = done.look.outcome == "same"
    tally = None if there and on_malformed is None else log.tally
    return Taken(path, done.log, done.look.outcome, tally, done.look.beside)


def _rows(log: Log) -> Iterator[pa.Table]:
    """The log's tables; a log without any transfer is not kept."""
    yield from log.batches()
    if not log.tally.transfers + log.tally.failed:
        raise UsageError(f"{log.path.name}: no transfer in it ({log.format.title})")


def _counts(log: Log) -> Callable[[], dict[str, int]]:
    """The tally as the store keeps it."""

    def counts() -> dict[str, int]:
        tally = log.tally
        found = {name: getattr(tally, name) for name in ("lines", "transfers", "failed")}
        found["malformed"] = tally.malformed
        found |= {f"malformed: {why}": many for why, many in tally.malformed_reasons.items()}
        return found | {f"skipped: {why}": many for why, many in tally.skipped.items()}

    return counts


@contextlib.contextmanager
def _malformed_file(path: Path | None) -> Iterator[Callable[[Path], OnMalformed | None]]:
    """Writes records that could not be read as tab-separated lines; nothing without a path."""
    if path is None:
        yield lambda _: None
        return
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write("log\tline\twhy\ttext\n")

            def listener(log: Path) -> OnMalformed:
                def write(found: Malformed) -> None:
                    file.write(f"{log}\t{found.line}\t{found.reason}\t{found.text}\n")

                return write

            yield listener
    except OSError as error:
        raise SystemFailure(f"{path}: cannot write into it: {error.strerror}") from None
