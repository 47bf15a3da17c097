"""`farline analyze`: measurements of any origin into profiles, coefficients, causes and a page.

Rao et al. 2018 as a verb. Each command below it has a file of its own. What they share: options in
`options`, where rows come from in `sources`, values in `data`.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from farline.cli.group import LazyGroup, Verb

VERBS: Mapping[str, Verb] = {
    "ingest": Verb("farline.cli.analyze.ingest", "Take in logs of other tools and keep them."),
    "profile": Verb("farline.cli.analyze.profile", "Throughput over round-trip time."),
    "compare": Verb("farline.cli.analyze.compare", "Two selections: difference and ratio."),
    "sites": Verb("farline.cli.analyze.sites", "Sites beside each other, pair by pair."),
    "explain": Verb("farline.cli.analyze.explain", "What throughput is lost to, and what next."),
    "report": Verb("farline.cli.analyze.report", "All of it as one HTML page, and figures."),
    "check": Verb("farline.cli.analyze.check", "Read a description of sites and show it."),
}

_HELP = """Turn measurements into profiles, causes and a page.

\b
  farline analyze ingest gridftp-transfer.log
  farline analyze profile --modality E --infrastructure sites.toml
  farline analyze explain --infrastructure sites.toml
  farline analyze report --infrastructure sites.toml -o page

SOURCE is a log of a known format or a Parquet file, a pattern or a folder of them; it is read and
not kept. Without one, what the store has is taken: logs that were taken in, and farline's own
runs.
"""


class AnalyzeGroup(LazyGroup):
    """Lists its commands without importing them."""

    verbs = VERBS


@click.group(
    "analyze",
    cls=AnalyzeGroup,
    help=_HELP,
    short_help="Turn measurements into profiles, causes and a page.",
)
def command() -> None:
    """Chooses the command; all work is its own."""
