"""`farline analyze profile`: throughput over round-trip time, its coefficients and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import (
    asking_options,
    check_figure,
    json_option,
    opened,
    shape_from,
)
from farline.cli.command import Command
from farline.errors import UsageError
from farline.spec import units

if TYPE_CHECKING:
    from farline.analysis import Shape
    from farline.plots.analysis_values import ProfileView
    from farline.profiles.calculus import Evaluated

_RTTS = "map its column, or give --set rtt_ms=... or --infrastructure"
"""What a profile without round-trip times needs."""

_HELP = """Compute throughput profiles over round-trip time.

A profile has the mean of repeated measurements at each round-trip time, and straight lines
between them. There is one for each modality and, with --by, for each value of a column. With
it come the coefficients of Rao et al. 2018 where the capacity is known, concave and convex
regions, and the model that best predicts measurements it was not fitted to.
"""


@click.command(
    "profile", cls=Command, help=_HELP, short_help="Compute throughput over round-trip time."
)
@asking_options
@click.option(
    "--by",
    metavar="COLUMN,...",
    help="Compute a profile for each value of these columns, or `site`.",
)
@click.option(
    "--model", default="auto", metavar="auto|none|NAME",
    help="Fit this model; auto chooses one by cross-validation (default auto).",
)  # fmt: skip
@click.option("--at", metavar="RTT,...", help="Print the throughput at these round-trip times.")
@click.option(
    "--extrapolate", is_flag=True,
    help="With --at outside the measured range: constant below it, W/RTT above it.",
)  # fmt: skip
@click.option(
    "--running", is_flag=True, help="Show the coefficient C_UC up to each round-trip time."
)
@click.option(
    "--figure", type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the result into a .png or .svg file.",
)  # fmt: skip
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Reads, computes, prints and draws."""
    from farline.analysis import throughput_profiles
    from farline.analysis.cells import read_by
    from farline.analysis.measured import stranger_notes
    from farline.analysis.views import evaluated

    asked, by = read_rtts(options["at"]), read_by(options["by"])
    _check(options)
    shape = shape_from(options)
    with opened(options) as (source, wanted):
        made, left_out = throughput_profiles(source, wanted, by, shape)
        said = stranger_notes(source, wanted)
    if not made:
        why = "; ".join(left_out) or "no profile: no transfer matches"
        raise UsageError(f"{why}; {_RTTS}" if "has a round-trip time" in why else why)
    values, not_told = evaluated(made, asked, options["extrapolate"])
    if options["figure"] is not None:
        from farline.plots.profile_figure import draw_profiles
        from farline.plots.style import save_figure

        save_figure(lambda: draw_profiles(made), options["figure"])
    notes = [*said, *map(units.sentence, left_out), *not_told]
    if as_json:
        _print_document(made, values, notes)
    else:
        _print(made, values, notes, shape, options)


def _check(options: Mapping[str, Any]) -> None:
    check_figure(options["figure"])
    if options["extrapolate"] and not options["at"]:
        raise click.UsageError("--extrapolate: needs --at")
    if options["model"] not in ("auto", "none"):
        from farline.models.profile_models import model_named

        model_named(options["model"])


def read_rtts(text: str | None) -> list[float]:
    """Milliseconds from `5,10,80` or a range such as `10..100+10`.

    Raises:
        UsageError: when one cannot be read.
    """
    if text is None:
        return []
    try:
        return [float(value) for value in units.parse_sweep(text, units.parse_rtt_ms)]
    except ValueError as error:
        raise click.UsageError(f"--at: {error}") from None


def _print_document(
    made: Sequence[ProfileView], values: Mapping[int, Evaluated], notes: Sequence[str]
) -> None:
    from farline.cli.analyze.json import print_document, profile_document

    profiles = [profile_document(view) for view in made]
    for index, evaluated in values.items():
        profiles[index]["at"] = evaluated
    print_document({"profiles": profiles, "notes": notes})


def _print(
    made: Sequence[ProfileView],
    values: Mapping[int, Evaluated],
    notes: Sequence[str],
    shape: Shape,
    options: Mapping[str, Any],
) -> None:
    from farline.cli.analyze.profile_text import print_asked, print_profile
    from farline.cli.analyze.text import say
    from farline.models.model_choice import KNOTS_NEEDED

    for index, view in enumerate(made):
        if index:
            click.echo()
        print_profile(view, shape.confidence, options["running"])
        if shape.model == "auto" and len(view.profile) < KNOTS_NEEDED:
            say(f"No model: choosing one needs {KNOTS_NEEDED} round-trip times.")
        if index in values:
            print_asked(values[index])
    for line in notes:
        say(line)
    if options["figure"] is not None:
        click.echo(options["figure"])
