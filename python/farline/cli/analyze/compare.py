"""`farline analyze compare`: two selections of the same sources over the RTTs that both cover."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import (
    asking_options,
    check_figure,
    json_option,
    opened,
    shape_from,
)
from farline.cli.command import Command
from farline.cli.limits import RATE
from farline.cli.words import Words

if TYPE_CHECKING:
    from farline.analysis import Compared, ComparedMethod

_HELP = """Compare two selections of the same measurements.

The comparison covers the round-trip times that both selections have. A selection is
KEY=VALUE,... with the keys modality, site (at either end), sites (at both ends), since, until,
min-rate, min-bytes, or any column. Options such as --modality and --where apply to both.

With --method, farline profiles the file transfer method itself (Rao et al. 2018, section 3.4):
what file transfers (A, modality E by default) reach of what memory-to-memory transfers (B,
modality T), hosts and file systems allow. `strict` takes the minimum of these at each round-trip
time; `paper` is equation 2.2 as printed. The limits of hosts and file systems come from the
options, else from the infrastructure, else from measurements (modality H and F).
"""


@click.command("compare", cls=Command, help=_HELP, short_help="Compare two selections.")
@asking_options
@click.option("--a", "first", metavar="KEY=VALUE,...", help="Select the first set of measurements.")
@click.option(
    "--b", "second", metavar="KEY=VALUE,...", help="Select the second set of measurements."
)
@click.option("--method", type=Words(["strict", "paper"]),
              help="Profile the file transfer method of A over B.")  # fmt: skip
@click.option(
    "--host-limit",
    type=RATE,
    multiple=True,
    help="Assume this rate limit of a host; repeat for several.",
)
@click.option(
    "--file-limit", type=RATE, multiple=True,
    help="Assume this rate limit of a file system; repeat for several.",
)  # fmt: skip
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw the result into a .png or .svg file.")  # fmt: skip
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Compares, prints and draws."""
    from farline.analysis import compare, compare_method
    from farline.cli.analyze.compare_text import show_comparison, show_method

    first, second = _selections(options)
    check_figure(options["figure"])
    shape = shape_from(options)
    with opened(options) as (source, base):
        if options["method"] is None:
            found = compare(source, first, second, base, shape)
        else:
            of_method = compare_method(
                source, first, second, base, shape,
                how=options["method"],
                host_bps=options["host_limit"],
                file_bps=options["file_limit"],
            )  # fmt: skip
    if options["method"] is None:
        _draw(found, options["figure"])
        show_comparison(found, as_json)
    else:
        _draw(of_method, options["figure"])
        show_method(of_method, as_json)
    if options["figure"] is not None and not as_json:
        click.echo(options["figure"])


def _draw(found: Compared | ComparedMethod, path: Path | None) -> None:
    if path is not None:
        from farline.plots.comparison_figure import draw_comparison
        from farline.plots.style import save_figure

        save_figure(lambda: draw_comparison(found.figure), path)


def _selections(options: dict[str, Any]) -> tuple[str, str]:
    """The two selections as texts; with `--method` they are E and T unless stated."""
    first, second = options["first"], options["second"]
    if options["method"] is not None:
        return _of_modality(first, "E", "--a"), _of_modality(second, "T", "--b")
    for name in ("host_limit", "file_limit"):
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')}: needs --method")
    if first is None or second is None:
        raise click.UsageError("nothing to compare: give --a and --b, such as --a modality=E")
    return first, second


def _of_modality(text: str | None, modality: str, flag: str) -> str:
    """A selection with this modality, unless it states one."""
    from farline.analysis.selection import keys_of

    if not text:
        return f"modality={modality}"
    return text if "modality" in keys_of(text, flag) else f"modality={modality},{text}"
