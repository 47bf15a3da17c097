"""Rao et al. 2018: throughput profiles, their coefficients, and infrastructures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from farline.models.model_choice import best_subset
from farline.plots.gallery import Curve, Picture
from farline.profiles.calculus import subset_error
from farline.profiles.throughput_profile import ThroughputProfile
from farline.reproduce.evidence import (
    Check,
    Evidence,
    above,
    below,
    between,
    equal,
    fact,
    larger,
    no_less,
)
from farline.reproduce.item import Item
from farline.reproduce.items.analytics_parts import (
    made_profile,
    profile_picture,
    profiles_of,
    roughness,
    running_curve,
)
from farline.reproduce.made_logs import PETASCALE, PRODUCTION
from farline.reproduce.measured import Measured, NotMeasured, profile_over_rtt, values_of

if TYPE_CHECKING:
    from farline.plots.data import CampaignData

PAPER = "Rao et al. 2018"
GUIDE = "docs/guide/analyze.md"
CONTROL, STREAMS, FILES, POINT, RTT = (
    "tcp.congestion_control", "streams", "files", "point", "path.rtt_s",
)  # fmt: skip
CC = "copy.concurrency"
GOLDEN: Mapping[str, tuple[Callable[[float], float], float, float]] = {
    "1": (lambda x: 1.0, 0.0, 0.75),
    "0": (lambda x: 0.0, 0.0, 0.25),
    "1 - x": (lambda x: 1 - x, 0.0, 0.5),
    "0.9 - 0.6 x": (lambda x: 0.9 - 0.6 * x, 0.0, 0.55),
    "quarter circle": (lambda x: math.sqrt(max(0.0, 1 - x * x)), 0.285398, 0.785398),
    "1 - x²": (lambda x: 1 - x * x, 0.166667, 0.666667),
    "1/(1 + 4x)": (lambda x: 1 / (1 + 4 * x), -0.197641, 0.352359),
    "1/(1 + 9x)": (lambda x: 1 / (1 + 9 * x), -0.294157, 0.230843),
    "exp(-3x)": (lambda x: math.exp(-3 * x), -0.208156, 0.304291),
    "4x(1 - x)": (lambda x: 4 * x * (1 - x), 0.666667, 0.916667),
}
"""Profiles over [0, 1] with C_CC and C_UC, worked out by hand."""
XDD_BPS, TCP_BPS = 200e6, 100e6
"""Capacities of the quick scale's lines; those of the full scale stand in the records."""


def coefficients(_: Measured) -> Evidence:
    """Fig. 9: the coefficients of profiles whose integrals are known."""
    places = np.linspace(0.0, 1.0, 2001)
    checks = []
    for name, (shape, c_cc, c_uc) in GOLDEN.items():
        found = made_profile(places, [shape(x) for x in places], 1.0).coefficients()
        checks.append(_near(f"C_UC of {name}", found.c_uc.value, c_uc, 2e-5))
        checks.append(_near(f"C_CC of {name}", found.c_cc.value, c_cc, 2e-5))
    measured = made_profile([0, 91.5, 183, 366], [10, 9, 8, 2], 10.0).coefficients()
    checks.append(_near("C_UC of 10, 9, 8, 2 at 0, 91.5, 183, 366 ms", measured.c_uc.value, 0.65,
                        1e-9))  # fmt: skip
    straight = made_profile([100, 300], [8, 4], 10.0).coefficients()
    checks.append(_near("Area above the chord of a straight profile", straight.area_cc, 0.0, 1e-9))
    return Evidence(
        checks,
        [_shapes_picture()],
        notes=["With the chord as it is printed, without τ - τ_L, the area of a straight profile"
               f" from 100 to 300 ms comes out as {straight.area_cc_printed:g} instead of 0.",
               "The value at the middle is called half of the chord's in the text; it is the"
               " chord's."],
    )  # fmt: skip


def _near(text: str, ours: float, known: float, within: float) -> Check:
    return Check(
        text, abs(ours - known) <= within, f"{round(ours, 6) + 0.0:.6f}", f"{known:g}", ours, within
    )


