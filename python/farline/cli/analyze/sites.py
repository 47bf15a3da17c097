"""`farline analyze sites`: sites beside each other, pair by pair and by their coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import asking_options, json_option, opened, shape_from
from farline.cli.analyze.text import (
    ABSENT,
    number,
    rate_unit,
    rtt_text,
    say,
    score_span,
    share,
    show_table,
)
from farline.cli.command import Command
from farline.errors import SpecError
from farline.plots.analysis_values import MODALITY_TEXT

if TYPE_CHECKING:
    from farline.analysis import Sites
    from farline.plots.analysis_values import PairRow, ProfileView

_HELP = """Compare sites with each other.

Prints what was measured between each two sites, the coefficients of each site and of all, and
each site's rate relative to the others at the same round-trip times. Coefficients over different
round-trip times are not comparable: the last column has them over those that all sites cover.
Without an infrastructure each host is a site.
"""


@click.command("sites", cls=Command, help=_HELP, short_help="Compare sites with each other.")
@asking_options
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Reads, computes and prints."""
    from farline.analysis import sites
    from farline.cli.analyze.explain_text import print_ranks
    from farline.cli.analyze.json import print_document

    with opened(options) as (source, wanted):
        found = sites(source, wanted, shape_from(options))
    if as_json:
        print_document(site_document(found))
        return
    # Pairs are shown where there is no profile of them, too.
    kinds = [*(v.profile.modality for v in found.profiles), *(row.modality for row in found.pairs)]
    for place, modality in enumerate(dict.fromkeys(kinds)):
        if place:
            click.echo()
        _print_sites(
            modality,
            [row for row in found.pairs if row.modality == modality],
            [view for view in found.profiles if view.profile.modality == modality],
        )
    print_ranks(found.ranks)
    for line in found.notes:
        say(line)


def _print_sites(modality: str, pairs: Sequence[PairRow], made: Sequence[ProfileView]) -> None:
    """Pairs by rate, slowest first; then each site, worst first, and all, where there are any."""
    rates = [row.mean_bps for row in pairs if row.mean_bps is not None]
    unit, scale = rate_unit(rates)
    click.echo(f"{MODALITY_TEXT[modality].capitalize()} ({modality}), rates in {unit}:")
    if pairs:
        heads = ["from", "to", "RTT ms", "n", "mean", "sd", "of L", "failed"]
        ordered = sorted(pairs, key=lambda row: (row.mean_bps or 0.0, row.from_site, row.to_site))
        show_table(heads, [_pair(row, scale) for row in ordered], words=2)
        click.echo()
    if made:
        _print_scores(made)


def _pair(row: PairRow, scale: float) -> list[str]:
    return [
        row.from_site,
        row.to_site,
        ABSENT if row.rtt_ms is None else rtt_text(row.rtt_ms),
        f"{row.n:,}",
        ABSENT if row.mean_bps is None else number(row.mean_bps / scale),
        ABSENT if row.sd_bps is None else number(row.sd_bps / scale),
        share(row.share),
        f"{row.failed:,}",
    ]


def _print_scores(made: Sequence[ProfileView]) -> None:
    known = [view for view in made if view.coefficients is not None]
    if not known:
        say("No coefficients: they need the capacity (--capacity, or the infrastructure's) and two"
            " round-trip times.")  # fmt: skip
        return
    common = common_scores(known)
    heads = ["site", "RTT ms", "mean m", "C_CC", "C_UC", "interval", "C_UC common"]
    rows = []
    for view in sorted(known, key=lambda view: (view.group == "", _c_uc(view))):
        found = view.coefficients
        assert found is not None
        rows.append(
            [
                view.name,
                f"{rtt_text(found.left_ms)} to {rtt_text(found.right_ms)}",
                f"{found.mean.value:.3f}",
                f"{found.c_cc.value:.3f}",
                f"{found.c_uc.value:.3f}",
                score_span(found.c_uc.low, found.c_uc.high),
                ABSENT if view.name not in common else f"{common[view.name]:.3f}",
            ]
        )
    show_table(heads, rows)


def _c_uc(view: ProfileView) -> float:
    return 0.0 if view.coefficients is None else view.coefficients.c_uc.value


def common_scores(made: Sequence[ProfileView]) -> dict[str, float]:
    """C_UC of each over the round-trip times that all cover; empty where there are none."""
    from farline.profiles.calculus import common_interval

    profiles = [view.profile for view in made]
    try:
        left, right = common_interval(*profiles)
    except SpecError:
        return {}
    if not left < right:
        return {}
    return {
        view.name: view.profile.coefficients(interval=(left, right)).c_uc.value for view in made
    }


def site_document(found: Sites) -> dict[str, Any]:
    """Pairs, ranks and sites for programs; sites of each modality, and all as `all`."""
    modalities = dict.fromkeys(view.profile.modality for view in found.profiles)
    return {
        "pairs": found.pairs,
        "sites": {
            modality: _scores([v for v in found.profiles if v.profile.modality == modality])
            for modality in modalities
        },
        "ranks": found.ranks,
        "notes": found.notes,
    }


def _scores(made: Sequence[ProfileView]) -> list[dict[str, Any]]:
    common = common_scores([view for view in made if view.coefficients is not None])
    return [
        {
            "name": view.name,
            "is_site": view.group == "site",
            "n": int(view.profile.n.sum()),
            "failed": view.profile.failed,
            "coefficients": view.coefficients,
            "c_uc_common": common.get(view.name),
        }
        for view in made
    ]
