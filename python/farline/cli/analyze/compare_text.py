"""A comparison of two profiles: tables on a terminal, a document, a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.text import count, number, rate_unit, rtt_text, say, show_table
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.plots.analysis_values import Comparison as Drawn
    from farline.plots.analysis_values import Floats
    from farline.profiles.calculus import Comparison
    from farline.profiles.coefficients import Coefficients, Interval
    from farline.profiles.throughput_profile import ThroughputProfile


def print_both(a: ThroughputProfile, b: ThroughputProfile, found: Comparison) -> None:
    """Both profiles, their difference and ratio knot by knot, and coefficients side by side."""
    for letter, profile in (("A", a), ("B", b)):
        say(_headline(letter, profile), hang="   ")
        for note in profile.notes:
            say(f"note: {note}", indent="   ", hang="     ")
    _print_knots(a, b, found)
    _print_coefficients(found.first, found.second)
    for warning in found.warnings:
        say(f"warning: {warning}", hang="  ")


def _headline(letter: str, profile: ThroughputProfile) -> str:
    knots = count(len(profile), "round-trip time")
    capacity = profile.capacity_bps
    of = "" if capacity is None else f"; L = {rate_human(capacity)}"
    made = count(int(profile.n.sum()), "transfer")
    return f"{letter}: {profile.label}: {made} at {knots}{of}"


def _print_knots(a: ThroughputProfile, b: ThroughputProfile, found: Comparison) -> None:
    places = found.difference.rtt_ms
    first, second = a(places), b(places)
    unit, scale = rate_unit([*map(float, first), *map(float, second)])
    errors = (found.difference.standard_error_bps / scale, found.ratio.standard_error_bps)
    click.echo(f"From {rtt_text(found.left_ms)} to {rtt_text(found.right_ms)} ms, {unit}:")
    rows = [
        [
            rtt_text(float(places[index])),
            number(float(first[index]) / scale),
            number(float(second[index]) / scale),
            number(float(found.difference.mean_bps[index]) / scale),
            number(float(errors[0][index])),
            number(float(found.ratio.mean_bps[index])),
            number(float(errors[1][index])),
        ]
        for index in range(len(places))
    ]
    show_table(["RTT ms", "A", "B", "A - B", "+-", "A / B", "+-"], rows, words=0)
    say("+- of rates and ratios is one standard error; - where single measurements do not tell it.")


def _print_coefficients(first: Coefficients | None, second: Coefficients | None) -> None:
    if first is None or second is None:
        say("No coefficients: they need the capacity and two round-trip times.")
        return
    rows = [
        [name, _value(one), _value(other), f"{one.value - other.value:+.3f}"]
        for name, one, other in (
            ("mean m", first.mean, second.mean),
            ("C_CC", first.c_cc, second.c_cc),
            ("C_UC", first.c_uc, second.c_uc),
        )
    ]
    rows += [
        [name, number(one), number(other), f"{one - other:+.3f}"]
        for name, one, other in (
            ("left end", first.left, second.left),
            ("right end", first.right, second.right),
        )
    ]
    show_table(["", "A", "B", "A - B"], rows)
    if first.mean.half_width is not None or second.mean.half_width is not None:
        say(f"+- of coefficients is half of their {100 * first.confidence:g} % interval.")


def _value(found: Interval) -> str:
    half = found.half_width
    return f"{found.value:.3f}" if half is None else f"{found.value:.3f} +- {half:.3f}"


def comparison_document(
    a: ThroughputProfile, b: ThroughputProfile, found: Comparison
) -> dict[str, Any]:
    """The comparison for programs."""
    places = found.difference.rtt_ms
    return {
        "left_ms": found.left_ms,
        "right_ms": found.right_ms,
        "rtt_ms": places,
        "a": _one_document(a, places, found.first),
        "b": _one_document(b, places, found.second),
        "difference_bps": found.difference.mean_bps,
        "difference_error_bps": found.difference.standard_error_bps,
        "ratio": found.ratio.mean_bps,
        "ratio_error": found.ratio.standard_error_bps,
        "warnings": found.warnings,
    }


def _one_document(
    profile: ThroughputProfile, places: Floats, scores: Coefficients | None
) -> dict[str, Any]:
    return {
        "selection": profile.label,
        "rate_bps": profile(places),
        "coefficients": scores,
        "failed": profile.failed,
        "unplaced": profile.unplaced,
        "notes": profile.notes,
    }


def drawn_difference(a: ThroughputProfile, b: ThroughputProfile, found: Comparison) -> Drawn:
    """The difference as figures have it."""
    from farline.plots.analysis_values import Comparison

    return Comparison(
        name=f"{a.label} less {b.label}",
        kind="difference",
        first=a,
        second=b,
        rtt_ms=found.difference.rtt_ms,
        values=found.difference.mean_bps,
        deviation=found.difference.standard_error_bps,
        words=f"{a.label} less {b.label}, over the round-trip times that both cover",
    )


def draw_comparison_of(
    a: ThroughputProfile, b: ThroughputProfile, found: Comparison, path: Path
) -> None:
    """Draws both and their difference.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    from farline.cli.analyze.figure import save_figure
    from farline.plots.comparison_figure import draw_comparison

    save_figure(lambda: draw_comparison(drawn_difference(a, b, found)), path)