def _shapes_picture() -> Picture:
    places = [index / 40 for index in range(41)]
    curves = [
        Curve(name, places, [GOLDEN[name][0](x) for x in places])
        for name in ("quarter circle", "1 - x", "1/(1 + 4x)", "exp(-3x)")
    ]
    return Picture("fig-9", "Concave, straight and convex profiles", "Normalised RTT",
                   "Normalised throughput", curves)  # fmt: skip


def operators(_: Measured) -> Evidence:
    """Section 3.2: projection and difference."""
    whole = made_profile([0.4, 11.8, 45.6, 183, 366], [10, 9.5, 8, 5, 2], 10.0)
    other = made_profile([0.4, 22.6, 183, 366], [9, 8, 4, 1], 10.0)
    part = whole.evaluate([0.4, 45.6, 366])
    again = made_profile(part.rtt_ms, part.rate_bps, 10.0).evaluate([0.4, 45.6, 366])
    nothing = whole - whole
    between_both = whole - other
    wanted = float(whole(100.0)) - float(other(100.0))
    return Evidence(
        [
            fact("A projection of a projection is the same on its round-trip times",
                 bool(np.allclose(part.rate_bps, again.rate_bps)), "equal"),
            fact("The difference of a profile with itself is nothing",
                 bool(np.all(nothing.mean_bps == 0)), "0 at every round-trip time"),
            _near("A difference between two profiles at 100 ms", float(between_both(100.0)),
                  wanted, 1e-9),
        ],
        notes=["The text calls Θ_F both the difference T - E and the ratio E/T; farline has both"
               " under names of their own."],
    )  # fmt: skip


def infrastructure(_: Measured) -> Evidence:
    """Figs. 3 and 4, Table 1: sites, connections and their round-trip times."""
    from farline.testbeds import load

    preset = load("seven-sites")
    sites = sorted({host["name"].removesuffix("-2") for host in preset["hosts"]})
    delays = [2e3 * float(link["forward"]["delay_s"]) for link in preset["links"]]
    pairs = math.comb(len(sites), 2) + len(sites)
    return Evidence(
        [
            equal("Sites", float(len(sites)), 7),
            equal("Connections of seven sites, each with itself too", float(pairs), 28),
            equal("Links of the preset", float(len(preset["links"])), 28),
            equal("Largest round-trip time", max(delays), 366.0, 1e-6, "ms"),
            equal("Smallest", min(delays), 0.0, unit="ms"),
        ],
        notes=["Fig. 3 has six sites, the emulation seven, section 4.2 five; PNL and PNNL are one."
               " The numbers of data transfer nodes in Table 1 (12, 23, 9, 8) and their 100 Gb/s"
               " are properties of the sites: an infrastructure file (docs/guide/infrastructure.md)"
               " takes them."],
    )  # fmt: skip


def concave(measured: Measured) -> Evidence:
    """Fig. 1(a): file transfers with the file system out of the way have a concave profile."""
    data = measured.campaign("copy-xdd")
    profile = _xdd(data, 8, "buffered")
    found = profile.coefficients()
    budget = measured.budget("copy-xdd").whole
    return Evidence(
        [
            above("C_CC", found.c_cc.value, 0.0, budget, paper="concave"),
            above("Peak over the capacity", float(profile.mean_bps.max()) / _capacity(data), 0.8,
                  budget, "%", "about 10 of 10 Gb/s"),
        ],
        [profile_picture("fig-1a", "File transfers over 8 flows", [profile])],
        reason=f"C_CC is {found.c_cc.value:+.3f}: the start of a copy takes some round trips, and"
        " in files of this size they are a large part at the longest.",
    )  # fmt: skip


def convex(measured: Measured) -> Evidence:
    """Fig. 1(b): a window of fixed size makes the profile convex."""
    data = measured.campaign("tcp-window")
    profile = profile_over_rtt(data, {POINT: "LNet"}, TCP_BPS, "fixed window")
    found = profile.coefficients()
    at = {
        float(rtt): float(rate) for rtt, rate in zip(profile.rtt_ms, profile.mean_bps, strict=True)
    }
    products = [rate * rtt for rtt, rate in at.items() if rtt > 20]
    return Evidence(
        [
            below("C_CC", found.c_cc.value, 0.0, paper="convex"),
            between("Peak over the capacity", float(profile.mean_bps.max()) / TCP_BPS, 0.4, 0.5,
                    "%", "4.5 of 10 Gb/s"),
            below("Rate times round-trip time is a constant: the window", max(products)
                  / min(products), 1.25),
        ],
        [profile_picture("fig-1b", "A fixed window over the round-trip time", [profile])],
    )  # fmt: skip


