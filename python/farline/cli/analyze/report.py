"""`farline analyze report`: everything about an infrastructure as one page, and figures."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from farline.cli.analyze.options import (
    FIGURES,
    asking_options,
    json_option,
    opened,
    period_option,
    shape_from,
)
from farline.cli.command import Command

PAGE = "analysis.html"
_HELP = """Write the whole analysis as one HTML page that opens offline, with figures.

The page has findings in words, profiles, coefficients, sites, and which records could not be
read. Figures are written as both PNG and SVG unless one is chosen. Prints the path of the page.
"""


@click.command("report", cls=Command, help=_HELP, short_help="Write the analysis as one HTML page.")
@asking_options
@period_option
@click.option(
    "-o", "--output", "out_dir", type=click.Path(path_type=Path, file_okay=False),
    default=Path("farline-analysis"),
    help=f"Write {PAGE} and figures/ into this folder (default farline-analysis).",
)  # fmt: skip
@click.option("--title", help="Head the page with this title (default: the infrastructure's name).")
@click.option("--png", is_flag=True, help="Write figures as PNG only, unless --svg is given too.")
@click.option("--svg", is_flag=True, help="Write figures as SVG only, unless --png is given too.")
@click.option("--log-rtt", is_flag=True, help="Draw round-trip times on a logarithmic axis.")
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Computes and writes; prints where."""
    from farline.analysis import report

    with opened(options) as (source, wanted):
        page, *figures = report(
            source, wanted, options["out_dir"], shape_from(options),
            period_s=options["period"],
            title=options["title"],
            command=shlex.join(["farline", *sys.argv[1:]]),
            log_rtt=options["log_rtt"],
            formats=[kind for kind in FIGURES if options[kind]] or FIGURES,
        )  # fmt: skip
    if as_json:
        from farline.cli.analyze.json import print_document

        print_document({"page": str(page), "figures": [str(path) for path in figures]})
    else:
        click.echo(page)
