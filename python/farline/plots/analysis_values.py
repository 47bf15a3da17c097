"""What the page and the figures of an analysis are made of: values, all computed elsewhere.

Whoever computes fills these in; a figure decides where ink goes and nothing else. Arrays are one
number per knot or place; NaN is "no figure". Rates are bit/s, round-trip times milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from farline.findings.infrastructure_finding import Explanation
    from farline.models.model_choice import Choice
    from farline.profiles.coefficients import Coefficients
    from farline.profiles.throughput_profile import ThroughputProfile
    from farline.spec.infrastructure import Infrastructure

    Floats = NDArray[np.float64]

MODALITY_TEXT = {
    "T": "memory to memory",
    "E": "file to file",
    "H": "host input and output",
    "F": "file system",
}
"""The modalities of Rao et al. 2018 as people read them."""

Shape = Literal["concave", "convex"]

POINTS_UP_TO = 10
"""Repetitions at a knot up to which every single rate is drawn."""


@dataclass(frozen=True, eq=False)
class Line:
    """A computed curve: a fitted model, or the bound of a window.

    Drawn dashed where it leaves [left_ms, right_ms], the range that was measured. `rtt_ms`
    increases. `name` is for legends, `words` says in one line what it is, with units.
    """

    name: str
    rtt_ms: Floats
    rate_bps: Floats
    left_ms: float
    right_ms: float
    words: str = ""

    @property
    def goes_beyond(self) -> bool:
        """Whether a part of it lies outside of what was measured."""
        return bool(self.rtt_ms[0] < self.left_ms or self.rtt_ms[-1] > self.right_ms)


@dataclass(frozen=True, slots=True)
class Region:
    """A range of round-trip times in which a profile is concave or convex."""

    left_ms: float
    right_ms: float
    shape: Shape


@dataclass(frozen=True, eq=False)
class Running:
    """C_UC over [smallest RTT, RTT] at each knot, with the ends of its interval where known."""

    rtt_ms: Floats
    c_uc: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True, eq=False)
class ProfileView:
    """One profile and what was computed from it.

    `group` says what sets it apart from the others of the same group ("site", "streams"); empty
    for the infrastructure as a whole. `mean_low_bps` and `mean_high_bps` are the ends of the
    confidence interval of each mean, NaN where n does not allow one; without them whiskers show
    the standard deviation. `bounds` are lines that rates cannot pass, such as n W / RTT.
    """

    name: str
    profile: ThroughputProfile
    coefficients: Coefficients | None = None
    running: Running | None = None
    choice: Choice | None = None
    fitted: Line | None = None
    bounds: tuple[Line, ...] = ()
    regions: tuple[Region, ...] = ()
    group: str = ""
    mean_low_bps: Floats | None = None
    mean_high_bps: Floats | None = None


@dataclass(frozen=True, slots=True)
class PairRow:
    """What was measured between two sites, one way. `mean_bps` is None where nothing completed."""

    from_site: str
    to_site: str
    rtt_ms: float | None
    n: int
    mean_bps: float | None
    sd_bps: float | None = None
    capacity_bps: float | None = None
    failed: int = 0
    modality: str = "T"

    @property
    def share(self) -> float | None:
        """Mean rate over capacity; None where either is unknown."""
        if self.mean_bps is None or not self.capacity_bps:
            return None
        return self.mean_bps / self.capacity_bps


@dataclass(frozen=True, slots=True)
class UseBar:
    """One bar of Rao et al. 2018, Fig. 2: file to file, what memory to memory adds, what is unused.

    Either may be None where it was not measured; both are over the same range.
    """

    name: str
    file: Coefficients | None
    network: Coefficients | None
    note: str = ""


@dataclass(frozen=True, eq=False)
class HeatGrid:
    """A quantity over two settings (Rao et al. 2018, Fig. 13): `values[row, column]`, NaN if empty.

    `unit` is "bit/s", or empty for a coefficient. `failed` are the cells in which nothing
    completed, `n` how many measurements there are in each.
    """

    title: str
    row_label: str
    column_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    unit: str = "bit/s"
    failed: frozenset[tuple[int, int]] = frozenset()
    n: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class IoCurve:
    """What a file system or host delivers over processes or streams (Rao et al. 2018, Fig. 5)."""

    name: str
    x_label: str
    x: Floats
    mean_bps: Floats
    sd_bps: Floats
    n: Floats
    modality: str = "F"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two profiles over their common interval, and their difference or ratio.

    `values` are bit/s for a difference and plain numbers for a ratio (Rao et al. 2018, Fig. 9d);
    `deviation` is their standard error, where known. `score` are the coefficients of the ratio.
    """

    name: str
    kind: Literal["difference", "ratio"]
    first: ThroughputProfile
    second: ThroughputProfile
    rtt_ms: Floats
    values: Floats
    deviation: Floats | None = None
    score: Coefficients | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class OddLine:
    """A line of a log that was no record: where, why, and how it begins."""

    number: int
    why: str
    text: str


@dataclass(frozen=True, slots=True)
class LogTally:
    """What was taken in from one source. `skipped` are records that are no transfers, by reason."""

    source: str
    tool: str
    records: int
    transfers: int
    failed: int = 0
    malformed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    odd_lines: tuple[OddLine, ...] = ()


@dataclass(frozen=True, eq=False)
class AnalysisData:
    """Everything that one page shows; what is empty is left out of it.

    `profiles` come with the most important first. `command` is what makes the page again, `notes`
    are sentences on the data and the method. `made` is a short line such as a date.
    """

    title: str
    profiles: tuple[ProfileView, ...] = ()
    infrastructure: Infrastructure | None = None
    explanation: Explanation | None = None
    pairs: tuple[PairRow, ...] = ()
    bars: tuple[UseBar, ...] = ()
    heat: tuple[HeatGrid, ...] = ()
    io: tuple[IoCurve, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    tallies: tuple[LogTally, ...] = ()
    confidence: float = 0.95
    log_rtt: bool = False
    command: str = ""
    notes: tuple[str, ...] = ()
    made: str = ""
    version: str = ""