def bars(measured: Measured) -> Evidence:
    """Fig. 2: C_UC of several configurations: files, what memory adds, what is left."""
    xdd, memory = measured.campaign("copy-xdd"), measured.campaign("xdd-memory")
    window = measured.campaign("tcp-window")
    rows: list[tuple[str, float, float]] = []
    for flows in (8, 4, 1):
        files = _xdd(xdd, flows, "direct").coefficients().c_uc.value
        tcp = profile_over_rtt(memory, {STREAMS: flows}, _capacity(memory), "TCP")
        rows.append((f"XDD, {flows} flows", files, tcp.coefficients().c_uc.value))
    lnet = profile_over_rtt(window, {POINT: "LNet"}, TCP_BPS, "LNet").coefficients()
    beside = profile_over_rtt(window, {POINT: "TCP"}, TCP_BPS, "TCP").coefficients()
    rows.append(("LNet", lnet.c_uc.value, beside.c_uc.value))
    production = profiles_of(PRODUCTION)["all"].coefficients().c_uc.value
    rows.append(("Production", production, production))
    rows.sort(key=lambda row: -row[1])
    names = [name for name, _, _ in rows]
    margin = measured.budget("copy-xdd", "xdd-memory", "tcp-window").whole
    curves = [
        Curve("files", names, [files for _, files, _ in rows]),
        Curve("memory adds", names, [max(0.0, tcp - files) for _, files, tcp in rows]),
        Curve("not used", names, [1 - max(files, tcp) for _, files, tcp in rows]),
    ]
    return Evidence(
        [
            fact("Files do not exceed memory in any configuration",
                 all(files <= tcp + margin for _, files, tcp in rows), f"{len(rows)} bars",
                 "green above blue"),
            fact("LNet is the worst", names[-1] == "LNet", names[-1], "LNet"),
            fact("Production is below 0.5", production < 0.5, f"{production:.3f}", "below 0.5"),
            fact("XDD is among the best", names[0].startswith("XDD"), names[0], "near-optimal"),
        ],
        [Picture("fig-2", "C_UC of configurations, best first", "Configuration", "C_UC", curves,
                 "words", bars=True, stacked=True)],
        notes=["The logs of production are made up, with the schema of those that are not public."],
        reason="Profiles over unlike round-trip times are not comparable by C_UC (docs/design/"
        "analytics.md).",
    )  # fmt: skip


def file_systems(measured: Measured) -> Evidence:
    """Fig. 5: rates of file systems over the number of processes."""
    trial = measured.trial("disks")
    writes = {place: {int(n): float(rates["write_bps"]) for n, rates in found.items()}
              for place, found in trial.items()}  # fmt: skip
    peaks = sorted((max(rates.values()), place) for place, rates in writes.items())
    slow = writes[peaks[0][1]]
    counts = sorted(slow)
    return Evidence(
        [
            larger("File systems differ in their peaks", peaks[-1][0], peaks[0][0], 0.3,
                   "60 and 12 Gb/s"),
            no_less("The slower has a ceiling that processes do not lift",
                    1.6 * slow[counts[1]], slow[counts[-1]], 0.2, "limited by disk"),
        ],
        [Picture("fig-5", "Writing by several processes at once", "Processes", "Gb/s",
                 [Curve(place, counts, [rates[n] / 1e9 for n in counts])
                  for place, rates in writes.items()], "log2")],
        notes=["The disk of this machine and its memory stand for OLCF's and ALCF's file systems."],
        reason="The rates of the slower file system scatter with what else uses the disk.",
    )  # fmt: skip


