"""Analyses to draw: an infrastructure of twelve sites, and the bare ends of what there can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from farline.findings.infrastructure_finding import (
    Cause,
    Explanation,
    NextMeasurement,
    SiteRank,
)
from farline.models.model_choice import Candidate, Choice
from farline.plots.analysis_values import (
    AnalysisData,
    Comparison,
    HeatGrid,
    IoCurve,
    Line,
    LogTally,
    OddLine,
    PairRow,
    ProfileView,
    Region,
    Running,
    UseBar,
)
from farline.profiles.coefficients import Coefficients, Interval
from farline.profiles.throughput_profile import ThroughputProfile

Floats = NDArray[np.float64]

CAPACITY_BPS = 10e9
RTT_MS = (
    0.4, 2.1, 4.7, 8.3, 11.8, 15.0, 19.2, 22.6, 27.3, 31.0, 36.4, 41.1, 45.6, 51.8, 58.0, 63.7,
    70.2, 77.9, 84.4, 91.6, 105.0, 121.0, 140.0, 162.0, 183.0, 220.0, 280.0, 366.0,
)  # fmt: skip
"""28 round-trip times, as seven sites have them in Rao et al. 2018."""

SITES = ("ANL", "BNL", "CERN", "FNAL", "JLAB", "LBNL", "NCSA", "NERSC", "ORNL", "PNNL", "SLAC",
         "Round the earth")  # fmt: skip


@dataclass
class MadeModel:
    """A model that was fitted somewhere: capacity or a window over RTT, whichever is less."""

    window_bits: float = 9e11
    name: ClassVar[str] = "window"
    parameters_: int = 1

    def fit(self, rtt_ms: Any, rate_bps: Any, sample_weight: Any = None) -> Self:
        """As it is."""
        return self

    def predict(self, rtt_ms: Any) -> Floats:
        """Rates in bit/s."""
        times = np.asarray(rtt_ms, dtype=float)
        rates = self.window_bits / np.maximum(times, 1e-9)
        return np.asarray(np.minimum(0.97 * CAPACITY_BPS, rates), dtype=np.float64)

    def in_words(self) -> str:
        """In one line."""
        return "9.70 Gbit/s up to 92.8 ms, then a window of 107 MiB over RTT"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {"window_bits": self.window_bits}


def made_profile(
    rtt_ms: Sequence[float] = RTT_MS,
    level: float = 0.95,
    modality: str = "T",
    n: int = 10,
    label: str = "",
    seed: int = 1,
    capacity_bps: float | None = CAPACITY_BPS,
    points: bool = True,
) -> ThroughputProfile:
    """Rates that hold to about 90 ms and fall from there, with repeats that differ."""
    source = np.random.default_rng(seed)
    times = np.asarray(rtt_ms, dtype=float)
    shape = level * 10e9 * np.minimum(1.0, 95.0 / np.maximum(times, 95.0)) * (1 - 0.0006 * times)
    rates = np.maximum(1e6, shape[:, None] * (1 + 0.035 * source.standard_normal((len(times), n))))
    mean = rates.mean(axis=1)
    sd = rates.std(axis=1, ddof=1) if n > 1 else np.full(len(times), np.nan)
    kept = tuple(tuple(row) for row in rates.tolist()) if points else None
    return ThroughputProfile(
        times, mean, sd, np.full(len(times), float(n)), capacity_bps, label, modality,
        rates.min(axis=1), rates.max(axis=1), {0.5: np.median(rates, axis=1)}, kept, 2,
    )  # fmt: skip


def made_coefficients(
    profile: ThroughputProfile, warnings: tuple[str, ...] = ()
) -> Coefficients | None:
    """By the definitions of Rao et al. 2018, section 3.3, of at least two knots with a capacity."""
    if profile.capacity_bps is None or len(profile.rtt_ms) < 2:
        return None
    share, times = profile.mean_bps / profile.capacity_bps, profile.rtt_ms
    mean = float(np.trapezoid(share, times) / (times[-1] - times[0]))
    chord = float(share[0] + share[-1]) / 2

    def near(value: float) -> Interval:
        return Interval(value, value - 0.012, value + 0.012)

    return Coefficients(
        float(times[0]), float(times[-1]), profile.capacity_bps, float(share[0]), float(share[-1]),
        near(mean), near(chord), near(1 - mean), near(mean - chord),
        near(mean - chord / 2 + 0.25), 0.0, 0.0, 0.0, 0.95, warnings,
    )  # fmt: skip


def made_view(
    name: str, profile: ThroughputProfile, group: str = "", warnings: tuple[str, ...] = ()
) -> ProfileView:
    """With whiskers, coefficients and the running curve; the model is left to the caller."""
    found = made_coefficients(profile, warnings)
    half = 2.26 * profile.sd_bps / np.sqrt(profile.n)
    return ProfileView(
        name,
        profile,
        found,
        made_running(profile) if found is not None else None,
        group=group,
        mean_low_bps=profile.mean_bps - half,
        mean_high_bps=profile.mean_bps + half,
    )


def made_running(profile: ThroughputProfile) -> Running:
    """C_UC up to each knot with a band; at the first knot its limit."""
    share = profile.mean_bps / (profile.capacity_bps or 1.0)
    values = [share[0] / 2 + 0.25]
    for last in range(1, len(share)):
        times = profile.rtt_ms[: last + 1]
        mean = np.trapezoid(share[: last + 1], times) / (times[-1] - times[0])
        values.append(mean - (share[0] + share[last]) / 4 + 0.25)
    curve = np.asarray(values, dtype=float)
    return Running(profile.rtt_ms, curve, curve - 0.02, curve + 0.02)


def made_line(left_ms: float = 0.4, right_ms: float = 366.0, end_ms: float = 450.0) -> Line:
    """The model's curve, beyond what was measured too."""
    model = MadeModel()
    times = np.linspace(left_ms, end_ms, 200)
    return Line("window", times, model.predict(times), left_ms, right_ms, model.in_words())


