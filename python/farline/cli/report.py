"""`farline report`: a campaign as one page and figures."""

from __future__ import annotations

from pathlib import Path

import click

from farline.cli.command import Command
from farline.cli.common import store_option


@click.command(cls=Command, short_help="Draw a campaign as figures and one HTML page.")
@click.argument("campaign", metavar="[CAMPAIGN|last]", default="last")
@click.option(
    "-o",
    "--output",
    "out_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("farline-report"),
    help="Write report.html and figures/ into this folder (default farline-report).",
)
@click.option("--png", is_flag=True, help="Write figures as PNG only, unless --svg is given too.")
@click.option("--svg", is_flag=True, help="Write figures as SVG only, unless --png is given too.")
@click.option(
    "--count-invalid",
    is_flag=True,
    help="Use runs even if the emulated path was not accurate.",
)
@store_option
def command(
    campaign: str,
    out_dir: Path,
    png: bool,
    svg: bool,
    count_invalid: bool,
    store_path: Path | None,
) -> None:
    """Draw the results of a campaign as figures and one HTML page that opens offline.

    Figures are written as both PNG and SVG unless one is chosen. Prints the path of the page.
    """
    from farline.api.report_page import write_page
    from farline.api.stores import open_store
    from farline.plots.report import FORMATS

    chosen = [kind for kind, wanted in (("png", png), ("svg", svg)) if wanted] or list(FORMATS)
    click.echo(write_page(open_store(store_path), campaign, out_dir, chosen, count_invalid))