def tcp_versions(measured: Measured) -> Evidence:
    """Fig. 6: TCP over round-trip time, by congestion control and number of streams."""
    data = measured.campaign("tcp-rtt")
    budget = measured.budget("tcp-rtt").whole
    controls, counts = values_of(data, CONTROL), values_of(data, STREAMS)
    few, many = counts[0], counts[-1]
    at = {
        (c, n): profile_over_rtt(data, {CONTROL: c, STREAMS: n}, _capacity(data), f"{c}, {n}")
        for c in controls for n in counts
    }  # fmt: skip
    fall = {key: _fall(profile) for key, profile in at.items()}
    checks = [
        no_less(f"{c}: {many} streams are no slower than {few} at the longest",
                float(at[c, many].mean_bps[-1]), float(at[c, few].mean_bps[-1]), budget,
                "more streams, higher throughput")
        for c in controls
    ]  # fmt: skip
    checks += [
        no_less("BBR keeps most at the longest with one stream",
                float(at["bbr", few].mean_bps[-1]),
                max(float(at[c, few].mean_bps[-1]) for c in controls), budget, "outperforms"),
        below("BBR loses little with parallel streams", fall["bbr", many], 0.05, budget, "%",
              "less than 5 %"),
    ]  # fmt: skip
    if "htcp" in controls:
        checks.append(
            no_less("H-TCP loses no less than BBR", fall["htcp", many] + 0.05,
                    fall["bbr", many] + 0.05, budget, "more than 10 %")
        )  # fmt: skip
    return Evidence(
        checks,
        [profile_picture("fig-6", "TCP over the round-trip time", list(at.values()))],
        reason="Falls to the longest round-trip time: "
        + ", ".join(f"{c} with {n} {100 * value:.0f} %" for (c, n), value in fall.items())
        + ". Most of BBR's is the ramp: the paper's runs were longer.",
    )  # fmt: skip


def transfer_profiles(measured: Measured) -> Evidence:
    """Fig. 7: XDD tracks TCP; production is irregular."""
    data, memory = measured.campaign("copy-xdd"), measured.campaign("xdd-memory")
    budget = measured.budget("copy-xdd", "xdd-memory").whole
    files = _xdd(data, 8, "buffered")
    tcp = profile_over_rtt(memory, {STREAMS: 8}, _capacity(memory), "TCP, 8 streams")
    common = [rtt for rtt in files.rtt_ms if rtt in tcp.rtt_ms]
    ratios = [float(files(rtt)) / float(tcp(rtt)) for rtt in common]
    mean = sum(ratios) / len(ratios)
    rough = roughness(profiles_of(PETASCALE)["all"])
    smooth = roughness(files)
    return Evidence(
        [
            no_less("(a) Copies reach what TCP does, on average over the round-trip times", mean,
                    0.9, budget, "matches TCP throughput"),
            larger("(c) Production between unlike sites is rougher", rough, smooth, 0.2,
                   "irregular"),
        ],
        [profile_picture("fig-7a", "Copies over 8 flows, and TCP over 8 streams", [files, tcp]),
         profile_picture("fig-7c", "Made-up production", [profiles_of(PETASCALE)["all"]])],
        reason=f"Copies reach {100 * mean:.0f} % of TCP: names, checksums and the end of a copy"
        " take round trips of their own, in files of this size a visible part.",
        notes=["Fig. 7(b), GridFTP from Lustre, needs that file system's limits: not part of this"
               " check."],
    )  # fmt: skip


def few_knots(measured: Measured) -> Evidence:
    """Fig. 8: five round-trip times stand for eleven."""
    data = measured.campaign("tcp-rtt-clean")
    budget = measured.budget("tcp-rtt-clean").whole
    profile = profile_over_rtt(data, {}, _capacity(data), "11 RTTs")
    few = best_subset(profile.rtt_ms, profile.mean_bps, 5).rtt_ms
    miss = subset_error(profile, few)
    part = profile.evaluate(few)
    return Evidence(
        [
            equal("Round-trip times", float(len(profile)), 11),
            below("Largest gap of the profile through five of them", miss, 0.02, budget, "%",
                  "within 2 %"),
        ],
        [profile_picture(
            "fig-8", "A profile of eleven round-trip times, and of five",
            [profile, made_profile(part.rtt_ms, part.rate_bps, _capacity(data), "5 RTTs")])],
    )  # fmt: skip


