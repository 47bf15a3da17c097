"""Yildirim and Kosar 2011, and its report to FutureGrid: streams, stripes and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from farline.errors import SpecError
from farline.models.end_to_end import EndToEnd, NodeCapacity, NodeSetting
from farline.models.stream_curves import FullSecondOrder, HackerCurve
from farline.models.stream_fit import fit_streams
from farline.plots.gallery import Curve, Picture
from farline.profiles.response import ResponsePoint
from farline.reproduce.budget import UNREPEATED, budget_of
from farline.reproduce.evidence import (
    Evidence,
    above,
    between,
    equal,
    fact,
    larger,
    no_less,
)
from farline.reproduce.item import Item
from farline.reproduce.measured import Measured, NotMeasured, curve_of, mean_at, values_of
from farline.reproduce.trials import COPY_NODES, NODE_NIC_BPS, NODES, PATH_BPS
from farline.tuning.nodes import NodeSearch

PAPER = "Yildirim and Kosar 2011"
GUIDE = "docs/guide/tune.md"
SIZES_GB = (2, 4, 8, 16)
PEAKS_GBPS: Mapping[int, float] = {2: 3.0, 4: 4.0, 8: 6.0, 16: 6.0}
"""Highest throughput over nodes for each size of sample."""
NIC_BPS = 100e6
NODES_ALIKE = 0.1
"""So much may twice the nodes gain where half of them fill the path already."""
NIC_FULL = 0.85
"""Payload over an interface's rate that counts as full: headers and the ramp take the rest."""
SINGLE, STREAM = "total_bytes", "streams"


def streams_of(index: int) -> Callable[[Measured], Evidence]:
    """The judge of the left side of a figure: the sample size by its place."""

    def judge(measured: Measured) -> Evidence:
        data = measured.campaign("end-to-end-streams")
        budget = measured.budget("end-to-end-streams").whole
        sizes = values_of(data, SINGLE)
        if len(sizes) <= index:
            raise NotMeasured(f"{data.name}: no sample of {SIZES_GB[index]} GB")
        size, counts = sizes[index], values_of(data, STREAM)
        ours = [mean_at(data, {SINGLE: size, STREAM: n}) for n in counts]
        fitted = fit_streams(counts, ours)
        # The fewest streams of those sampled within 7 % of the best: the paper's algorithm takes
        # the model's optimum, rounded to what was sampled.
        chosen = next(n for n, rate in zip(counts, ours, strict=True) if rate >= 0.93 * max(ours))
        curve = curve_of(data, STREAM, {SINGLE: size}, "here", scale=1e6)
        places = [1 + step / 4 for step in range(29)]
        model = Curve("fitted curve", places, [float(rate) / 1e6 for rate in fitted.rate(places)],
                      "model")  # fmt: skip
        return Evidence(
            [
                equal("Streams that are chosen", float(chosen), 4),
                above("At 8 streams the interface is full: sampling stops there",
                      ours[-1] / NIC_BPS, NIC_FULL, budget, "%", "NIC capacity reached"),
                between("One stream without tuning", ours[0] / NIC_BPS, 0.18, 0.30, "%",
                        "240 Mb/s of 1 Gb/s"),
                larger("Each doubling up to 4 gains", ours[2], ours[1], budget),
            ],
            [Picture("streams", f"Throughput over streams, samples as {SIZES_GB[index]} GB",
                     "Streams", "Mb/s", [curve, model], "log2")],
            reason=f"The fewest streams within 7 % of the best are {chosen} here.",
        )  # fmt: skip

    return judge


def _means(trial: Mapping[str, Sequence[float]]) -> dict[int, float]:
    """Mean rate by the number of nodes."""
    return {int(n): fmean(several) for n, several in trial.items()}