def made_pairs(sites: Sequence[str] = SITES, modality: str = "T") -> tuple[PairRow, ...]:
    """All pairs but some; one in which everything failed."""
    source = np.random.default_rng(4)
    found = []
    for a, sender in enumerate(sites):
        for b, receiver in enumerate(sites):
            if a == b or (a * 7 + b) % 9 == 0:
                continue
            if (a, b) == (0, 1):
                found.append(
                    PairRow(sender, receiver, 12.0, 0, None, None, CAPACITY_BPS, 6, modality)
                )
                continue
            rate = float(source.uniform(0.5e9, 9.4e9))
            rtt = float(10 + 9 * abs(a - b))
            failed = 3 if (a, b) == (2, 3) else 0
            found.append(
                PairRow(sender, receiver, rtt, 10, rate, rate / 12, CAPACITY_BPS, failed, modality)
            )
    return tuple(found)


def made_explanation() -> Explanation:
    """Two causes, three sites, two next measurements."""
    return Explanation(
        "Windows hold back the long paths: beyond 93 ms every transfer stays at a window of "
        "107 MiB over RTT, which costs 1.94 Gbit/s on average.",
        (
            Cause(
                "window", "host", None, "all rates beyond 93 ms follow n W / RTT with W = 107 MiB",
                1.94e9, 0.41, 0.93,
                ("9 of 9 means beyond 93 ms lie within 4 % of W / RTT",
                 "the next best explanation, losses, is off by 31 %"),
                ("set net.ipv4.tcp_rmem to at least 458 MiB on the transfer hosts",
                 "use 5 streams until then"),
            ),
            Cause(
                "site", "file system", "NERSC", "to and from NERSC rates are 0.55 of the others'",
                0.42e9, 0.09, 0.61, ("22 of 22 pairs with NERSC are below the others",), (),
            ),
            Cause("well-used", "network", None, "short paths are full", 0.0, 0.0, 0.3),
        ),
        (
            SiteRank("NERSC", 220, 0.55, 0.51, 0.60, 0.42e9),
            SiteRank("BNL", 220, 0.97, None, None, 0.03e9),
            SiteRank("ANL", 210, 1.12, 1.05, 1.18, 0.0),
        ),
        (
            NextMeasurement(
                "Memory to memory with 1, 4 and 16 streams", ("ANL", "CERN"),
                "tells a window from losses", "farline profile cern --streams 1,4,16",
            ),
            NextMeasurement("Disk reads", ("NERSC",), "tells its disk from its host", None),
        ),
    )  # fmt: skip


def made_choice() -> Choice:
    """The window fits best, one model could not be fitted."""
    model = MadeModel()
    candidates = (
        Candidate(model, 0.031, "", 1),
        Candidate(MadeModel(5e11), None, "too few RTTs: 28 of 40 needed", 40),
    )
    return Choice(candidates, model, "Smallest error on RTTs left out one at a time.")


def made_bars() -> tuple[UseBar, ...]:
    """Eight, as in Rao et al. 2018, Fig. 2: with and without memory transfers, and one odd one."""
    found = []
    names = ("ESnet DTNs, Globus", "XDD, XFS", "XDD, Lustre", "GridFTP", "Petascale, 4 sites",
             "Globus, 5 sites", "LNet, 8 stripes", "Odd one")  # fmt: skip
    for index, name in enumerate(names):
        file = made_coefficients(made_profile(level=0.9 - 0.1 * index, modality="E"))
        network = made_coefficients(made_profile(level=0.95)) if index not in (0, 4, 5) else None
        if name == "Odd one":
            file, network = network, made_coefficients(made_profile(level=0.5))
        found.append(UseBar(name, file, network, "0.4 to 366 ms" if index == 0 else ""))
    return tuple(found)