def running_sites(measured: Measured) -> Evidence:
    """Fig. 10: C_UC over RTT of the infrastructure and of its sites, which are alike."""
    data, copies = measured.campaign("xdd-memory"), measured.campaign("copy-xdd")
    tcp = profile_over_rtt(data, {STREAMS: 8}, _capacity(data), "TCP")
    files = _xdd(copies, 8, "buffered")
    pictures, gaps, starts = [], [], []
    for name, profile in (("tcp", tcp), ("files", files), ("ratio", files / tcp)):
        parts = _site_parts(profile)
        curves = [running_curve(label, part) for label, part in parts.items()]
        pictures.append(Picture(f"fig-10-{name}", f"C_UC over RTT, {name}", "RTT (ms)", "C_UC",
                                curves))  # fmt: skip
        last = [float(part.running().c_uc[-1]) for part in parts.values()]
        gaps.append(max(last) - min(last))
        starts.append(float(profile.running().c_uc[0]))
    budget = measured.budget("copy-xdd", "xdd-memory").whole
    return Evidence(
        [
            below("Curves of the sites end near that of the infrastructure", max(gaps), 0.05,
                  budget, paper="closely match"),
            below("They start at 0.75 or below", max(starts[:2]), 0.75, 0.02, paper="0.75"),
        ],
        pictures,
        reason=f"The curves end up to {max(gaps):.3f} apart: a site has few round-trip times, and"
        " straight lines between them miss the curve.",
    )  # fmt: skip


def flows(measured: Measured) -> Evidence:
    """Fig. 11: C_UC of copies past and through the page cache over 1, 4 and 8 flows."""
    data = measured.campaign("copy-xdd")
    budget = measured.budget("copy-xdd").whole
    score = {(how, n): _xdd(data, n, how).coefficients().c_uc.value
             for how in ("direct", "buffered") for n in (1, 4, 8)}  # fmt: skip
    curves = [
        running_curve(f"{how}, {n} flows", _xdd(data, n, how))
        for how in ("direct", "buffered") for n in (1, 4, 8)
    ]  # fmt: skip
    best = max((1, 4, 8), key=lambda n: score["buffered", n])
    return Evidence(
        [
            no_less("Direct: 4 flows are no worse than 1", score["direct", 4], score["direct", 1],
                    budget, "improves with flows"),
            no_less("Direct: 8 flows are no worse than 4", score["direct", 8], score["direct", 4],
                    budget, "improves with flows"),
            no_less("Default: 4 flows are no worse than 8 and 1", score["buffered", 4],
                    score["buffered", best], budget, "4 flows are best"),
        ],
        [Picture("fig-11", "C_UC over RTT of copies", "RTT (ms)", "C_UC", curves)],
        reason=f"Through the page cache {best} flows are best here. The paper's file system was"
        " Lustre with two stripes, whose servers more flows disturb; a local cache is not.",
    )  # fmt: skip


def credits(measured: Measured) -> Evidence:
    """Fig. 12: C_UC over RTT of TCP, of copies over routers, and of their difference."""
    data = measured.campaign("tcp-window")
    tcp = profile_over_rtt(data, {POINT: "TCP"}, TCP_BPS, "TCP")
    files = profile_over_rtt(data, {POINT: "LNet"}, TCP_BPS, "LNet")
    run = files.running()
    early = float(run.c_uc[2])
    return Evidence(
        [
            below("C_UC of the copies, already at the third round-trip time", early, 0.4, 0.05,
                  paper="below 0.4 at lower RTTs"),
            below("and at the longest", float(run.c_uc[-1]), 0.4, paper="below 0.4"),
            larger("TCP without the limit is far above", float(tcp.running().c_uc[-1]),
                   float(run.c_uc[-1]), 0.2),
        ],
        [Picture("fig-12", "C_UC over RTT", "RTT (ms)", "C_UC",
                 [running_curve("TCP", tcp), running_curve("copies", files),
                  running_curve("difference", tcp - files)])],
    )  # fmt: skip


