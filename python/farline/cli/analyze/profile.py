"""`farline analyze profile`: throughput over round-trip time, its coefficients and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import (
    check_figure,
    json_option,
    selection_options,
    shape_from,
    shape_options,
    source_from,
    source_options,
)
from farline.errors import SpecError, UsageError
from farline.spec import units

if TYPE_CHECKING:
    from farline.cli.analyze.sources import Opened
    from farline.cli.analyze.views import Group, Shape
    from farline.plots.analysis_values import ProfileView
    from farline.profiles.throughput_profile import Evaluated
    from farline.store.transfers import Selection

_HELP = """Profile throughput over round-trip time.

\b
  farline analyze profile gridftp-transfer.log --infrastructure sites.toml
  farline analyze profile --modality T --by streams --capacity 10G

One profile for each modality, and with --by for each value of these columns: means of repeated
measurements at each round-trip time, straight lines between them. Below are the coefficients of
papers/5 (with the capacity known), where it is concave and where convex, and which model predicts
best what it was not shown.
"""


@click.command("profile", help=_HELP, short_help="Throughput over round-trip time.")
@source_options
@selection_options
@shape_options
@click.option(
    "--by", metavar="COLUMN,...", help="A profile for each value of these columns, or each `site`."
)
@click.option(
    "--model", default="auto", show_default=True, metavar="auto|none|NAME",
    help="Choose the model by cross-validation, none, or this one.",
)  # fmt: skip
@click.option("--at", metavar="RTT,...", help="Say what it is at these round-trip times.")
@click.option(
    "--extrapolate", is_flag=True,
    help="With --at beyond what was measured: flat to the left, W/RTT to the right.",
)  # fmt: skip
@click.option("--running", is_flag=True, help="Show C_UC up to each round-trip time.")
@click.option(
    "--figure", type=click.Path(path_type=Path, dir_okay=False),
    help="Draw into FILE.png or FILE.svg.",
)  # fmt: skip
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Reads, computes, prints and draws."""
    from farline.cli.analyze.cells import read_by
    from farline.cli.analyze.extras import stranger_notes
    from farline.cli.analyze.selection import selection_from
    from farline.cli.analyze.sources import opened
    from farline.cli.analyze.text import sentence

    asked, by = read_rtts(options["at"]), read_by(options["by"])
    _check(options)
    shape = shape_from(options)
    with opened(source_from(options)) as source:
        wanted = selection_from(options, source.infrastructure)
        made, left_out = profile_views(source, wanted, by, shape)
        said = stranger_notes(source, wanted)
    if not made:
        raise UsageError("; ".join(left_out) or "no profile: no transfers fit")
    values, not_told = at_rtts(made, asked, options["extrapolate"])
    if options["figure"] is not None:
        from farline.cli.analyze.figure import save_figure
        from farline.plots.profile_figure import draw_profiles

        save_figure(lambda: draw_profiles(made), options["figure"])
    notes = [*said, *map(sentence, left_out), *not_told]
    if as_json:
        _print_document(made, values, notes)
    else:
        _print(made, values, notes, shape, options)


def at_rtts(
    made: Sequence[ProfileView], asked: Sequence[float], extrapolate: bool
) -> tuple[dict[int, Evaluated], list[str]]:
    """Each profile by its place at other RTTs, and a line for each that does not cover them.

    Raises:
        SpecError: when none does.
    """
    values: dict[int, Evaluated] = {}
    refused: list[SpecError] = []
    for index, view in enumerate(made if asked else ()):
        try:
            values[index] = view.profile.evaluate(asked, "mark" if extrapolate else "raise")
        except SpecError as error:
            refused.append(error)
    hint = "" if extrapolate else " (--extrapolate)"
    lines = [f"Not at other round-trip times: {error.message}{hint}." for error in refused]
    if refused and not values:
        raise SpecError(f"{refused[0].message}{hint}")
    return values, lines


def _check(options: Mapping[str, Any]) -> None:
    check_figure(options["figure"])
    if options["extrapolate"] and not options["at"]:
        raise click.UsageError("--extrapolate goes with --at")
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


def profile_views(
    source: Opened, wanted: Selection, by: Sequence[str], shape: Shape
) -> tuple[list[ProfileView], list[str]]:
    """The profiles that are asked for, and a line for each group that gives none."""
    from farline.cli.analyze.views import views

    return views(_groups(source, wanted, by), shape)


def _groups(source: Opened, wanted: Selection, by: Sequence[str]) -> list[Group]:
    from farline.cli.analyze.cells import SITE, by_site, cells, grouped, site_cells, value_text
    from farline.cli.analyze.views import Group

    columns = [name for name in by if name != SITE]
    found = (site_cells if SITE in by else cells)(source, wanted, columns)
    groups: list[Group] = []
    for (modality, *values), those in grouped(found, ("modality", *columns)).items():
        texts = [value_text(*pair) for pair in zip(columns, values, strict=True)]
        parts = by_site(those) if SITE in by else {"": those}
        for site, cells_there in parts.items():
            names = [*texts, site] if site else texts
            heading = [*columns, SITE] if site else columns
            groups.append(Group(", ".join(heading), ", ".join(names), str(modality), cells_there))
    return groups


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
            say(f"No model: to choose one needs {KNOTS_NEEDED} round-trip times.")
        if index in values:
            print_asked(values[index])
    for line in notes:
        say(line)
    if options["figure"] is not None:
        click.echo(options["figure"])
