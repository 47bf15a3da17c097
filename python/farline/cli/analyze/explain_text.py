"""An explanation on a terminal: the lead, causes by gain, sites, what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from farline.cli.analyze.text import number, say, share, show_table, span
from farline.spec.units import counted, rate_human, sentence

if TYPE_CHECKING:
    from farline.findings.infrastructure_finding import (
        Cause,
        Explanation,
        NextMeasurement,
        SiteRank,
    )


def print_explanation(found: Explanation) -> None:
    """Everything that was found, the most important first."""
    say(sentence(found.lead))
    if found.not_enough is not None and found.not_enough != found.lead:
        say(sentence(_not_enough(found.not_enough)))
    for place, cause in enumerate(found.causes, 1):
        click.echo()
        _print_cause(place, cause)
    print_ranks(found.sites)
    _print_next(found.next)


def _not_enough(what: str) -> str:
    """What is missing, said to be that once."""
    head = "not enough data"
    return what if what.startswith(head) else f"{head}: {what}"


def _print_cause(place: int, cause: Cause) -> None:
    say(f"{place}. {sentence(cause.line)}", hang="   ")
    say(_worth(cause), indent="   ")
    for line in cause.evidence:
        say(line, indent="   evidence: ", hang="     ")
    for remedy in cause.remedies:
        say(remedy, indent="   try: ", hang="     ")


def _worth(cause: Cause) -> str:
    """What mending it gains, and how sure that is."""
    sure = f"distinguished from other causes with strength {cause.strength:.2f} of 1"
    if cause.gain_bps <= 0:
        return f"Nothing to gain; {sure}."
    gain = f"{rate_human(cause.gain_bps)} in the mean over all pairs ({share(cause.gain_share)})"
    return f"Fixing it gains {gain}; {sure}."


def print_ranks(sites: Sequence[SiteRank]) -> None:
    """Sites beside the others at the same round-trip times; nothing where that is not known."""
    if not sites:
        return
    click.echo("\nSites, by what fixing each would gain:")
    rows = [
        [
            site.site,
            f"{site.n:,}",
            number(site.ratio),
            span(site.ratio_low, site.ratio_high),
            rate_human(site.gain_bps) if site.gain_bps > 0 else "0",
        ]
        for site in sites
    ]
    show_table(["site", "n", "of the others' rate", "interval", "gain"], rows)


def _print_next(wanted: Sequence[NextMeasurement]) -> None:
    if not wanted:
        return
    click.echo(f"\nWhat to measure next ({counted(len(wanted), 'proposal')}):")
    for place, one in enumerate(wanted, 1):
        unnamed = [site for site in one.sites if site not in one.what]
        where = f" ({', '.join(unnamed)})" if unnamed else ""
        say(f"{place}. {sentence(one.what + where)}", hang="   ")
        say(one.why, indent="   why: ", hang="     ")
        if one.command is not None:
            # A command is copied: it stays on one line.
            click.echo(f"   {one.command}")
