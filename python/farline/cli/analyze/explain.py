"""`farline analyze explain`: what an infrastructure loses throughput to, and what to measure."""

from __future__ import annotations

from typing import Any

import click

from farline.cli.analyze.options import (
    asking_options,
    json_option,
    opened,
    period_option,
    shape_from,
)
from farline.cli.command import Command

_HELP = """Find what limits throughput, and what to measure next.

Each cause comes with its evidence, what fixing it would gain, and how to fix it; sites are
ranked. Where the measurements do not decide, it names the measurement that would. Without an
infrastructure each host is a site.
"""


@click.command("explain", cls=Command, help=_HELP, short_help="Find what limits throughput.")
@asking_options
@period_option
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Explains and prints."""
    from farline.analysis import explain
    from farline.cli.analyze.explain_text import print_explanation
    from farline.cli.analyze.json import print_document
    from farline.cli.analyze.text import say

    with opened(options) as (source, wanted):
        found = explain(source, wanted, shape_from(options), options["period"])
    if as_json:
        print_document({"explanation": found.explanation, "notes": found.notes})
        return
    print_explanation(found.explanation)
    click.echo()
    for line in found.notes:
        say(line)
