"""What the commands of `farline analyze` share on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.common import store_option
from farline.cli.limits import RATE, SECONDS, SIZE, UnitType
from farline.cli.words import Words
from farline.spec import units
from farline.spec.transfers import MODALITIES

if TYPE_CHECKING:
    from farline.analysis import Measurements, Reading, Selection, Shape
    from farline.analysis.reading import ReadLog
    from farline.formats import Tally

_Command = TypeVar("_Command", bound=Callable[..., Any])


RTT_MS = UnitType("rtt", units.parse_rtt_ms)
ENGINE = "duckdb"
FIGURES = ("png", "svg")
_SELECTED = ("modality", "sites", "at_site", "where", "since", "until", "min_bytes")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where measurements come from, as the command line has it.

    `runs` and `logs` are None where neither was chosen: then both are read if no file is named.
    """

    files: tuple[str, ...] = ()
    infrastructure: Path | None = None
    engine: str = ENGINE
    tables: tuple[str, ...] = ()
    store_path: Path | None = None
    runs: bool | None = None
    logs: bool | None = None

    @property
    def with_runs(self) -> bool:
        """Whether farline's own runs in the store count."""
        return self._chosen(self.runs, self.logs)

    @property
    def with_logs(self) -> bool:
        """Whether logs that the store keeps count."""
        return self._chosen(self.logs, self.runs)

    def _chosen(self, this: bool | None, other: bool | None) -> bool:
        """What was said of this part; else, without files, all but what was chosen instead."""
        if this is not None:
            return this
        return not (self.files or self.tables) and other is not True

    def check(self) -> None:
        """Refuses a store of which nothing is read, and to read nothing at all.

        Raises:
            UsageError: for either.
        """
        if self.with_runs or self.with_logs:
            return
        if self.store_path is not None:
            raise click.UsageError(
                "--store: the store is not read when a SOURCE is given; add --runs or --logs"
            )
        if not (self.files or self.tables):
            raise click.UsageError("nothing to read: give a SOURCE, --runs or --logs")


def reading_options(command: _Command) -> _Command:
    """How a log is read: `--format`, `--map`, `--set`."""
    for option in reversed((
        click.option("--format", "kind", metavar="FORMAT",
                     help="Read logs of this format (default: detected)."),
        click.option("--map", "mapping", metavar="COLUMN=SOURCE[:UNIT],...",
                     help="Map columns of a CSV file, such as"
                     " rate_bps=throughput:Mbit/s,rtt_ms=rtt,modality='E'."),
        click.option("--set", "defaults", multiple=True, metavar="COLUMN=VALUE",
                     help="Use this value where the log has none, such as rtt_ms=45."),
    )):  # fmt: skip
        command = option(command)
    return command


def source_options(command: _Command) -> _Command:
    """`SOURCE...` and where else measurements come from."""
    command = store_option(command)
    for option in reversed(
        (
            click.option(
                "--runs/--no-runs",
                default=None,
                help="Use farline's own runs in the store (default on without SOURCE).",
            ),
            click.option(
                "--logs/--no-logs",
                default=None,
                help="Use logs in the store (default on without SOURCE).",
            ),
            click.option(
                "--infrastructure",
                metavar="SITES.toml",
                type=click.Path(path_type=Path, dir_okay=False),
                help="Read sites, hosts, round-trip times and capacities from this file.",
            ),
            click.option(
                "--engine",
                default=ENGINE,
                metavar="URL",
                help="Aggregate with this Ibis backend, such as pyspark:// (default duckdb).",
            ),
            click.option(
                "--table",
                "tables",
                multiple=True,
                metavar="NAME",
                help="Use this table of the engine as a SOURCE; repeat for several.",
            ),
        )
    ):
        command = option(command)
    return click.argument("files", metavar="[SOURCE]...", nargs=-1)(reading_options(command))


def selection_options(command: _Command) -> _Command:
    """Which of the measurements are meant."""
    for option in reversed(
        (
            click.option(
                "--modality",
                type=Words(MODALITIES),
                help="Select memory-to-memory (T), file-to-file (E), host (H) or file system (F)"
                " measurements.",
            ),
            click.option(
                "--sites", metavar="A,B,...", help="Select transfers between these sites."
            ),
            click.option(
                "--at-site", metavar="SITE", help="Select transfers to and from this site."
            ),
            click.option(
                "--where",
                multiple=True,
                metavar="COLUMN=VALUES",
                help="Select rows with these values, such as streams=1,4 or tool=gridftp.",
            ),
            click.option(
                "--since",
                metavar="TIME",
                help="Select rows since a date, a time, or an age such as 7d.",
            ),
            click.option(
                "--until",
                metavar="TIME",
                help="Select rows until a date, a time, or an age such as 1d.",
            ),
            click.option("--min-rate", type=RATE, help="Select transfers of at least this rate."),
            click.option("--min-bytes", type=SIZE, help="Select transfers of at least this size."),
        )
    ):
        command = option(command)
    return command