def made_grids() -> tuple[HeatGrid, ...]:
    """Mean rates and C_UC over concurrency and parallelism; one empty cell, one that failed."""
    steps = ("1", "2", "4", "8", "16")
    rates = 1e9 * np.minimum(9.5, np.outer([1, 2, 4, 8, 16], [1, 1.3, 1.6, 1.8, 2.0]))
    rates[4, 4] = rates[0, 3] = np.nan
    scores = 0.25 + rates / 2e10
    count = np.where(np.isnan(rates), 0, 16)
    failed = frozenset({(4, 4)})
    labels = ("Concurrency", "Parallelism")
    return (
        HeatGrid("Mean throughput", *labels, steps, steps, rates, "bit/s", failed, count),
        HeatGrid("C_UC", *labels, steps, steps, scores, "", failed, count),
    )


def made_io() -> tuple[IoCurve, ...]:
    """Two file systems over processes."""
    counts = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    gpfs, lustre = 60e9 * counts / (counts + 6), 12e9 * counts / (counts + 2)
    n = np.full(6, 5.0)
    return (
        IoCurve("GPFS, write", "Processes", counts, gpfs, gpfs / 20, n),
        IoCurve("Lustre, write", "Processes", counts, lustre, lustre / 15, n, "H"),
    )


def made_comparisons() -> tuple[Comparison, ...]:
    """File over memory transfers, and memory less file transfers."""
    first = made_profile(modality="E", level=0.7, label="file to file", seed=5)
    second = made_profile(label="memory to memory")
    ratio = first.mean_bps / second.mean_bps
    score = made_coefficients(second)
    words = "Θ_E over Θ_T: what the transfer tool keeps of the network's throughput."
    return (
        Comparison("File transfer method", "ratio", first, second, first.rtt_ms, ratio,
                   ratio * 0.02, score, words),
        Comparison("Memory less file", "difference", second, first, first.rtt_ms,
                   second.mean_bps - first.mean_bps),
    )  # fmt: skip


def made_tallies() -> tuple[LogTally, ...]:
    """One log that is clean, one with lines that are none."""
    odd = (
        OddLine(17, "duration is negative: -3 s", "DATE=20260101 START=20260102 <script>"),
        OddLine(1042, "the line ends in the middle", "DATE=2026010"),
    )
    return (
        LogTally("iperf3-2026.json", "iperf3", 700, 700),
        LogTally("gridftp.log", "GridFTP", 1200, 1150, 31, 5, {"log level lines": 14}, odd),
    )


def made_analysis() -> AnalysisData:
    """Everything at once: the whole, twelve sites, two modalities."""
    warning = "the largest RTT weighs 0.0003 in C_UC: it is as good as ignored"
    whole = made_view("All sites", made_profile(), warnings=(warning,))
    model = MadeModel()
    bound = Line("n W / RTT", np.array(RTT_MS), model.predict(RTT_MS), 0.4, 366.0)
    whole = ProfileView(
        whole.name, whole.profile, whole.coefficients, whole.running, made_choice(), made_line(),
        (bound,), (Region(0.4, 100.0, "concave"), Region(100.0, 366.0, "convex")), "",
        whole.mean_low_bps, whole.mean_high_bps,
    )  # fmt: skip
    files = made_view("All sites, files", made_profile(level=0.6, modality="E", seed=9))
    sites = tuple(
        made_view(
            name, made_profile(RTT_MS[index % 5 :: 2], 0.55 + 0.035 * index, seed=index), "site"
        )
        for index, name in enumerate(SITES)
    )
    return AnalysisData(
        "Throughput of twelve sites",
        (whole, files, *sites),
        explanation=made_explanation(),
        pairs=made_pairs() + made_pairs(SITES[:5], "E"),
        bars=made_bars(),
        heat=made_grids(),
        io=made_io(),
        comparisons=made_comparisons(),
        tallies=made_tallies(),
        command="farline analyze report gridftp.log --infrastructure sites.toml -o out",
        notes=("Rates below 100 Mbit/s are left out, as asked.",),
        made="22 November 2026",
        version="0.5.0",
    )


def made_streams() -> AnalysisData:
    """Profiles for numbers of streams; smallest RTT 0, no explanation, no sites."""
    times = (0.0, *RTT_MS[::4])
    views = [
        made_view(
            f"{count} streams", made_profile(times, 0.3 + 0.06 * count, seed=count), "streams"
        )
        for count in (1, 2, 4, 8, 10)
    ]
    return AnalysisData("TCP by streams", tuple(views), log_rtt=True)


def made_single() -> AnalysisData:
    """One site, one RTT, one measurement, no capacity: the least there can be."""
    profile = made_profile((45.6,), n=1, capacity_bps=None)
    view = ProfileView("ANL to itself", profile)
    explanation = Explanation("", (), (), (), "one round-trip time tells no cause from another")
    return AnalysisData(
        "One measurement", (view,), explanation=explanation,
        pairs=(PairRow("ANL", "ANL", 45.6, 1, 5e9),),
    )  # fmt: skip


def made_empty() -> AnalysisData:
    """Nothing completed."""
    tallies = (LogTally("broken.log", "GridFTP", 3, 0, 3),)
    pairs = (PairRow("ANL", "BNL", None, 0, None, failed=3),)
    return AnalysisData("Nothing there", pairs=pairs, tallies=tallies)
