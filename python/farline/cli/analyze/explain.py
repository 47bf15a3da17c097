"""`farline analyze explain`: what an infrastructure loses throughput to, and what to measure."""

from __future__ import annotations

from typing import Any

import click

from farline.cli.analyze.options import (
    json_option,
    period_option,
    selection_options,
    shape_from,
    shape_options,
    source_from,
    source_options,
)

_HELP = """Say what throughput is lost to, and what to measure next.

\b
  farline analyze explain --infrastructure sites.toml
  farline analyze explain gridftp.log nuttcp/ --infrastructure sites.toml --period 7d

Causes come with what mending them would gain, with their evidence and with remedies; sites are
ranked beside each other. Where the measurements do not tell, that is said, with the measurement
that would. Without an infrastructure each host is a site.
"""


@click.command("explain", help=_HELP, short_help="What throughput is lost to, and what next.")
@source_options
@selection_options
@shape_options
@period_option
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Explains and prints."""
    from farline.cli.analyze.data import explanation_of, measure
    from farline.cli.analyze.extras import notes
    from farline.cli.analyze.selection import selection_from
    from farline.cli.analyze.sources import opened

    shape = shape_from(options)
    with opened(source_from(options)) as source:
        wanted = selection_from(options, source.infrastructure)
        measured = measure(source, wanted, options["period"])
        found = explanation_of(source, measured, shape)
        said = list(notes(source, measured, ()))
    if as_json:
        from farline.cli.analyze.json import print_document

        print_document({"explanation": found, "notes": said})
        return
    from farline.cli.analyze.explain_text import print_explanation
    from farline.cli.analyze.text import say

    print_explanation(found)
    click.echo()
    for line in said:
        say(line)
