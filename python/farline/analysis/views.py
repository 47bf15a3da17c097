"""Cells into what is shown of a profile: the profile, its coefficients, model and regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from farline.analysis.cells import SITE, by_site, cells, grouped, site_cells, value_text
from farline.analysis.sources import Measurements
from farline.errors import SpecError
from farline.models.model_choice import KNOTS_NEEDED, Choice, choose
from farline.models.profile_models import model_named
from farline.plots.analysis_values import MODALITY_TEXT, Line, ProfileView, Region, Running
from farline.profiles.calculus import Evaluated
from farline.profiles.cells import MERGE_MS, MERGE_SHARE, Cell
from farline.profiles.throughput_profile import ThroughputProfile
from farline.store.transfers import Selection

AUTO, NONE = "auto", "none"
LINE_POINTS = 200
"""Points of a drawn model between the first and the last round-trip time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How cells become profiles, as whoever asks has it.

    Round-trip times within `merge_ms` are one; None is the larger of 0.5 ms and 1 %.
    """

    capacity_bps: float | None = None
    merge_ms: float | None = None
    confidence: float = 0.95
    model: str = AUTO


DEFAULT_SHAPE = Shape()


def profile_from(
    found: Sequence[Cell], shape: Shape, name: str = "", modality: str | None = None
) -> ThroughputProfile:
    """The profile of some cells.

    Raises:
        SpecError: when none of them has a complete measurement and a round-trip time.
    """

    return ThroughputProfile.from_cells(
        found,
        merge_ms=MERGE_MS if shape.merge_ms is None else shape.merge_ms,
        # What `--merge` says is all that is merged.
        merge_share=MERGE_SHARE if shape.merge_ms is None else 0.0,
        capacity_bps=shape.capacity_bps,
        label=name,
        modality=modality,
    )


def view_of(
    profile: ThroughputProfile, choice: Choice | None, shape: Shape, group: str = ""
) -> ProfileView:
    """A profile with everything that can be computed from it; what cannot is left out."""

    low, high = profile.band(shape.confidence)
    several = profile.capacity_bps is not None and len(profile) > 1
    return ProfileView(
        name=profile.label,
        profile=profile,
        coefficients=profile.coefficients(shape.confidence) if several else None,
        running=_running(profile, shape.confidence) if several else None,
        choice=choice,
        fitted=None if choice is None else fitted_line(profile, choice),
        regions=_regions(profile, shape.confidence),
        group=group,
        mean_low_bps=low,
        mean_high_bps=high,
    )


def _running(profile: ThroughputProfile, confidence: float) -> Running:

    found = profile.running(confidence)
    return Running(found.rtt_ms, found.c_uc, found.low, found.high)


def choice_of(profile: ThroughputProfile, model: str) -> Choice | None:
    """The chosen model; with a model's name that one alone. None for "none", or too few RTTs.

    Raises:
        SpecError: for an unknown model, or a named one that cannot be fitted.
    """

    if model == NONE:
        return None
    named = None if model == AUTO else [model_named(model)]
    if named is None and len(profile) < KNOTS_NEEDED:
        return None
    return choose(profile.rtt_ms, profile.mean_bps, weight=profile.n, models=named)


def fitted_line(profile: ThroughputProfile, choice: Choice) -> Line:
    """The chosen model from the first to the last round-trip time."""

    left, right = float(profile.rtt_ms[0]), float(profile.rtt_ms[-1])
    places = np.union1d(np.linspace(left, right, LINE_POINTS), profile.rtt_ms)
    rates = choice.chosen.predict(places)
    return Line(choice.chosen.name, places, rates, left, right, choice.chosen.in_words())


def _regions(profile: ThroughputProfile, confidence: float) -> tuple[Region, ...]:
    """Where it bends beyond noise; what is straight is not shaded."""

    return tuple(
        Region(part.left_ms, part.right_ms, part.shape)
        for part in profile.concave_regions(confidence)
        if part.shape != "straight"
    )


@dataclass(frozen=True)
class Group:
    """Cells of one profile. `by` says what sets it apart, `name` how; both empty for all."""

    by: str
    name: str
    modality: str
    cells: Sequence[Cell]

    @property
    def heading(self) -> str:
        """What the group is called in a line of its own."""
        return f"{self.by}: {self.name}" if self.by else MODALITY_TEXT[self.modality]


def views(groups: Iterable[Group], shape: Shape) -> tuple[list[ProfileView], list[str]]:
    """Views of the groups, and a line for each that gives no profile, or not the model named."""
    made: list[ProfileView] = []
    left_out: list[str] = []
    for group in groups:
        try:
            profile = profile_from(group.cells, shape, group.name, group.modality)
        except SpecError as error:
            why = error.message.removeprefix("no profile: ")
            left_out.append(f"no profile of {group.heading}: {why}")
            continue
        choice = None
        try:
            choice = choice_of(profile, shape.model)
        except SpecError as error:
            left_out.append(f"no model of {group.heading}: {error.message}")
        made.append(view_of(profile, choice, shape, group.by))
    return made, left_out


def throughput_profiles(
    source: Measurements, wanted: Selection, by: Sequence[str] = (), shape: Shape = DEFAULT_SHAPE
) -> tuple[list[ProfileView], list[str]]:
    """A profile for each modality, and for each value of the columns `by`, or each `site`.

    Besides a line for each group that gives none, or not the model that was asked for.
    """
    return views(_groups(source, wanted, by), shape)


def _groups(source: Measurements, wanted: Selection, by: Sequence[str]) -> list[Group]:
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


def evaluated(
    made: Sequence[ProfileView], rtts_ms: Sequence[float], extrapolate: bool = False
) -> tuple[dict[int, Evaluated], list[str]]:
    """Each profile by its place at other RTTs, and a line for each that does not cover them.

    Raises:
        SpecError: when none does.
    """
    values: dict[int, Evaluated] = {}
    refused: list[SpecError] = []
    for index, view in enumerate(made if rtts_ms else ()):
        try:
            values[index] = view.profile.evaluate(rtts_ms, "mark" if extrapolate else "raise")
        except SpecError as error:
            refused.append(error)
    hint = "" if extrapolate else " (--extrapolate)"
    if refused and not values:
        raise SpecError(f"{refused[0].message}{hint}")
    return values, [
        f"Nothing at other round-trip times: {error.message}{hint}." for error in refused
    ]
