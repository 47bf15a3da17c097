"""A throughput profile: what an infrastructure, or a part of it, delivers over round-trip time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.interpolation import knot_rows, places_within
from farline.profiles.merging import MERGE_MS, MERGE_SHARE, QUANTILES
from farline.profiles.spread import Spread, spread_of

if TYPE_CHECKING:
    from farline.profiles.cell import Cell
    from farline.profiles.coefficients import Coefficients
    from farline.profiles.frames import Frame
    from farline.profiles.regions import Region
    from farline.profiles.running import Running

Floats = npt.NDArray[np.float64]

Outside = Literal["raise", "mark", "flat"]
"""What is done about RTTs outside a profile: an error, flat to the left and W/τ to the right, or
flat on both sides; the last two are marked."""


@dataclass(frozen=True, eq=False, slots=True)
class Evaluated:
    """A profile at P round-trip times: rates (P,) and their standard errors (P,), NaN if unknown.

    `extrapolated` (P,) marks what is outside the profile, where there is no standard error.
    """

    rtt_ms: Floats
    rate_bps: Floats
    standard_error_bps: Floats
    extrapolated: npt.NDArray[np.bool_]


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
        from farline.profiles.profile_checks import check_profile, frozen

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
        """A profile of cells whatever their keys, RTTs within the tolerance merged (`merging`).

        Without `capacity_bps` L is the largest that a cell states; without `modality` it is what
        the cells' keys say.

        Raises:
            SpecError: when no cell has both a complete measurement and a round-trip time.
        """
        from farline.profiles.profile_making import profile_of_cells

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
        from farline.profiles.profile_making import cells_of_frame

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
        from farline.profiles.profile_making import profile_of_means

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
        from farline.profiles.evaluation import evaluated

        return evaluated(self, rtt_ms, outside)

    def checked_inside(self, rtt_ms: npt.ArrayLike) -> Floats:
        """RTTs as an array (P,).

        Raises:
            SpecError: for one outside the profile.
        """
        from farline.profiles.evaluation import checked_inside

        return checked_inside(self, rtt_ms)

    def between(self, left_ms: float, right_ms: float) -> ThroughputProfile:
        """The part from RTT to RTT, with knots of its own on the line at its ends.

        Raises:
            SpecError: when it is not inside the profile.
        """
        from farline.profiles.evaluation import at_places

        self.checked_inside([left_ms, right_ms])
        if not left_ms <= right_ms:
            raise SpecError(f"{self.name}: {left_ms:g} ms is not before {right_ms:g} ms")
        return at_places(self, places_within(self.rtt_ms, left_ms, right_ms))

    def band(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Confidence intervals of the means at the knots, (K,) and (K,); NaN where none is.

        A measured rate has one above 0, and none of a single run (`rate_interval`); a derived
        profile may be a difference, which can be below 0, and keeps Student's.
        """
        from farline.profiles.rate_interval import rate_intervals

        half = self.spread.half_width(knot_rows(len(self)), confidence)
        if self.derived is not None:
            return self.mean_bps - half, self.mean_bps + half
        return rate_intervals(self.mean_bps, np.where(self.n > 1, half, np.nan))

    def normalised(self) -> ThroughputProfile:
        """Rates over L: the same RTTs, unit L, capacity 1. `x` has the RTTs as 0 to 1.

        Raises:
            SpecError: when the capacity is unknown.
        """
        from farline.profiles.evaluation import scaled

        return scaled(self)

    def difference(self, other: ThroughputProfile) -> ThroughputProfile:
        """This less the other, on the knots of both over the RTTs both cover; `calculus`."""
        from farline.profiles.calculus import difference

        return difference(self, other)

    def ratio(self, other: ThroughputProfile) -> ThroughputProfile:
        """This over the other, on the knots of both over the RTTs both cover; `calculus`."""
        from farline.profiles.calculus import ratio

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
        from farline.profiles.coefficients import coefficients

        return coefficients(self, confidence, interval)

    def hoeffding_half_width(
        self, confidence: float = 0.95, interval: tuple[float, float] | None = None
    ) -> float:
        """Half-width of an interval for C_UC that supposes no distribution; `coefficients`."""
        from farline.profiles.coefficients import hoeffding_half_width

        return hoeffding_half_width(self, confidence, interval)

    def running(self, confidence: float = 0.95, at_ms: npt.ArrayLike | None = None) -> Running:
        """C_UC of the part up to each RTT; `running`."""
        from farline.profiles.running import running

        return running(self, confidence, at_ms)

    def concave_regions(self, confidence: float = 0.95) -> tuple[Region, ...]:
        """Where it bends down, up, or not beyond noise; `regions`."""
        from farline.profiles.regions import regions

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
