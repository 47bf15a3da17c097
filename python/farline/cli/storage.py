"""`farline storage PATH`: what the storage below a folder can do, by process and in all.

Reads a command line, runs `farline.storage.job`, prints what comes of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command
from farline.cli.common import interruptible, open_store, store_options
from farline.cli.limits import SECONDS, SIZE
from farline.cli.words import Words
from farline.spec.units import parse_integer, parse_size, parse_sweep

if TYPE_CHECKING:
    from farline.storage.job import StorageRequest
    from farline.storage.settings import StorageWishes

_REPORTS = (".html", ".png", ".svg")
_MOST_COUNT = 1024


class _Values(click.ParamType[tuple[Any, ...]]):
    """Several values with commas between them."""

    def __init__(self, name: str, read: Callable[[str], tuple[Any, ...]]) -> None:
        """Shown as `name` in help texts."""
        self.name, self._read = name, read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        """The values, none twice."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(dict.fromkeys(self._read(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _counts(text: str) -> tuple[int, ...]:
    counts = tuple(int(value) for value in parse_sweep(text, parse_integer))
    for count in counts:
        if not 1 <= count <= _MOST_COUNT:
            raise ValueError(f"{count} is out of range; allowed: 1 to {_MOST_COUNT}")
    return counts


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(parse_size(word) for word in text.split(","))
    for size in sizes:
        if not 512 <= size <= 1 << 30:
            raise ValueError(f"{size} is out of range; allowed: 512 to {1 << 30} bytes")
    return sizes


def _words(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(","))
        for word in words:
            if word not in allowed:
                raise ValueError(f"{word!r} is not allowed; one or more of: {', '.join(allowed)}")
        return words

    return read


COUNTS = _Values("counts", _counts)
SIZES = _Values("sizes", _sizes)


@click.command("storage", cls=Command, short_help="Measure what a file system can do.")
@click.argument("path", required=False, type=click.Path(path_type=Path), metavar="PATH")
@click.option(
    "--read",
    "read_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Measure reads of this existing file, and write nothing.",
)
@click.option(
    "--budget",
    "budget_s",
    type=SECONDS,
    default=60.0,
    metavar="DURATION",
    help="Take about this time in all (default 60s).",
)
@click.option(
    "--size",
    type=SIZE,
    help="Make files of this size in all (default 1GiB, or a tenth of the free space).",
)
@click.option(
    "--only",
    type=Words(["read", "write"]),
    help="Measure only reads or only writes (default both).",
)
@click.option(
    "--processes",
    type=COUNTS,
    metavar="N,...",
    help="Try these numbers of processes (default 1,2,4,8).",
)
@click.option(
    "--threads",
    type=COUNTS,
    metavar="N,...",
    help="Try these numbers of threads per process (default 1, and 4 once).",
)
@click.option(
    "--request",
    "requests",
    type=SIZES,
    metavar="SIZE,...",
    help="Try requests of these sizes (default 64K to 16M).",
)
@click.option(
    "--depth",
    "depths",
    type=COUNTS,
    metavar="N,...",
    help="Try these numbers of requests in flight per thread (default 1,4,16).",
)
@click.option(
    "--io",
    "modes",
    type=_Values("words", _words("direct", "buffered")),
    metavar="WORD,...",
    help="Use direct I/O, the page cache (buffered) or both (default direct, and buffered once).",
)
@click.option(
    "--access",
    "accesses",
    type=_Values("words", _words("sequential", "strided")),
    metavar="WORD,...",
    help="Access files sequentially, with gaps (strided: one request in four) or both (default "
    "sequential, and strided once).",
)
@click.option(
    "--files",
    "layouts",
    type=_Values("words", _words("own", "shared")),
    metavar="WORD,...",
    help="Give each thread its own file (own), let all share one (shared) or both (default own, "
    "and shared once).",
)
@click.option(
    "--fsync",
    "sync",
    type=Words(["end", "each", "none"]),
    default="end",
    help="Flush writes to the device at the end, after each request, or not at all (default end).",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    metavar="N",
    help="Measure each setting N times (default 3 for numbers of processes, else once).",
)
@click.option(
    "--warm", is_flag=True, help="Do not drop files from the page cache before they are read."
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw rates and caps into a page (.html) or a picture (.svg, .png).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the profile as one JSON document.")
@store_options
def command(
    path: Path | None,
    read_file: Path | None,
    budget_s: float,
    report: Path | None,
    as_json: bool,
    store_path: Path | None,
    no_store: bool,
    **options: Any,
) -> int:
    """Measure how fast files in the folder PATH can be read and written.

    By default one setting at a time is varied; options that list values measure all combinations
    of them. Uses files of its own, and removes them. Prints the most that one process and all
    processes reach, and keeps the result as the profile of the file system.
    """  # fmt: skip
    from farline.cli.storage_text import View, print_result
    from farline.storage.job import StorageJob

    request = _request(path, read_file, budget_s, options)
    if report is not None and report.suffix not in _REPORTS:
        raise click.UsageError(f"--report {report}: the name must end in {', '.join(_REPORTS)}")
    if report is not None and not report.absolute().parent.is_dir():
        raise click.UsageError(
            f"--report {report}: there is no folder {report.parent}; make it first"
        )
    store = open_store(store_path, no_store)
    view = View(as_json)
    with interruptible(as_json) as asked:
        job = StorageJob(request, store, asked)
        try:
            with job:
                for event in job:
                    view.show(event)
            result = job.wait()
        finally:
            view.close()
    document = result.checked()
    if not as_json:
        # Whatever becomes of the page, what was measured is told.
        print_result(document, result.kept)
    if report is not None:
        from farline.cli.storage_report import save_report

        save_report(document, report)
    if as_json:
        click.echo(json.dumps(document, indent=1))
    return 0


def _request(
    path: Path | None, read_file: Path | None, budget_s: float, options: dict[str, Any]
) -> StorageRequest:
    from farline.storage.job import StorageRequest

    if (path is None) == (read_file is None):
        raise click.UsageError("name a folder PATH to measure in, or a file with --read FILE")
    wishes = _wishes(options, reads_file=read_file is not None)
    size = options["size"]
    return StorageRequest(
        read_file or path or Path(), read_file is not None, wishes, budget_s,
        None if size is None else int(size), options["warm"],
    )  # fmt: skip


def _wishes(options: dict[str, Any], reads_file: bool) -> StorageWishes:
    from farline.storage.settings import ACTIONS, StorageWishes

    only = options["only"]
    actions = ACTIONS if only is None else (only,)
    if reads_file:
        if only == "write":
            raise click.UsageError("--only write: nothing is written with --read")
        actions = ("read",)
    return StorageWishes(
        actions, options["processes"] or (), options["threads"] or (), options["requests"] or (),
        options["depths"] or (), options["modes"] or (), options["accesses"] or (),
        options["layouts"] or (), options["sync"], options["repeats"],
    )  # fmt: skip