def shape_options(command: _Command) -> _Command:
    """How measurements become a profile."""
    for option in reversed(
        (
            click.option(
                "--capacity",
                type=RATE,
                help="Assume this capacity of connections (default: from --infrastructure).",
            ),
            click.option(
                "--merge",
                type=RTT_MS,
                help="Merge round-trip times this close (default 0.5ms or 1 %, whichever is more).",
            ),
            click.option(
                "--confidence",
                type=click.FloatRange(0.5, 0.999),
                default=0.95,
                metavar="SHARE",
                help="Use this confidence for intervals (default 0.95).",
            ),
        )
    ):
        command = option(command)
    return command


def asking_options(command: _Command) -> _Command:
    """Where measurements come from, which are meant, and how they become a profile."""
    return source_options(selection_options(shape_options(command)))


def period_option(command: _Command) -> _Command:
    """`--period`, in whose course rates are compared to find drift."""
    return click.option(
        "--period", type=SECONDS, default="1d",
        help="Compare rates between periods of this length to find drift (default 1d).",
    )(command)  # fmt: skip


def json_option(command: _Command) -> _Command:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


@contextmanager
def opened(options: Mapping[str, Any]) -> Iterator[tuple[Measurements, Selection]]:
    """Opens everything that was named, for as long as the block runs, and says which is meant.

    What does not count, and odd lines of logs, are said on standard error.

    Raises:
        UsageError: when a file or the store is not there, or nothing is left to read.
        SpecError: when a log, a Parquet file or the infrastructure cannot be read as such.
    """
    from farline.analysis import open_measurements, select
    from farline.cli.analyze.progress import progress
    from farline.store import Store

    of = SourceOptions(**{item.name: options[item.name] for item in fields(SourceOptions)})
    of.check()
    stored = of.with_runs or of.with_logs
    with (
        progress() as on_progress,
        open_measurements(
            of.files,
            reading=reading_from(options),
            infrastructure=of.infrastructure,
            store=Store.to_read(of.store_path) if stored else None,
            runs=of.with_runs,
            logs=of.with_logs,
            tables=of.tables,
            engine=of.engine,
            on_progress=on_progress,
        ) as source,
    ):
        _warn(source)
        yield (
            source,
            select(
                source.infrastructure,
                min_rate_bps=options["min_rate"],
                **{name: options[name] for name in _SELECTED},
            ),
        )


def _warn(source: Measurements) -> None:
    """Lines on standard error on files that do not count, and on odd lines of those that do."""
    lines = list(source.notices)
    for log in source.read:
        lines += unused_defaults(log.path.name, log.tally)
        if log.tally.malformed:
            lines.append(_malformed_line(log))
    for line in lines:
        click.echo(f"farline: {line}", err=True)


def _malformed_line(log: ReadLog) -> str:
    bad, first = log.tally.malformed, log.tally.first_malformed[0]
    where = f"line {first.line}" if bad == 1 else f"the first is line {first.line}"
    many = units.counted(bad, "record")
    return f"{log.path.name}: {many} could not be read; {where}: {first.reason}"


def unused_defaults(name: str, tally: Tally) -> list[str]:
    """A line for each value given by hand that filled no cell of a log."""
    return [
        f"{name}: --set {column} had no effect: every transfer has its own value"
        for column, cells in tally.filled.items()
        if not cells and tally.transfers + tally.failed
    ]


def reading_from(options: Mapping[str, Any]) -> Reading:
    """How logs are to be read, among all that was given.

    Raises:
        UsageError: for a default that is no COLUMN=VALUE.
    """
    from farline.analysis import Reading

    return Reading(options["kind"], options["mapping"], defaults_from(options["defaults"]))


def defaults_from(texts: Iterable[str]) -> dict[str, str]:
    """Values for columns from texts such as `rtt_ms=45`.

    Raises:
        UsageError: for a text without `=`, or a column that is named twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise click.UsageError(f"--set {text!r}: write COLUMN=VALUE, such as rtt_ms=45")
        if name in found:
            raise click.UsageError(f"--set {name}: two values, {found[name]} and {value}")
        found[name] = value
    return found


def shape_from(options: Mapping[str, Any]) -> Shape:
    """How cells are to become profiles, among all that was given."""
    from farline.analysis import Shape

    return Shape(
        capacity_bps=options["capacity"],
        merge_ms=options["merge"],
        confidence=options["confidence"],
        model=options.get("model", "auto"),
    )


def check_figure(path: Path | None) -> None:
    """Refuses a figure of no known format.

    Raises:
        UsageError: when the name ends in neither .png nor .svg.
    """
    if path is not None and path.suffix.lstrip(".") not in FIGURES:
        raise click.UsageError(f"--figure {path}: the file name must end in .png or .svg")
