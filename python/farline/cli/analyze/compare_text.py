"""A comparison of two profiles, and a file transfer method: tables and documents."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from farline.analysis import Compared, ComparedMethod
from farline.cli.analyze.json import print_document
from farline.cli.analyze.profile_text import print_scores
from farline.cli.analyze.text import (
    number,
    rate_unit,
    rtt_text,
    say,
    score_span,
    show_table,
    span,
)
from farline.profiles.calculus import Comparison
from farline.profiles.coefficients import Coefficients, Interval
from farline.profiles.throughput_profile import ThroughputProfile
from farline.spec.units import counted, rate_human


def show_comparison(found: Compared, as_json: bool) -> None:
    """Both profiles, their difference and ratio knot by knot, and coefficients side by side."""
    if as_json:
        print_document(comparison_document(found.first, found.second, found.result))
    else:
        _print_both(found.first, found.second, found.result)


def _print_both(a: ThroughputProfile, b: ThroughputProfile, found: Comparison) -> None:
    for letter, profile in (("A", a), ("B", b)):
        say(_headline(letter, profile), hang="   ")
        for note in profile.notes:
            say(f"note: {note}", indent="   ", hang="     ")
    _print_knots(a, b, found)
    _print_coefficients(found.first, found.second)
    for warning in found.warnings:
        say(f"warning: {warning}", hang="  ")


def _headline(letter: str, profile: ThroughputProfile) -> str:
    knots = counted(len(profile), "round-trip time")
    capacity = profile.capacity_bps
    of = "" if capacity is None else f"; L = {rate_human(capacity)}"
    made = counted(int(profile.n.sum()), "transfer")
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
    say(
        "+- of rates and ratios is one standard error; - where there are too few measurements for "
        "one."
    )


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
    profile: ThroughputProfile, places: NDArray[np.float64], scores: Coefficients | None
) -> dict[str, Any]:
    return {
        "selection": profile.label,
        "rate_bps": profile(places),
        "coefficients": scores,
        "failed": profile.failed,
        "unplaced": profile.unplaced,
        "notes": profile.notes,
    }


def show_method(found: ComparedMethod, as_json: bool) -> None:
    """The profile of a file transfer method (Rao et al. 2018, section 3.4)."""
    if as_json:
        print_document(method_document(found))
    else:
        _print_method(found)


def method_document(found: ComparedMethod) -> dict[str, Any]:
    """The method's profile for programs."""
    made = found.result
    return {
        "a": found.files.label,
        "b": found.network.label,
        "how": made.how,
        "limits": found.limits,
        "cap_bps": made.cap_bps,
        "rtt_ms": made.profile.rtt_ms,
        "value": made.profile.mean_bps,
        "standard_error": made.profile.standard_error_bps,
        "low": made.low,
        "high": made.high,
        "coefficients": made.coefficients,
        "c_uc_bootstrap": made.c_uc_bootstrap,
        "warnings": made.warnings,
        "notes": {"a": found.files.notes, "b": found.network.notes},
    }


def _print_method(compared: ComparedMethod) -> None:
    files, network, found = compared.files, compared.network, compared.result
    say(f"{compared.words}: {files.label} over {network.label}.")
    for profile in (files, network):
        for note in profile.notes:
            say(f"note: {profile.label}: {note}", hang="  ")
    say(f"Limits of hosts and file systems: {compared.limits.origin}.")
    made = found.profile
    rows = [
        [
            rtt_text(float(made.rtt_ms[index])),
            number(float(made.mean_bps[index])),
            number(float(made.standard_error_bps[index])),
            "-"
            if found.low is None or found.high is None
            else span(float(found.low[index]), float(found.high[index])),
        ]
        for index in range(len(made))
    ]
    show_table(["RTT ms", "reached", "std error", "bootstrap"], rows, words=0)
    if found.coefficients is not None:
        print_scores(found.coefficients)
    drawn = found.c_uc_bootstrap
    if drawn is not None:
        say(f"C_UC by bootstrap: {drawn.value:.3f} ({score_span(drawn.low, drawn.high)}).")
    for warning in found.warnings:
        say(f"warning: {warning}", hang="  ")
