"""`farline analyze sites`: sites beside each other, pair by pair and by their coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import (
    json_option,
    selection_options,
    shape_from,
    shape_options,
    source_from,
    source_options,
)

if TYPE_CHECKING:
    from farline.plots.analysis_values import PairRow, ProfileView

_HELP = """Show sites beside each other.

\b
  farline analyze sites --modality E --infrastructure sites.toml

What was measured between each two of them, and coefficients of each site (transfers to and from
it) and of all. Coefficients of different round-trip times do not compare: the last column has them
over those that every site covers. Last, each site's rates over those that the others reach at the
same round-trip times. Without an infrastructure each host is a site.
"""


@click.command("sites", help=_HELP, short_help="Sites beside each other, pair by pair.")
@source_options
@selection_options
@shape_options
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Reads, computes and prints."""
    from farline.cli.analyze.data import explanation_of, measure, pair_rows, profile_groups
    from farline.cli.analyze.explain_text import print_ranks
    from farline.cli.analyze.extras import notes
    from farline.cli.analyze.selection import selection_from
    from farline.cli.analyze.sites_text import print_sites, site_document
    from farline.cli.analyze.sources import opened
    from farline.cli.analyze.text import say
    from farline.cli.analyze.views import views

    shape = shape_from({**options, "model": "none"})
    with opened(source_from(options)) as source:
        wanted = selection_from(options, source.infrastructure)
        measured = measure(source, wanted, None)
        groups, too_many = profile_groups(measured, ())
        made, left_out = views(groups, shape)
        pairs = pair_rows(source, measured, shape)
        ranks = explanation_of(source, measured, shape).sites
        said = list(notes(source, measured, [*left_out, *too_many]))
    if as_json:
        from farline.cli.analyze.json import print_document

        print_document(site_document(pairs, made, ranks, said))
        return
    _print(pairs, made, print_sites)
    print_ranks(ranks)
    for line in said:
        say(line)


def _print(pairs: Sequence[PairRow], made: Sequence[ProfileView], show: Any) -> None:
    # Pairs are shown where there is no profile of them, too.
    found = [*(view.profile.modality for view in made), *(row.modality for row in pairs)]
    for place, modality in enumerate(dict.fromkeys(found)):
        if place:
            click.echo()
        show(
            modality,
            [row for row in pairs if row.modality == modality],
            [view for view in made if view.profile.modality == modality],
        )