def concurrency(measured: Measured) -> Evidence:
    """Fig. 13: concurrency times parallelism of GridFTP."""
    data = measured.campaign("copy-gridftp")
    budget = measured.budget("copy-gridftp").whole
    ends = (values_of(data, CC)[0], values_of(data, CC)[-1])
    at = {
        (c, p): profile_over_rtt(data, {CC: c, STREAMS: p}, _capacity(data), f"CC {c}, P {p}", "E")
        for c in ends for p in (1, 16)
    }  # fmt: skip
    last = {key: float(profile.mean_bps[-1]) for key, profile in at.items()}
    low, high = ends
    falls = {key: _fall(profile) for key, profile in at.items()}
    return Evidence(
        [
            larger("16 files at once are faster than one (P = 1)", last[high, 1], last[low, 1],
                   budget, "much reduced throughput at CC = 1"),
            no_less("With one file at a time 16 streams are no slower than one at the longest",
                    last[low, 16], last[low, 1], budget, "significantly higher"),
            larger("One file over one stream falls more than 16 files", falls[low, 1] + 0.01,
                   falls[high, 1] + 0.01, 0.1, "precipitous drop"),
        ],
        [profile_picture("fig-13a", "GridFTP over the round-trip time", list(at.values())),
         Picture("fig-13b", "C_UC over RTT", "RTT (ms)", "C_UC",
                 [running_curve(profile.label, profile) for profile in at.values()])],
        reason="Falls: " + ", ".join(
            f"CC {c} P {p} {100 * value:.0f} %" for (c, p), value in falls.items()) + ".",
    )  # fmt: skip


def text_bbr(measured: Measured) -> Evidence:
    """Section 3.1: BBR loses less than 5 % at 366 ms, H-TCP more than 10 %."""
    data = measured.campaign("tcp-rtt")
    budget = measured.budget("tcp-rtt").whole
    many = values_of(data, STREAMS)[-1]
    fall = {
        c: _fall(profile_over_rtt(data, {CONTROL: c, STREAMS: many}, _capacity(data), c))
        for c in values_of(data, CONTROL)
    }
    if "htcp" not in fall:
        raise NotMeasured("H-TCP is not available here: farline testbed cc load htcp")
    return Evidence(
        [
            below("BBR's fall to the longest round-trip time", fall["bbr"], 0.05, budget, "%",
                  "less than 5 %"),
            above("H-TCP's fall", fall["htcp"], 0.10, budget, "%", "more than 10 %"),
        ],
        reason=f"BBR falls by {100 * fall['bbr']:.1f} %, H-TCP by {100 * fall['htcp']:.1f} %. Both"
        " depend on the losses of the path and on how long it is watched, which the paper does"
        " not state.",
    )  # fmt: skip


def _capacity(data: CampaignData) -> float:
    """Rate of the emulated line of a campaign."""
    return float(next(row["path.rate_bps"] for row in data.rows if row.get("path.rate_bps")))


def _xdd(data: CampaignData, flows: int, how: str) -> ThroughputProfile:
    where = {STREAMS: flows, FILES: how}
    return profile_over_rtt(data, where, _capacity(data), f"{how}, {flows} flows", "E")


def _fall(profile: ThroughputProfile) -> float:
    return 1 - float(profile.mean_bps[-1]) / float(profile.mean_bps[0])


_SITES = {
    "ANL": (0.0, 11.8, 22.6, 38.5, 45.6, 107.4, 354.2),
    "ORNL": (0.0, 11.8, 17.2, 47.3, 51.0, 110.0, 366.0),
    "LBNL": (0.0, 14.8, 45.6, 51.0, 63.8, 141.8, 315.0),
}
"""Round-trip times of three of the preset's sites, in ms."""


def _site_parts(profile: ThroughputProfile) -> dict[str, ThroughputProfile]:
    """The infrastructure and each site: the same hosts at the site's round-trip times.

    The round-trip times are those of the preset over the range of the profile.
    """
    first, last = float(profile.rtt_ms[0]), float(profile.rtt_ms[-1])
    parts = {"all": profile}
    for site, rtts in _SITES.items():
        inside = sorted({min(last, max(first, rtt * last / 366)) for rtt in rtts})
        found = profile.evaluate(inside)
        parts[site] = made_profile(found.rtt_ms, found.rate_bps, float(profile.capacity_bps or 1.0),
                                   site)  # fmt: skip
    return parts


