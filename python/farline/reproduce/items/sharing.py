"""Yu et al. 2014: performance and fairness of GridFTP, FDT and UDT."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from farline.fairness.curve import ideal_rates
from farline.fairness.measures import jain
from farline.plots.gallery import Curve, Picture
from farline.reproduce.evidence import (
    Evidence,
    above,
    below,
    between,
    equal,
    fact,
    no_less,
    same,
)
from farline.reproduce.item import Item
from farline.reproduce.measured import Measured, NotMeasured, curve_of, mean_at, values_of

if TYPE_CHECKING:
    from farline.fairness.contest import Contest

PAPER = "Yu et al. 2014"
GUIDE = "docs/guide/fairness.md"
GOODPUT_GBPS = {"GridFTP": (1.3, 1.3, 5.0, 4.5), "FDT": (1.2, 1.2, 2.8, 4.5)}
"""Table 1: disk without and with jumbo frames, memory without and with them."""
POINT = "point"
FLOWS = "streams"


def setup(_: Measured) -> Evidence:
    """Fig. 1: the national path and the dumbbell, as presets."""
    from farline.testbeds import load

    path, dumbbell = load("long-path"), load("dumbbell")
    rtt_ms = 2e3 * float(path["links"][0]["forward"]["delay_s"])  # both directions are alike
    names = [host["name"] for host in dumbbell["hosts"]]
    rate = dumbbell["links"][0]["forward"].get("rate_bps")
    return Evidence(
        [
            equal("Round-trip time from Auckland to Wellington", rtt_ms, 9.59, 1e-6, "ms"),
            fact("The dumbbell has a source, a destination and a background generator at each end",
                 sorted(names) == sorted(["source", "sink", "background-source",
                                          "background-sink"]), f"{len(names)} hosts", "4 hosts"),
            fact("Two switches are joined by a router", len(dumbbell["routers"]) == 3,
                 ", ".join(dumbbell["routers"])),
            equal("The bottleneck", float(rate or 0) / 1e9, 10.0, unit="Gb/s"),
            above("Light in fibre takes no longer than that for 650 km each way", rtt_ms,
                  2 * 650 / 204.19, unit="ms", paper="650 km"),
        ],
        notes=["The three hops that the paper saw are one link in the preset: nothing is known of"
               " the routers in between."],
    )  # fmt: skip


def table_1(measured: Measured) -> Evidence:
    """Table 1: goodput from disk and from memory, with and without jumbo frames."""
    jumbo, plain = (measured.campaign(f"copy-flows-{name}") for name in ("jumbo", "standard"))
    budget = measured.budget("copy-flows-jumbo", "copy-flows-standard").whole
    rows = ("disk, TCP", "disk, UDT", "memory, TCP, 1 flow", "memory, UDT")
    ours = {(name, data): mean_at(data_of, {POINT: name}) for name in rows
            for data, data_of in (("jumbo", jumbo), ("standard", plain))}  # fmt: skip
    disk = [ours[name, mtu] for name in rows[:2] for mtu in ("jumbo", "standard")]
    curves = [
        Curve(f"MTU {mtu}", rows, [ours[name, key] / 1e9 for name in rows])
        for mtu, key in ((1500, "standard"), (9000, "jumbo"))
    ]
    curves.append(Curve("GridFTP, no jumbo", (rows[0], rows[2]), (1.3, 5.0), "paper"))
    spread = max(disk) / min(disk)
    return Evidence(
        [
            no_less("Memory is at least as fast as disk over TCP", ours[rows[2], "jumbo"],
                    ours[rows[0], "jumbo"], budget, "4.5 and 1.3 Gb/s"),
            no_less("and over UDT", ours[rows[3], "jumbo"], ours[rows[1], "jumbo"], budget),
            no_less("Jumbo frames do not make memory transfers slower", ours[rows[2], "jumbo"],
                    ours[rows[2], "standard"], budget, "helps where packets cost much"),
            below("From disk all are near to each other: the disk is the limit", spread,
                  1.5 + 2 * budget, paper="1.2 to 1.3 Gb/s"),
        ],
        [Picture("table-1", "Goodput of one flow", "Data", "Gb/s", curves, "words", bars=True)],
        reason=f"The disk here is not the limit: its rows differ by {spread:.2f}, as the protocols"
        " do. The paper's disks gave 1.3 Gb/s, a quarter of its network.",
        notes=["Jumbo frames raise FDT from 2.8 to 4.5 Gb/s in the table, which is 61 %; the text"
               " says about 40 %."],
    )  # fmt: skip


def parallel_flows(measured: Measured) -> Evidence:
    """Fig. 2: goodput over parallel flows with nobody else on the path."""
    data = measured.campaign("tools-flows")
    budget = max(0.05, measured.budget("tools-flows").whole)
    tools, counts = values_of(data, "tool"), values_of(data, FLOWS)
    checks, curves = [], []
    for tool in tools:
        rates = {n: mean_at(data, {"tool": tool, FLOWS: n}) for n in counts}
        slope = (rates[counts[-1]] - rates[counts[0]]) / rates[counts[0]]
        checks.append(
            between(f"{tool}: gain from {counts[0]} flow to {counts[-1]}", slope, -2 * budget,
                    2 * budget, "%", "not significantly")
        )  # fmt: skip
        curves.append(curve_of(data, FLOWS, {"tool": tool}, str(tool), scale=1e6))
    firsts = [mean_at(data, {"tool": tool, FLOWS: counts[0]}) for tool in tools]
    checks.append(same("All tools are alike with one flow", max(firsts), min(firsts), 2 * budget,
                       "GridFTP and FDT perform similarly"))  # fmt: skip
    return Evidence(
        checks,
        [Picture("fig-2", "Goodput over parallel flows", "Flows", "Mb/s", curves)],
        reason="The ramp of one flow takes a part of a short run that several share; a longer run"
        " takes it away (--scale full).",
    )


def background(measured: Measured) -> Evidence:
    """Fig. 3: throughput of a transfer and of its background over the applied load."""
    outcome = measured.contention("fairness-dumbbell")
    if "tcp" not in outcome.contests:
        raise NotMeasured("fairness-dumbbell: no repetition of TCP is whole")
    tcp, udt = outcome.contests["tcp"], outcome.contests.get("udt")
    capacity = outcome.capacity_bps
    full, knee = tcp.full, tcp.knee
    noise = 0.1
    falls = [point.mean("subject_bps") or 0.0 for point in tcp.points]
    checks = [
        fact("The transfer gives way as the background grows",
             all(b <= a + noise * capacity for a, b in itertools.pairwise(falls)),
             f"{falls[0] / 1e6:.3g} to {falls[-1] / 1e6:.3g} Mb/s", "decreased at an equal rate"),
        between("Both flatten out where the background applies this part of the line",
                knee.load_bps / capacity if knee else 0.0, 0.35, 0.7, "%", "6 of 10 Gb/s"),
        between("What the transfer keeps at full load, of its fair share",
                full.mean("share") or 0.0, 0.75, 1.25, "%", "an equilibrium"),
        above("Both together use the line", min(p.mean("utilisation") or 0 for p in tcp.points),
              0.9, 0.05, "%"),
    ]  # fmt: skip
    if udt is not None:
        alone = udt.alone_bps.mean / capacity
        checks.append(
            fact("UDT's own control leaves a part of the line unused alone or beside small load",
                 alone < 0.95 or (udt.points[0].mean("utilisation") or 1.0) < 0.95,
                 f"{100 * alone:.3g} % alone", "did not utilise the maximum link capacity")
        )  # fmt: skip
    return Evidence(
        checks,
        [_shares_picture(tcp, "tcp", capacity),
         *([_shares_picture(udt, "udt", capacity)] if udt is not None else [])],
        reason="One repetition of 6 s a load: a loss just before the window moves a point by 10 %.",
        instead="`farline fairness` also says by how much a transfer harms the background: RBUDP,"
        " which the paper does not have, leaves it "
        + _rbudp_harm(outcome.contests.get("rbudp")),
    )  # fmt: skip


def _rbudp_harm(contest: Contest | None) -> str:
    if contest is None:
        return "next to nothing."
    harm = contest.full.mean("harm") or 0.0
    return f"{100 * (1 - harm):.0f} % of what it had alone at full load."


def _shares_picture(contest: Contest, name: str, capacity: float) -> Picture:
    loads = [point.load_bps / 1e6 for point in contest.points]
    ideal = [ideal_rates(load * 1e6, capacity, 1, 1) for load in loads]
    curves = [
        Curve("transfer", loads, [(p.mean("subject_bps") or 0) / 1e6 for p in contest.points]),
        Curve("background", loads,
              [(p.mean("background_bps") or 0) / 1e6 for p in contest.points]),
        Curve("fair share, transfer", loads, [rate[0] / 1e6 for rate in ideal], "model"),
        Curve("fair share, background", loads, [rate[1] / 1e6 for rate in ideal], "model"),
    ]  # fmt: skip
    caption = f"Throughput of {name.upper()} and of its background over the applied load"
    return Picture(f"fig-3-{name}", caption, "Applied background (Mb/s)", "Mb/s", curves)


def text_ideal(_: Measured) -> Evidence:
    """Section 3.2: where an equilibrium of two flows is."""
    rates = [ideal_rates(load * 1e9, 10e9, 1, 1) for load in range(1, 11)]
    knee = next(load for load, rate in enumerate(rates, 1) if rate[0] <= 5e9)
    return Evidence(
        [
            equal("The background at which equal sharers reach it, of 10 Gb/s", knee, 6.0, 0.2,
                  "Gb/s"),
            equal("Jain's index at a background of 1 Gb/s",
                  jain([rates[0][0], rates[0][1]]), 0.609756, 1e-5),
        ],
        notes=["Ideal is 5 Gb/s; the paper, which has a point each 1 Gb/s, sees both curves flat"
               " from 6 on. Jain's index of raw rates is low where the background asks for little;"
               " over max-min fair shares it is 1 on the whole curve."],
    )  # fmt: skip


def text_jumbo(_: Measured) -> Evidence:
    """Section 3.1: jumbo frames improved FDT by about 40 %."""
    before, after = GOODPUT_GBPS["FDT"][2:]
    return Evidence(
        [equal("Gain of FDT by jumbo frames", after / before - 1, 0.40, 0.1, "%")],
        reason=f"Table 1 has 2.8 and 4.5 Gb/s: {100 * (after / before - 1):.0f} % more. 38 % is the"
        " difference relative to the larger figure.",
    )


def text_recommended(_: Measured) -> Evidence:
    """Abstract: GridFTP with jumbo frames provides fast transfers."""
    plain, jumbo = GOODPUT_GBPS["GridFTP"][2:]
    return Evidence(
        [fact("Table 1 has GridFTP from memory faster with jumbo frames", jumbo > plain,
              f"{plain:g} Gb/s without, {jumbo:g} with", "GridFTP with jumbo frames is fast")],
        reason="In Table 1 jumbo frames make GridFTP slower, 5.0 to 4.5 Gb/s, and change nothing"
        " from disk.",
    )  # fmt: skip


ITEMS = (
    Item("fairness-fig1", PAPER, "Fig. 1", "the two networks",
         "Auckland to Wellington, 650 km, 9.59 ms; a dumbbell of four hosts, two switches and a"
         " router.", setup, guide="docs/guide/testbed.md"),
    Item("fairness-table1", PAPER, "Table 1", "goodput of one flow from disk and from memory",
         "From disk all tools reach 1.2 to 1.3 Gb/s; from memory 2.8 to 5.0.", table_1,
         ("copy-flows-jumbo", "copy-flows-standard"),
         "farline's TCP and UDT stand for GridFTP, FDT and UDT, a file of zeros on the disk of this"
         " machine for theirs, and no disk at all for /dev/zero.", guide="docs/guide/copy.md"),
    Item("fairness-fig2", PAPER, "Fig. 2", "goodput over parallel flows",
         "Parallel flows do not improve goodput significantly on an idle path.", parallel_flows,
         ("tools-flows",), "A lower rate, so that no CPU is the limit; GridFTP itself, iperf3 and"
         " farline; FDT is in no package.", guide="docs/guide/tools.md"),
    Item("fairness-fig3", PAPER, "Fig. 3", "a transfer beside background traffic",
         "GridFTP and FDT give way until both flatten out at 6 Gb/s of background; UDT does not"
         " use the line fully.", background, ("fairness-dumbbell",),
         "100 Mb/s instead of 10 Gb/s, a queue of as many packets per round trip; one CUBIC flow"
         " for GridFTP and FDT.", guide=GUIDE),
    Item("fairness-text-equilibrium", PAPER, "section 3.2, text", "where the equilibrium is",
         "At 6 Gb/s of background throughputs of transfer and background flatten out.", text_ideal,
         guide=GUIDE),
    Item("fairness-text-jumbo", PAPER, "section 3.1, text", "jumbo frames and FDT",
         "Jumbo frames improved FDT's goodput by about 40 %.", text_jumbo, guide=GUIDE),
    Item("fairness-text-gridftp", PAPER, "abstract, text", "GridFTP with jumbo frames",
         "GridFTP with jumbo frames provides fast data transfers.", text_recommended, guide=GUIDE),
)  # fmt: skip
