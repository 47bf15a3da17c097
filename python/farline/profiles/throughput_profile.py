"""A throughput profile: what an infrastructure, or a part of it, delivers over round-trip time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.calculus import (
    Evaluated,
    Outside,
    at_places,
    checked_inside,
    difference,
    evaluated,
    ratio,
    scaled,
)
from farline.profiles.cells import MERGE_MS, MERGE_SHARE, QUANTILES, Cell, Knots, cells_of, knots_of
from farline.profiles.coefficients import (
    Coefficients,
    Region,
    Running,
    coefficients,
    hoeffding_half_width,
    regions,
    running,
)
from farline.profiles.frames import Frame, column_names, numbers, values
from farline.profiles.interpolation import Spread, knot_rows, places_within, spread_of
from farline.profiles.rate_interval import rate_intervals
from farline.spec.units import counted, rate_human

if TYPE_CHECKING:
    from farline.profiles.cell import Cell
    from farline.profiles.frames import Frame

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ThroughputProfile:
    """Means of repeated measurements at K round-trip times, straight lines between them.

    Rao et al. 2018, section 3. Arrays have one entry per knot and are read-only. `rtt_ms` increases
    strictly. `sd_bps` is the sample standard deviation, NaN where n is 1. `capacity_bps` is L, the
    capacity by which rates are normalised; None where it is unknown, and then no coefficient is.

    `profile(rtt_ms)` is the rate at RTTs inside; `a - b` and `a / b` are the difference and the
    ratio over the RTTs that both cover.
    """

    rtt_ms: Floats
    mean_bps: Floats
    sd_bps: Floats
    n: Floats
    capacity_bps: float | None = None
    label: str = ""
    modality: str = "T"
    low_bps: Floats | None = None
    high_bps: Floats | None = None
    quantiles: dict[float, Floats] = field(default_factory=dict)
    points_bps: tuple[tuple[float, ...], ...] | None = None
    """Every rate at each knot, where there are few; none at a knot that has many."""
    failed: int = 0
    unplaced: int = 0
    """Complete measurements that are left out, since their round-trip time is unknown."""
    notes: tuple[str, ...] = ()
    """What makes the profile doubtful, such as capacities that differ; part of every warning."""
    unit: str = "bit/s"
    """Of the rates: bit/s; L of rates over the capacity; 1 of ratios."""
    derived: Spread | None = None
    """Of differences, ratios and parts: how their knots follow from measured means."""

    def __post_init__(self) -> None:
        """Checks the arrays and makes them read-only."""
        for name in ("rtt_ms", "mean_bps", "sd_bps", "n", "low_bps", "high_bps"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, frozen(given, name))
        kept = {
            share: frozen(values, f"quantile {share}") for share, values in self.quantiles.items()
        }
        object.__setattr__(self, "quantiles", kept)
        check_profile(self)

    @classmethod
    def from_cells(
        cls,
        cells: Sequence[Cell],
        *,
        merge_ms: float = MERGE_MS,
        merge_share: float = MERGE_SHARE,
        capacity_bps: float | None = None,
        label: str = "",
        modality: str | None = None,
        quantiles: Sequence[float] = QUANTILES,
    ) -> ThroughputProfile:
        """A profile of cells whatever their keys, RTTs within the tolerance merged (`cells`).

        Without `capacity_bps` L is the largest that a cell states; without `modality` it is what
        the cells' keys say.

        Raises:
            SpecError: when no cell has both a complete measurement and a round-trip time.
        """
        return profile_of_cells(
            cells, merge_ms, merge_share, capacity_bps, label, modality, quantiles
        )

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        rtt: str = "rtt_ms",
        rate: str = "rate_bps",
        *,
        capacity_bps: float | None = None,
        label: str = "",
        modality: str | None = None,
        merge_ms: float = MERGE_MS,
        merge_share: float = MERGE_SHARE,
    ) -> ThroughputProfile:
        """A profile of a table with a row for each measurement: RTTs in ms, rates in bit/s.

        `frame` is a pandas DataFrame, an Arrow table or a mapping of arrays. Its columns
        `complete`, `modality` and `capacity_bps` are used where they are.

        Raises:
            SpecError: for a column that is not there, or a rate or RTT that cannot be.
        """
        return cls.from_cells(
            cells_of_frame(frame, rtt, rate),
            merge_ms=merge_ms,
            merge_share=merge_share,
            capacity_bps=capacity_bps,
            label=label,
            modality=modality,
        )

    @classmethod
    def from_means(
        cls,
        rtt_ms: npt.ArrayLike,
        rate_bps: npt.ArrayLike,
        n: npt.ArrayLike | None = None,
        sd_bps: npt.ArrayLike | None = None,
        *,
        capacity_bps: float | None = None,
        label: str = "",
        modality: str = "T",
    ) -> ThroughputProfile:
        """A profile of means that are known already, one for each RTT, in any order of RTTs.

        Without `n` each is of one measurement; without `sd_bps` there are no intervals.

        Raises:
            SpecError: for arrays of different lengths, an RTT given twice, deviations without n.
        """
        return profile_of_means(rtt_ms, rate_bps, n, sd_bps, capacity_bps, label, modality)

    def __len__(self) -> int:
        """Number of knots."""
        return len(self.rtt_ms)

    @property
    def name(self) -> str:
        """The label, or what stands for it in messages."""
        return self.label or "profile"

    @property
    def spread(self) -> Spread:
        """How sure the means are."""
        return spread_of(self.sd_bps, self.n) if self.derived is None else self.derived

    @property
    def standard_error_bps(self) -> Floats:
        """Standard errors of the means (K,); NaN where nothing is known."""
        return self.spread.standard_error(knot_rows(len(self)))

    @property
    def x(self) -> Floats:
        """Round-trip times from the first to the last as 0 to 1; zeros of a single knot."""
        span = self.rtt_ms[-1] - self.rtt_ms[0]
        x: Floats = (self.rtt_ms - self.rtt_ms[0]) / (span or 1.0)
        return x

    def __call__(self, rtt_ms: npt.ArrayLike) -> Floats:
        """Rates in bit/s at RTTs, in their shape, on the straight lines between knots.

        Raises:
            SpecError: for an RTT outside the profile.
        """
        wanted = np.asarray(rtt_ms, dtype=np.float64)
        rates = self.evaluate(wanted.reshape(-1)).rate_bps
        return rates.reshape(wanted.shape)

    def evaluate(self, rtt_ms: npt.ArrayLike, outside: Outside = "raise") -> Evaluated:
        """Rates at RTTs, with standard errors and a mark on what is extrapolated.

        Raises:
            SpecError: for an RTT outside the profile, when `outside` is "raise".
        """
        return evaluated(self, rtt_ms, outside)

    def checked_inside(self, rtt_ms: npt.ArrayLike) -> Floats:
        """RTTs as an array (P,).

        Raises:
            SpecError: for one outside the profile.
        """
        return checked_inside(self, rtt_ms)

    def between(self, left_ms: float, right_ms: float) -> ThroughputProfile:
        """The part from RTT to RTT, with knots of its own on the line at its ends.

        Raises:
            SpecError: when it is not inside the profile.
        """
        self.checked_inside([left_ms, right_ms])
        if not left_ms <= right_ms:
            raise SpecError(f"{self.name}: {left_ms:g} ms is not before {right_ms:g} ms")
        return at_places(self, places_within(self.rtt_ms, left_ms, right_ms))

    def band(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Confidence intervals of the means at the knots, (K,) and (K,); NaN where none is.

        A measured rate has one above 0, and none of a single run (`rate_interval`); a derived
        profile may be a difference, which can be below 0, and keeps Student's.
        """
        half = self.spread.half_width(knot_rows(len(self)), confidence)
        if self.derived is not None:
            return self.mean_bps - half, self.mean_bps + half
        return rate_intervals(self.mean_bps, np.where(self.n > 1, half, np.nan))

    def normalised(self) -> ThroughputProfile:
        """Rates over L: the same RTTs, unit L, capacity 1. `x` has the RTTs as 0 to 1.

        Raises:
            SpecError: when the capacity is unknown.
        """
        return scaled(self)

    def difference(self, other: ThroughputProfile) -> ThroughputProfile:
        """This less the other, on the knots of both over the RTTs both cover; `calculus`."""
        return difference(self, other)

    def ratio(self, other: ThroughputProfile) -> ThroughputProfile:
        """This over the other, on the knots of both over the RTTs both cover; `calculus`."""
        return ratio(self, other)

    def __sub__(self, other: object) -> ThroughputProfile:
        """`difference`."""
        return self.difference(other) if isinstance(other, ThroughputProfile) else NotImplemented

    def __truediv__(self, other: object) -> ThroughputProfile:
        """`ratio`."""
        return self.ratio(other) if isinstance(other, ThroughputProfile) else NotImplemented

    def coefficients(
        self, confidence: float = 0.95, interval: tuple[float, float] | None = None
    ) -> Coefficients:
        """Utilisation, concavity and both in one, with intervals and warnings; `coefficients`."""
        return coefficients(self, confidence, interval)

    def hoeffding_half_width(
        self, confidence: float = 0.95, interval: tuple[float, float] | None = None
    ) -> float:
        """Half-width of an interval for C_UC that supposes no distribution; `coefficients`."""
        return hoeffding_half_width(self, confidence, interval)

    def running(self, confidence: float = 0.95, at_ms: npt.ArrayLike | None = None) -> Running:
        """C_UC of the part up to each RTT; `running`."""
        return running(self, confidence, at_ms)

    def concave_regions(self, confidence: float = 0.95) -> tuple[Region, ...]:
        """Where it bends down, up, or not beyond noise; `regions`."""
        return regions(self, confidence)

    def to_frame(self, confidence: float = 0.95) -> Any:
        """A pandas DataFrame with a row for each knot and its confidence interval."""
        from farline.profiles.profile_text import frame_of

        return frame_of(self, confidence)

    def relabelled(self, label: str) -> ThroughputProfile:
        """The same under another name."""
        return replace(self, label=label)

    def __repr__(self) -> str:
        """A table of the knots, as pandas prints one."""
        from farline.profiles.profile_text import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        from farline.profiles.profile_text import html_of

        return html_of(self)


