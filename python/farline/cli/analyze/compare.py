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
from farline.cli.limits import RATE

if TYPE_CHECKING:
    from farline.analysis import Compared, ComparedMethod

_HELP = """Compare two selections of the same measurements.

\b
  farline analyze compare --a modality=E --b modality=T --infrastructure sites.toml
  farline analyze compare --a modality=E,site=ANL --b modality=E,site=ORNL ...
  farline analyze compare --method strict --infrastructure sites.toml

Difference, ratio and coefficients are over the round-trip times that both cover, and nowhere
else. A selection is KEY=VALUE,...: modality, site (at either end), sites (at both), since, until,
min-rate, min-bytes, or any column; it adds to what --modality, --where and the like say of both.

With --method the file transfer method itself is profiled (Rao et al. 2018, section 3.4): what file
transfers (A, modality E unless said otherwise) reach of what memory to memory (B, modality T),
hosts and file systems allow. `strict` takes the least of these at each round-trip time, `paper` is
equation 2.2 as printed. Limits of hosts, and of file systems, are as stated here, else those that
the infrastructure has of the sites of A, else as measured there (modality H and F).
"""


@click.command("compare", help=_HELP, short_help="Two selections: difference and ratio.")
@asking_options
@click.option("--a", "first", metavar="KEY=VALUE,...", help="The first selection.")
@click.option("--b", "second", metavar="KEY=VALUE,...", help="The second selection.")
@click.option("--method", type=click.Choice(["strict", "paper"]),
              help="Profile the file transfer method of A over B.")  # fmt: skip
@click.option(
    "--host-limit", type=RATE, multiple=True, help="What a host can do; several if given."
)
@click.option("--file-limit", type=RATE, multiple=True, help="The same of a file system.")
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw into FILE.png or FILE.svg.")  # fmt: skip
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
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --method")
    if first is None or second is None:
        raise click.UsageError("compare what? Give --a and --b, such as --a modality=E")
    return first, second


def _of_modality(text: str | None, modality: str, flag: str) -> str:
    """A selection with this modality, unless it states one."""
    from farline.analysis.selection import keys_of

    if not text:
        return f"modality={modality}"
    return text if "modality" in keys_of(text, flag) else f"modality={modality},{text}"