def nodes_of(index: int) -> Callable[[Measured], Evidence]:
    """The judge of the right side of a figure: throughput over nodes."""

    def judge(measured: Measured) -> Evidence:
        trial = measured.trial("nodes")
        sizes = sorted((name for name in trial if name != "default"), key=float)
        rates = _means(trial[sizes[index]])
        budget = budget_of([], [
            ResponsePoint({"nodes": int(n)}, tuple(several), (), fmean(several))
            for n, several in trial[sizes[index]].items()
        ]).repetition  # fmt: skip
        peak = max(rates.values())
        smaller = [max(_means(trial[size]).values()) for size in sizes[:index]]
        gain = peak / float(trial["default"])
        best = max(rates, key=lambda n: rates[n])
        curves = [
            Curve("here", [_label(n) for n in NODES], [rates[n] / 1e6 for n in NODES]),
            Curve("model", [_label(n) for n in NODES],
                  [_model().rate(NodeSetting(n, 1, 4)) / 1e6 for n in NODES], "model"),
        ]  # fmt: skip
        checks = [
            larger("More nodes are faster until the path is full", peak, rates[1], budget,
                   f"up to {PEAKS_GBPS[SIZES_GB[index]]:g} Gb/s"),
            no_less("16 nodes gain little over 8, which fill the path", rates[NODES[-2]],
                    rates[NODES[-1]], budget + NODES_ALIKE, "starts to decrease"),
            between("Nodes at the peak", best, 4, 16, paper="after 16 it falls"),
            above("All tuning together over the default", gain, 4.0, paper="25 times (16 GB)"),
        ]  # fmt: skip
        if smaller:
            checks.append(
                no_less("A larger sample peaks no lower", peak, max(smaller), budget,
                        "3, 4, 6, 6 Gb/s")
            )  # fmt: skip
        return Evidence(
            checks,
            [Picture("nodes", f"Throughput over nodes, samples as {SIZES_GB[index]} GB",
                     "Setting", "Mb/s", curves, "words")],
            reason=f"Peak {peak / 1e6:.3g} Mb/s at {best} nodes, {100 * peak / PATH_BPS:.0f} % of"
            f" the line and {gain:.3g} times the default; 8 nodes reach {rates[8] / 1e6:.3g} Mb/s."
            " The stripes share the line unequally, and a transfer ends with its slowest.",
        )  # fmt: skip

    return judge


def node_copies(measured: Measured) -> Evidence:
    """The judge of what farline does instead: parts that nodes take when they are ready."""
    trial = measured.trial("node-copies")
    rates = _means({name: several for name, several in trial.items() if name != "default"})
    peak, budget = max(rates.values()), UNREPEATED
    gain = peak / float(trial["default"])
    curve = Curve("farline copy", [_label(n) for n in COPY_NODES],
                  [rates[n] / 1e6 for n in COPY_NODES])  # fmt: skip
    return Evidence(
        [
            larger("8 nodes are faster than 4, whose interfaces are full", rates[8], rates[4],
                   budget, "up to 6 Gb/s"),
            no_less("16 nodes gain little over 8, which fill the path", rates[8], rates[16],
                    budget + NODES_ALIKE, "starts to decrease"),
            above("All tuning together over the default", gain, 10.0, paper="25 times (16 GB)"),
        ],
        [Picture("nodes", "Throughput over nodes, one file", "Setting", "Mb/s", [curve], "words")],
        reason=f"Peak {peak / 1e6:.3g} Mb/s, {100 * peak / PATH_BPS:.0f} % of the line and"
        f" {gain:.3g} times the default.",
    )  # fmt: skip


def labels(_: Measured) -> Evidence:
    """The labels of the axes, and why sampling stops."""
    settings = [NodeSetting(n, s, k) for n in NODES for s in (1, 6, 7) for k in (1, 4, 8)]
    back = [NodeSetting.of_label(setting.label) for setting in settings]
    model, search = _model(), NodeSearch(16, nic=NODE_NIC_BPS)
    while (setting := search.next()) is not None:
        search.learn(model.rate(setting))
    refused = 0
    for text in ("4stm-1str", "0stm-1str-1n-1str-1n", "4stm-1str-2n-1str-1n"):
        try:
            NodeSetting.of_label(text)
        except SpecError:
            refused += 1
    curve = FullSecondOrder.with_peak(750, 6, 3000)
    return Evidence(
        [
            fact("4stm-1str-1n-1str-1n is 4 streams in one stripe of one node",
                 NodeSetting(1, 1, 4).label == "4stm-1str-1n-1str-1n", NodeSetting(1, 1, 4).label),
            fact("Every label reads to the setting that it was written from", back == settings,
                 f"{len(settings)} labels"),
            fact("Invalid labels are refused", refused == 3, f"{refused} of 3"),
            fact("The search says why it stopped adding streams",
                 search.reasons.get("streams") == "cap:nic", str(search.reasons.get("streams")),
                 "NIC capacity reached"),
            fact("and nodes", search.reasons.get("nodes") in ("noise", "decline"),
                 str(search.reasons.get("nodes")), "starts to decrease"),
            equal("Peak of the full second order model with 750 Mb/s for one, 3000 at 6",
                  curve.peak_streams, 6.0, 1e-9, "streams"),
        ]
    )  # fmt: skip


