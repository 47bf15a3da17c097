"""What the commands of `farline analyze` share on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.analyze.logs import Reading
from farline.cli.limits import RATE, SECONDS, SIZE, UnitType
from farline.cli.selection import store_option
from farline.spec import units
from farline.spec.transfers import MODALITIES

if TYPE_CHECKING:
    from farline.cli.analyze.views import Shape

_Command = TypeVar("_Command", bound=Callable[..., Any])


RTT_MS = UnitType("rtt", units.parse_rtt_ms)
ENGINE = "duckdb"
FIGURES = ("png", "svg")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where measurements come from, as the command line has it.

    `runs` and `logs` are None where neither was chosen: then both are read if no file is named.
    """

    files: tuple[str, ...] = ()
    reading: Reading = field(default_factory=Reading)
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
        return not self.names_any and other is not True

    @property
    def names_any(self) -> bool:
        """Whether a file or a table is named."""
        return bool(self.files or self.tables)


def reading_options(command: _Command) -> _Command:
    """How a log is read: `--format`, `--map`, `--set`."""
    for option in reversed((
        click.option("--format", "kind", metavar="FORMAT",
                     help="Format of the logs [found out from their content]."),
        click.option("--map", "mapping", metavar="COLUMN=SOURCE[:UNIT],...",
                     help="Which column of a CSV file is which, such as"
                     " rate_bps=throughput:Mbit/s,rtt_ms=rtt,modality='E'."),
        click.option("--set", "defaults", multiple=True, metavar="COLUMN=VALUE",
                     help="A value where the log has none, such as rtt_ms=45 or modality=E."),
    )):  # fmt: skip
        command = option(command)
    return command


def source_options(command: _Command) -> _Command:
    """`SOURCE...` and where else measurements come from."""
    command = store_option(command)
    for option in reversed((
        click.option("--runs/--no-runs", default=None, help="farline's own runs in the store."),
        click.option("--logs/--no-logs", default=None, help="Logs that the store keeps."),
        click.option("--infrastructure", metavar="SITES.toml",
                     type=click.Path(path_type=Path, dir_okay=False),
                     help="Sites, their hosts, round-trip times and capacities."),
        click.option("--engine", default=ENGINE, show_default=True, metavar="URL",
                     help="Where rows are added up: any Ibis URL, such as pyspark://."),
        click.option("--table", "tables", multiple=True, metavar="NAME",
                     help="A table that the engine has, as a SOURCE; several if given."),
    )):  # fmt: skip
        command = option(command)
    return click.argument("files", metavar="[SOURCE]...", nargs=-1)(reading_options(command))


def selection_options(command: _Command) -> _Command:
    """Which of the measurements are meant."""
    for option in reversed((
        click.option("--modality", type=click.Choice(MODALITIES),
                     help="T memory to memory, E file to file, H host, F file system."),
        click.option("--sites", metavar="A,B,...", help="Only between these sites."),
        click.option("--at-site", metavar="SITE", help="Only to and from this site."),
        click.option("--where", multiple=True, metavar="COLUMN=VALUES",
                     help="Only rows with these values, such as streams=1,4 or tool=gridftp."),
        click.option("--since", metavar="TIME", help="Since a date, a time, or an age such as 7d."),
        click.option("--until", metavar="TIME", help="Until then."),
        click.option("--min-rate", type=RATE, help="Leave out what was slower."),
        click.option("--min-bytes", type=SIZE, help="Leave out what moved less."),
    )):  # fmt: skip
        command = option(command)
    return command


def shape_options(command: _Command) -> _Command:
    """How measurements become a profile."""
    for option in reversed((
        click.option("--capacity", type=RATE,
                     help="L, the capacity of connections [from the infrastructure]."),
        click.option("--merge", type=RTT_MS,
                     help="Round-trip times so close are one [0.5ms, or 1 % if that is more]."),
        click.option("--confidence", type=click.FloatRange(0.5, 0.999), default=0.95,
                     show_default=True, help="Of intervals."),
    )):  # fmt: skip
        command = option(command)
    return command


def period_option(command: _Command) -> _Command:
    """`--period`, in whose course rates are compared to find drift."""
    return click.option(
        "--period", type=SECONDS, default="1d", show_default=True,
        help="Compare rates over such periods, to find what gets slower.",
    )(command)  # fmt: skip


def json_option(command: _Command) -> _Command:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def source_from(options: Mapping[str, Any]) -> SourceOptions:
    """The source options among all that were given."""
    names = ("files", "infrastructure", "engine", "tables", "store_path", "runs", "logs")
    return SourceOptions(reading=reading_from(options), **{name: options[name] for name in names})


def reading_from(options: Mapping[str, Any]) -> Reading:
    """How logs are to be read, among all that was given."""
    return Reading(options["kind"], options["mapping"], options["defaults"])


def shape_from(options: Mapping[str, Any]) -> Shape:
    """How cells are to become profiles, among all that was given."""
    from farline.cli.analyze.views import Shape

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
        raise click.UsageError(f"--figure {path}: write a file that ends in .png or .svg")