def frozen(values: npt.ArrayLike, name: str) -> Floats:
    """A read-only copy as numbers.

    Raises:
        SpecError: when the values are no numbers in one row.
    """
    try:
        copy = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecError(f"profile: {name} contains a value that is not a number") from None
    if copy.ndim != 1:
        raise SpecError(f"profile: {name} has {copy.ndim} dimensions; it must have one")
    copy.flags.writeable = False
    return copy


def check_profile(profile: ThroughputProfile) -> None:
    """Raises SpecError with the first thing that does not hold."""
    count = len(profile.rtt_ms)
    if not count:
        raise SpecError("profile: no round-trip time given; at least one is needed")
    named = {name: getattr(profile, name) for name in ("mean_bps", "sd_bps", "n")}
    for name in ("low_bps", "high_bps"):
        if getattr(profile, name) is not None:
            named[name] = getattr(profile, name)
    named |= {f"quantile {share}": values for share, values in profile.quantiles.items()}
    if profile.points_bps is not None:
        named["points_bps"] = profile.points_bps
    for name, column in named.items():
        if len(column) != count:
            raise SpecError(
                f"profile: {name} has {len(column)} entries for {count} round-trip times"
            )
    _check_numbers(profile)


def _check_numbers(profile: ThroughputProfile) -> None:
    rtt_ms, capacity = profile.rtt_ms, profile.capacity_bps
    if not bool(np.all(np.isfinite(rtt_ms) & (rtt_ms >= 0))):
        raise SpecError("profile: rtt_ms has a value that is not a number of 0 or more")
    steps = np.flatnonzero(np.diff(rtt_ms) <= 0)
    if len(steps):
        pair = rtt_ms[steps[0] : steps[0] + 2]
        raise SpecError(
            f"profile: rtt_ms does not increase strictly, {pair[0]:g} is followed by {pair[1]:g}"
        )
    if not bool(np.all(np.isfinite(profile.mean_bps))):
        raise SpecError("profile: mean_bps has a value that is not finite")
    if not bool(np.all(np.isfinite(profile.n) & (profile.n >= 1))):
        raise SpecError("profile: n has a value below 1")
    if bool(np.any(profile.sd_bps < 0)) or bool(np.isinf(profile.sd_bps).any()):
        raise SpecError("profile: sd_bps has a value below 0 or not a number")
    if capacity is not None and not (np.isfinite(capacity) and capacity > 0):
        raise SpecError(f"profile: capacity_bps is {capacity:g}; it must be above 0")