def text_gain(_: Measured) -> Evidence:
    """From 240 Mb/s to 6 Gb/s."""
    return Evidence([equal("6 Gb/s over 240 Mb/s", 6000 / 240, 25.0, unit="times")])


def text_minimal(_: Measured) -> Evidence:
    """The fewest resources that reach the rate are chosen."""
    model, search = _model(), NodeSearch(16, nic=NODE_NIC_BPS)
    while (setting := search.next()) is not None:
        search.learn(model.rate(setting))
    best = max(sample.rate for sample in search.samples)
    answer = model.rate(search.answer)
    fewer = NodeSetting(max(1, search.answer.nodes // 2), 1, search.answer.streams)
    return Evidence(
        [
            no_less("The chosen setting is within 3 % of the best sample", answer, best, 0.03),
            larger("Half its nodes would be slower", answer, model.rate(fewer), 0.03,
                   "minimal number of end-system resources"),
            fact("It takes at most ten samples", len(search.samples) <= 10,
                 f"{len(search.samples)} samples"),
        ],
        notes=[f"Chosen on the model of this testbed: {search.answer.label}."],
    )  # fmt: skip


def _model() -> EndToEnd:
    """The testbed of the trial: interfaces, and a path that streams share."""
    node = NodeCapacity(nic=NODE_NIC_BPS)
    return EndToEnd(HackerCurve(0.24 * NODE_NIC_BPS, PATH_BPS), node, node)


def _label(nodes: int) -> str:
    return NodeSetting(nodes, 1, 4).label


ITEMS = (
    *(
        Item(f"e2e-fig{n}", PAPER, f"Fig. {n}, left", f"streams, samples of {SIZES_GB[n - 1]} GB",
             "Streams are doubled until the interfaces are full at 8; the model says 4.",
             streams_of(n - 1), ("end-to-end-streams",),
             "Interfaces of 100 Mb/s instead of 1 Gb/s over 20 ms; samples and the window of a"
             " stream as a share of what the path holds are as in the paper.", guide=GUIDE)
        for n in (1, 2, 3, 4)
    ),
    *(
        Item(f"e2e-fig{n}-nodes", PAPER, f"Fig. {n}, right",
             f"nodes, samples of {SIZES_GB[n - 1]} GB",
             "Nodes are doubled, 4 streams each, until throughput falls after 16; larger samples"
             " reach more.", nodes_of(n - 1), ("nodes",),
             "Sixteen nodes a side with interfaces of 10 Mb/s behind 60 Mb/s, six times one"
             " interface as the paper's 6 Gb/s are of its 1 Gb/s; iperf3 in place of GridFTP.",
             guide=GUIDE)
        for n in (1, 2, 3, 4)
    ),
    Item("e2e-nodes-farline", PAPER, "Figs. 1 to 4, right", "nodes, by farline copy",
         "Throughput rises with nodes to what the path holds and falls after it; with all tuning"
         " it is many times that of the default.", node_copies, ("node-copies",),
         "The same nodes and line carry one file by one copy: nodes take parts of it when they are"
         " ready, so that none waits for a slow stripe.", guide="docs/guide/nodes.md"),
    Item("e2e-labels", PAPER, "axes of Figs. 1 to 4", "labels and reasons to stop",
         "Settings are written as 4stm-1str-1n-1str-1n; sampling stops when a capacity is reached"
         " or throughput falls.", labels, guide=GUIDE),
    Item("e2e-text-gain", PAPER, "section 1, text", "gain over no optimisation",
         "240 Mb/s without optimisation, 6 Gb/s with it.", text_gain, guide=GUIDE),
    Item("e2e-text-minimal", PAPER, "abstract, text", "minimal resources",
         "Models find the least end-system resources that reach the throughput.", text_minimal,
         guide=GUIDE),
)  # fmt: skip
