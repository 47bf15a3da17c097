"""`farline report`: a campaign as one page and figures."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Draw runs: figures and one HTML page.")
@click.argument("campaign", default="last")
@click.option(
    "-o",
    "--output",
    "out_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("farline-report"),
    show_default=True,
    help="Folder for report.html and figures/.",
)
@click.option("--png", is_flag=True, help="Figures as PNG only, unless --svg is given too.")
@click.option("--svg", is_flag=True, help="Figures as SVG only, unless --png is given too.")
@click.option(
    "--count-invalid",
    is_flag=True,
    help="Count runs too in which the emulated path did not do what it should.",
)
@click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where runs are kept [$FARLINE_STORE, or farline/store under $XDG_DATA_HOME].",
)
def command(
    campaign: str,
    out_dir: Path,
    png: bool,
    svg: bool,
    count_invalid: bool,
    store_path: Path | None,
) -> None:
    """Draw CAMPAIGN (its name, or "last"): one HTML page that opens offline, and figures.

    Figures are written as both PNG and SVG unless one of the two is chosen. The path of the page
    is printed.
    """
    from farline.plots.report import FORMATS, write_report
    from farline.store import default_path

    chosen = [kind for kind, wanted in (("png", png), ("svg", svg)) if wanted] or list(FORMATS)
    page = write_report(store_path or default_path(), campaign, out_dir, chosen, count_invalid)
    click.echo(page)