DURATIONS_ALIKE = 2.0
"""How many times longer tests at one RTT may take than at another to make one profile."""


def profile_of_cells(
    cells: Sequence[Cell],
    merge_ms: float,
    merge_share: float,
    capacity_bps: float | None,
    label: str,
    modality: str | None,
    quantiles: Sequence[float],
) -> ThroughputProfile:
    """`ThroughputProfile.from_cells`."""

    cells = list(cells)
    knots = knots_of(cells, merge_ms, merge_share)
    found = sorted({str(cell.keys["modality"]) for cell in cells if cell.keys.get("modality")})
    modality = modality or "+".join(found) or "T"
    stated = sorted({cell.capacity_bps for cell in cells if cell.capacity_bps is not None})
    notes = (
        _mixed_modalities(found),
        _mixed_durations(knots, modality),
        "" if capacity_bps is not None else _mixed_capacities(stated),
        _unplaced(knots),
    )
    shares = [cell.quantiles_bps(quantiles) for cell in knots.cells]
    return ThroughputProfile(
        rtt_ms=knots.rtt_ms,
        mean_bps=np.array([cell.mean_bps for cell in knots.cells]),
        sd_bps=knots.sd_bps,
        n=np.array([float(cell.n) for cell in knots.cells]),
        capacity_bps=max(stated, default=None) if capacity_bps is None else capacity_bps,
        label=label,
        modality=modality,
        low_bps=np.array([cell.low_bps for cell in knots.cells]),
        high_bps=np.array([cell.high_bps for cell in knots.cells]),
        quantiles={
            share: np.array([knot[place] for knot in shares])
            for place, share in enumerate(quantiles)
        },
        points_bps=_points(knots),
        failed=knots.failed,
        unplaced=knots.unplaced,
        notes=tuple(note for note in notes if note),
    )


