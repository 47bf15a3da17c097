"""A profile on a terminal: knots, coefficients and what they hide, shape, model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from farline.cli.analyze.text import (
    ABSENT,
    number,
    rate_unit,
    rtt_text,
    say,
    score_span,
    share,
    show_table,
    span,
)
from farline.plots.analysis_values import MODALITY_TEXT
from farline.spec.units import counted, rate_human

if TYPE_CHECKING:
    from farline.models.model_choice import Candidate, Choice
    from farline.plots.analysis_values import ProfileView, Region
    from farline.profiles.calculus import Evaluated
    from farline.profiles.coefficients import Coefficients, Interval
    from farline.profiles.throughput_profile import ThroughputProfile

MISSES_MUCH = 0.3
"""Error on round-trip times left out beyond which no model describes a profile."""
QUANTILES = (0.1, 0.5, 0.9)


def print_profile(view: ProfileView, confidence: float, running: bool) -> None:
    """A profile with all that was computed from it."""
    say(headline(view))
    for note in view.profile.notes:
        say(f"note: {note}", hang="  ")
    print_knots(view, confidence)
    if view.coefficients is not None:
        print_coefficients(view.coefficients)
    else:
        say(_no_coefficients(view))
    print_regions(view.regions)
    if view.choice is not None:
        print_choice(view.choice)
    if running:
        print_running(view)


def _no_coefficients(view: ProfileView) -> str:
    if len(view.profile) < 2:
        return "No coefficients: they need two round-trip times."
    return "No coefficients: they need the capacity (--capacity, or the infrastructure's)."


def headline(view: ProfileView) -> str:
    """What was measured, in a line."""
    profile = view.profile
    kind = MODALITY_TEXT.get(profile.modality, profile.modality)
    knots = counted(len(profile.rtt_ms), "round-trip time")
    failed = f", {profile.failed:,} failed" if profile.failed else ""
    capacity = profile.capacity_bps
    of = f"; L = {rate_human(capacity)}" if capacity is not None else "; capacity not stated"
    name = f"{view.group}: {view.name}; " if view.group else ""
    made = counted(int(profile.n.sum()), "transfer")
    return f"{name}{kind} ({profile.modality}), {made} at {knots}{failed}{of}"


def print_knots(view: ProfileView, confidence: float) -> None:
    """The table of a profile: one line per round-trip time."""
    profile = view.profile
    unit, scale = rate_unit([float(value) for value in profile.mean_bps])
    quantiles = [q for q in QUANTILES if q in profile.quantiles]
    interval = f"{100 * confidence:g} % CI"
    heads = ["RTT ms", "n", "mean", interval, "sd", *(f"p{100 * q:.0f}" for q in quantiles)]
    rows = [
        [*_knot(view, index, scale), *_quantiles(profile, quantiles, index, scale)]
        for index in range(len(profile.rtt_ms))
    ]
    click.echo(f"Rates in {unit}:")
    show_table(heads, rows, words=0)


def _knot(view: ProfileView, index: int, scale: float) -> list[str]:
    profile = view.profile
    low = None if view.mean_low_bps is None else float(view.mean_low_bps[index]) / scale
    high = None if view.mean_high_bps is None else float(view.mean_high_bps[index]) / scale
    return [
        rtt_text(float(profile.rtt_ms[index])),
        f"{int(profile.n[index]):,}",
        number(float(profile.mean_bps[index]) / scale),
        span(low, high),
        number(float(profile.sd_bps[index]) / scale),
    ]


def _quantiles(
    profile: ThroughputProfile, wanted: Sequence[float], index: int, scale: float
) -> list[str]:
    return [number(float(profile.quantiles[q][index]) / scale) for q in wanted]


def print_coefficients(found: Coefficients) -> None:
    """The coefficients with intervals, and below them what they hide."""
    print_scores(found)
    for warning in found.warnings:
        say(f"warning: {warning}", hang="  ")


def print_scores(found: Coefficients) -> None:
    """The coefficients with intervals, and the ends."""
    ends = f"{rtt_text(found.left_ms)} to {rtt_text(found.right_ms)} ms"
    of = "" if found.capacity_bps == 1 else f", rates as shares of {rate_human(found.capacity_bps)}"
    click.echo(f"Coefficients over {ends}{of}:")
    rows = [
        [name, _coefficient(value), score_span(value.low, value.high), words]
        for name, value, words in _coefficients(found)
    ]
    show_table(["", "value", f"{100 * found.confidence:g} % CI", ""], rows, note=True)
    say(f"Ends: {number(found.left)} at {rtt_text(found.left_ms)} ms,"
        f" {number(found.right)} at {rtt_text(found.right_ms)} ms.")  # fmt: skip


def _coefficients(found: Coefficients) -> list[tuple[str, Interval, str]]:
    return [
        ("mean m", found.mean, "mean over RTT"),
        ("C_U", found.c_u, "1 - m"),
        ("chord M", found.chord, "mean of the ends"),
        ("C_CC", found.c_cc, "concave > 0, m - M"),
        ("C_UC", found.c_uc, "both, m - M/2 + 1/4"),
    ]


def _coefficient(value: Interval) -> str:
    return f"{value.value:.3f}"


def print_regions(regions: Sequence[Region]) -> None:
    """Where a profile is concave and where convex."""
    if not regions:
        return
    parts = [
        f"{part.shape} from {rtt_text(part.left_ms)} to {rtt_text(part.right_ms)} ms"
        for part in regions
    ]
    say(f"Shape: {'; '.join(parts)}.", hang="  ")


def print_choice(choice: Choice) -> None:
    """The chosen model in words, and what each candidate missed by."""
    say(f"Model: {choice.chosen.in_words()}.", hang="  ")
    say(f"{choice.rule}.", indent="  ")
    best = choice.candidates[0].error
    if best is not None and best > MISSES_MUCH:
        say(
            f"warning: even the best model is off by {share(best)}: round-trip time alone does "
            "not explain these rates (see --by, --at-site and farline analyze explain)",
            hang="  ",
        )
    rows = [_candidate(candidate, choice) for candidate in choice.candidates]
    show_table(["model", "off by", "parameters", ""], rows, note=True)
    for candidate in choice.candidates:
        if candidate.why_not:
            say(f"{candidate.model.name}: {candidate.why_not}", indent="  ", hang="    ")


def _candidate(candidate: Candidate, choice: Choice) -> list[str]:
    chosen = candidate.model.name == choice.chosen.name
    error = share(candidate.error)
    return [
        candidate.model.name,
        error,
        str(candidate.parameters) if candidate.error is not None else ABSENT,
        "chosen" if chosen else "",
    ]


def print_running(view: ProfileView) -> None:
    """C_UC over growing intervals."""
    running = view.running
    if running is None:
        return
    click.echo("C_UC from the smallest RTT up to each:")
    rows = [
        [
            rtt_text(float(running.rtt_ms[index])),
            f"{float(running.c_uc[index]):.3f}",
            ABSENT
            if running.low is None or running.high is None
            else score_span(float(running.low[index]), float(running.high[index])),
        ]
        for index in range(len(running.rtt_ms))
    ]
    show_table(["RTT ms", "C_UC", "interval"], rows, words=0)


def print_asked(asked: Evaluated) -> None:
    """Values at round-trip times that were asked for; those beyond the data are marked."""
    unit, scale = rate_unit([float(rate) for rate in asked.rate_bps])
    click.echo(f"At other round-trip times, {unit}:")
    rows = [
        [
            rtt_text(float(asked.rtt_ms[index])),
            number(float(asked.rate_bps[index]) / scale),
            number(float(asked.standard_error_bps[index]) / scale),
            "extrapolated" if asked.extrapolated[index] else "",
        ]
        for index in range(len(asked.rtt_ms))
    ]
    show_table(["RTT ms", "rate", "std error", ""], rows, words=0, note=True)
