"""The profile of a file transfer method (papers/5, section 3.4), printed, drawn, as a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.text import number, rtt_text, say, score_span, show_table, span
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.cli.analyze.limits import Limits
    from farline.cli.analyze.views import Shape
    from farline.plots.analysis_values import Comparison
    from farline.profiles.method_profile import MethodProfile
    from farline.profiles.throughput_profile import ThroughputProfile


def show_method(
    files: ThroughputProfile,
    network: ThroughputProfile,
    limits: Limits,
    shape: Shape,
    options: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Computes the method's profile and shows it.

    Raises:
        SpecError: when no RTT is covered by both, or `paper` lacks the capacity.
    """
    from farline.profiles.method_profile import method_profile

    found = method_profile(
        files,
        network,
        host_bps=limits.host_bps,
        file_bps=limits.file_bps,
        how=options["method"],
        confidence=shape.confidence,
    )
    if options["figure"] is not None:
        from farline.cli.analyze.figure import save_figure
        from farline.plots.comparison_figure import draw_comparison

        drawn = drawn_method(files, network, found)
        save_figure(lambda: draw_comparison(drawn), options["figure"])
    if as_json:
        from farline.cli.analyze.json import print_document

        print_document(document(files, network, limits, found))
        return
    _print(files, network, limits, found)
    if options["figure"] is not None:
        click.echo(options["figure"])


def drawn_method(
    files: ThroughputProfile, network: ThroughputProfile, found: MethodProfile
) -> Comparison:
    """The method's profile as figures have it."""
    from farline.plots.analysis_values import Comparison

    return Comparison(
        name="file transfer method",
        kind="ratio",
        first=files,
        second=network,
        rtt_ms=found.profile.rtt_ms,
        values=found.profile.mean_bps,
        deviation=found.profile.standard_error_bps,
        score=found.coefficients,
        words=_words(found),
    )


def _words(found: MethodProfile) -> str:
    cap = "" if found.cap_bps is None else f", and at most {rate_human(found.cap_bps)}"
    if found.how == "paper":
        return f"What file transfers reach, by equation 2.2 of papers/5{cap}"
    return f"What file transfers reach of what memory to memory does{cap}"


def document(
    files: ThroughputProfile, network: ThroughputProfile, limits: Limits, found: MethodProfile
) -> dict[str, Any]:
    """The method's profile for programs."""
    return {
        "a": files.label,
        "b": network.label,
        "how": found.how,
        "limits": limits,
        "cap_bps": found.cap_bps,
        "rtt_ms": found.profile.rtt_ms,
        "value": found.profile.mean_bps,
        "standard_error": found.profile.standard_error_bps,
        "low": found.low,
        "high": found.high,
        "coefficients": found.coefficients,
        "c_uc_bootstrap": found.c_uc_bootstrap,
        "warnings": found.warnings,
        "notes": {"a": files.notes, "b": network.notes},
    }


def _print(
    files: ThroughputProfile, network: ThroughputProfile, limits: Limits, found: MethodProfile
) -> None:
    from farline.cli.analyze.profile_text import print_scores

    say(f"{_words(found)}: {files.label} over {network.label}.")
    for profile in (files, network):
        for note in profile.notes:
            say(f"note: {profile.label}: {note}", hang="  ")
    say(f"Limits of hosts and file systems: {limits.origin}.")
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