def cells_of_frame(frame: Frame, rtt: str, rate: str) -> list[Cell]:
    """Cells of a table whose columns of RTTs and rates have names of their own."""
    names = column_names(frame)
    rows: dict[str, object] = {"rtt_ms": numbers(frame, rtt), "rate_bps": numbers(frame, rate)}
    for name in ("complete", "modality", "capacity_bps", "bytes", "duration_s"):
        if name in names:
            rows[name] = values(frame, name)
    return cells_of(rows, by=("modality",) if "modality" in names else ())


def profile_of_means(
    rtt_ms: npt.ArrayLike,
    rate_bps: npt.ArrayLike,
    n: npt.ArrayLike | None,
    sd_bps: npt.ArrayLike | None,
    capacity_bps: float | None,
    label: str,
    modality: str,
) -> ThroughputProfile:
    """`ThroughputProfile.from_means`."""

    rtt = frozen(rtt_ms, "rtt_ms")
    if sd_bps is not None and n is None:
        raise SpecError("profile: sd_bps needs n, the number of measurements per mean")
    given = {
        "rate_bps": frozen(rate_bps, "rate_bps"),
        "n": np.ones(len(rtt)) if n is None else frozen(n, "n"),
        "sd_bps": np.full(len(rtt), np.nan) if sd_bps is None else frozen(sd_bps, "sd_bps"),
    }
    for name, array in given.items():
        if len(array) != len(rtt):
            raise SpecError(
                f"profile: {name} has {len(array)} entries for {len(rtt)} round-trip times"
            )
    order = np.argsort(rtt, kind="stable")
    return ThroughputProfile(
        rtt_ms=rtt[order],
        mean_bps=given["rate_bps"][order],
        sd_bps=given["sd_bps"][order],
        n=given["n"][order],
        capacity_bps=capacity_bps,
        label=label,
        modality=modality,
    )


def _points(knots: Knots) -> tuple[tuple[float, ...], ...] | None:
    points = tuple(cell.rates_bps or () for cell in knots.cells)
    return points if any(points) else None


def _mixed_modalities(found: Sequence[str]) -> str:
    if len(found) < 2:
        return ""
    return f"modalities {' and '.join(found)} are mixed: their means measure different things"


def _mixed_durations(knots: Knots, modality: str) -> str:
    """Concavity is an effect of how long a test took beside its ramp; files have their sizes."""
    durations = [cell.mean_duration_s for cell in knots.cells]
    known = [duration for duration in durations if not math.isnan(duration)]
    if modality != "T" or not known or max(known) < DURATIONS_ALIKE * min(known):
        return ""
    return (
        f"tests took {min(known):.3g} s at one round-trip time and {max(known):.3g} s at another: "
        "shorter tests lose more to their start-up, which distorts the profile"
    )


def _mixed_capacities(stated: Sequence[float]) -> str:
    if len(stated) < 2:
        return ""
    return (
        f"capacities from {rate_human(stated[0])} to {rate_human(stated[-1])} are mixed: rates "
        "are relative to the largest"
    )


def _unplaced(knots: Knots) -> str:
    if not knots.unplaced:
        return ""
    return f"{counted(knots.unplaced, 'measurement')} left out: the round-trip time is unknown"
