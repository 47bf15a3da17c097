"""`farline analyze`: measurements of any origin into profiles, coefficients, causes and a page.

Rao et al. 2018 as a verb. Each command below it has a file of its own. What they share: options in
`options`, where rows come from in `sources`, values in `data`.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from farline.cli.group import LazyGroup
from farline.cli.verbs import Verb

VERBS: Mapping[str, Verb] = {
    "ingest": Verb("farline.cli.analyze.ingest", "Import logs of other tools into the store."),
    "profile": Verb("farline.cli.analyze.profile", "Compute throughput over round-trip time."),
    "compare": Verb("farline.cli.analyze.compare", "Compare two selections of measurements."),
    "sites": Verb("farline.cli.analyze.sites", "Compare sites with each other."),
    "explain": Verb("farline.cli.analyze.explain", "Find what limits throughput."),
    "report": Verb("farline.cli.analyze.report", "Write the analysis as one HTML page."),
    "check": Verb("farline.cli.analyze.check", "Check a description of sites."),
}

_HELP = """Analyse existing measurements: farline's own runs and logs of other tools.

The commands read SOURCE: a log of a known format or a Parquet file, a pattern or a folder of
them. Without SOURCE they read the store: imported logs, and farline's own runs.
"""


class AnalyzeGroup(LazyGroup):
    """Lists its commands without importing them."""

    verbs = VERBS


@click.group(
    "analyze",
    cls=AnalyzeGroup,
    help=_HELP,
    short_help="Analyse existing measurements and logs.",
)
def command() -> None:
    """Chooses the command; all work is its own."""