_SHORT = (
    "A tenth of the paper's round-trip times at a lower rate: payload over rate and round-trip"
    " time, and observation over ramp, are as at the paper's times."
)


ITEMS = (
    Item("analytics-fig1a", PAPER, "Fig. 1(a)", "XDD over the round-trip time",
         "File transfers between identical hosts with fast disks have a concave profile near"
         " 10 Gb/s.", concave, ("copy-xdd",), _SHORT, guide=GUIDE),
    Item("analytics-fig1b", PAPER, "Fig. 1(b)", "copies over LNet routers",
         "A limit on what is in flight gives a convex profile with a peak of 4.5 Gb/s.", convex,
         ("tcp-window",), "A window of fixed size stands for the credits of the routers.",
         guide=GUIDE),
    Item("analytics-fig2", PAPER, "Fig. 2", "C_UC of several configurations",
         "Stacked bars from the best, ESnet and XDD, to the worst, LNet.", bars,
         ("copy-xdd", "xdd-memory", "tcp-window"), _SHORT, guide=GUIDE),
    Item("analytics-sites", PAPER, "Figs. 3 and 4, Table 1", "sites and connections",
         "Seven sites have 28 round-trip times, from 0 to 366 ms.", infrastructure,
         guide="docs/guide/infrastructure.md"),
    Item("analytics-fig5", PAPER, "Fig. 5", "file systems over processes",
         "File systems peak at 12 and 60 Gb/s; a disk's limit is not lifted by parallel streams.",
         file_systems, ("disks",), guide="docs/guide/infrastructure.md"),
    Item("analytics-fig6", PAPER, "Fig. 6", "TCP over the round-trip time",
         "More streams are higher in all cases; BBR is flattest.", tcp_versions, ("tcp-rtt",),
         _SHORT, guide="docs/guide/congestion-controls.md"),
    Item("analytics-fig7", PAPER, "Fig. 7", "profiles of file transfers",
         "XDD matches TCP; production profiles are irregular.", transfer_profiles,
         ("copy-xdd", "xdd-memory"), _SHORT, guide=GUIDE),
    Item("analytics-fig8", PAPER, "Fig. 8", "five round-trip times for eleven",
         "A profile with five round-trip times is within 2 % of that with eleven.", few_knots,
         ("tcp-rtt-clean",), _SHORT, guide=GUIDE),
    Item("analytics-fig9", PAPER, "Fig. 9", "coefficients",
         "C_CC is the area above the chord, C_UC joins it with the utilisation.", coefficients,
         guide=GUIDE),
    Item("analytics-fig10", PAPER, "Fig. 10", "C_UC over RTT by site",
         "Curves of sites with like hosts match that of the infrastructure.", running_sites,
         ("copy-xdd", "xdd-memory"), _SHORT + " Site curves are projections.", guide=GUIDE),
    Item("analytics-fig11", PAPER, "Fig. 11", "direct and default I/O",
         "With direct I/O more flows are better; with default I/O four are best.", flows,
         ("copy-xdd",), _SHORT, guide=GUIDE),
    Item("analytics-fig12", PAPER, "Fig. 12", "C_UC of copies over LNet",
         "C_UC of the copies is below 0.4 even at low round-trip times.", credits,
         ("tcp-window",), "As Fig. 1(b).", guide=GUIDE),
    Item("analytics-fig13", PAPER, "Fig. 13", "concurrency and parallelism of GridFTP",
         "CC = 1 is much slower than CC = 16; at CC = 1, P = 16 is much faster than P = 1.",
         concurrency, ("copy-gridftp",), "GridFTP itself between two emulated hosts.",
         guide="docs/guide/tools.md"),
    Item("analytics-operators", PAPER, "section 3.2", "projection and difference",
         "Projection gives the profile of a part, difference that of a tool.", operators,
         guide=GUIDE),
    Item("analytics-text-bbr", PAPER, "section 3.1, text", "BBR and H-TCP at 366 ms",
         "BBR loses less than 5 %, H-TCP more than 10 %.", text_bbr, ("tcp-rtt",), _SHORT,
         guide="docs/guide/congestion-controls.md"),
)  # fmt: skip
