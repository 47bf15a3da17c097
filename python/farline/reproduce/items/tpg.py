"""Yun et al. 2015: the Transport Profile Generator and its profiles of UDT."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from farline.plots.gallery import Curve, Picture
from farline.reproduce.evidence import (
    Evidence,
    above,
    below,
    equal,
    fact,
    larger,
    no_less,
)
from farline.reproduce.item import Item
from farline.reproduce.measured import Measured, curve_of, mean_at, points_at, values_of
from farline.reproduce.seconds import rates_bps

if TYPE_CHECKING:
    from farline.plots.data import CampaignData

PAPER = "Yun et al. 2015"
GUIDE = "docs/guide/udt.md"
CONTROL, BLOCK, PACKET, BUFFERS = (
    "udt.congestion_control", "block_bytes", "udt.packet_bytes", "buffers_bytes",
)  # fmt: skip
SEND, RECEIVE = "send_buffers_bytes", "receive_buffers_bytes"
TABLE_MBPS = dict(enumerate((450, 1762, 2487, 2584, 2810, 2847, 7216, 8713, 6300, 6536), 1))
"""Table I: throughput of each experiment in Mb/s."""
KIB = 1024

_HERE = (
    "Two network namespaces of one machine stand for the two workstations, an emulated cable of"
    " 10 Gb/s for theirs. "
)
_FILLED = (
    "farline joins blocks into full packets and hands many of them to the kernel in one call, so"
    " that a block that ends inside a packet costs neither a short packet nor an ACK of its own."
)
STEPS = (
    "CTRL_CHAN_EST", "HANDSHAKE", "CREATE_STREAMS", "PROFILING_START", "PROFILING_END",
    "EXCHANGE_PROFILE", "TPG_DONE",
)  # fmt: skip
OPTIONS = {
    "-t": ("--transport", "transport"),
    "-l": ("--block", "block_bytes"), "-P": ("-P", "streams"),
    "-w": ("-w", "tcp.send_buffer_bytes"), "-f": ("--send-buffer", "udt.send_buffer_bytes"),
    "-F": ("--udp-send-buffer", "udt.udp_send_buffer_bytes"),
    "-r": ("--receive-buffer", "udt.receive_buffer_bytes"),
    "-R": ("--udp-receive-buffer", "udt.udp_receive_buffer_bytes"),
    "-M": ("--udt-packet", "udt.packet_bytes"), "-m": ("--pair", "pairs"),
    "-a": ("--client-cpus", "client_cpus"), "-B": ("--rate", "rate_bps"),
}  # fmt: skip
"""TPG's options in the paper's section IV.A: farline's flag and the field of a record."""
VALUES: Mapping[str, Any] = {
    "transport": "udt", "block_bytes": 65536, "streams": 3, "tcp.send_buffer_bytes": 262144,
    "udt.send_buffer_bytes": 4194304, "udt.udp_send_buffer_bytes": 1048576,
    "udt.receive_buffer_bytes": 4194304, "udt.udp_receive_buffer_bytes": 1048576,
    "udt.packet_bytes": 8972, "client_cpus": [0], "rate_bps": 5_000_000,
    "pairs": [{"source": "10.77.0.1", "destination": "10.77.0.2"}],
}  # fmt: skip


def over_time(measured: Measured) -> Evidence:
    """Fig. 1: throughput over time with blocks of several sizes, all else as UDT has it."""
    data = measured.campaign("tpg-table1")
    budget = measured.budget("tpg-table1").whole
    points = (1, 2, 3, 4)
    control = "bbr"
    means = {n: mean_at(data, {"point": n, CONTROL: control}) for n in points}
    curves = []
    for number in points:
        run = points_at(data, {"point": number, CONTROL: control})[0].run_ids[0]
        places, rates = rates_bps(data.samples[run], 0.25)
        curves.append(Curve(f"experiment {number}", places, [rate / 1e9 for rate in rates]))
    return Evidence(
        [larger("The largest block is faster on average than one of 1455 bytes",
                max(means[3], means[4]), means[1], budget, "more than 4 times on average")],
        [Picture("fig-1", "Throughput over time, blocks of 1455, 8955, 65536 and 89559 bytes",
                 "Time (s)", "Gb/s", curves)],
        reason=f"{_FILLED} Blocks of 89559 bytes reached {means[4] / means[1]:.2f} times the rate"
        " of those of 1455, which is within what repeated runs differ by.",
        instead=_FILLED,
    )  # fmt: skip


def tiny_blocks(measured: Measured) -> Evidence:
    """Section I: a larger block gives more than four times the throughput."""
    data = measured.campaign("tpg-tiny-blocks")
    blocks = values_of(data, BLOCK)
    rates = [mean_at(data, {BLOCK: block}) for block in blocks]
    gain = max(rates) / rates[0]
    calls = rates[0] / 8 / blocks[0]
    return Evidence(
        [above("The best block over the smallest", gain, 4.0, paper="more than 4 times")],
        [Picture("blocks", "Average throughput over the block size, packets of 1472 bytes",
                 "Block (bytes)", "Gb/s", [curve_of(data, BLOCK, {}, "here")], "log2")],
        reason=f"The gain was {gain:.2f}.",
        instead=_FILLED,
        notes=[f"A host of today passed {calls / 1e6:.2f} million blocks per second; the paper's"
               " passed 39 thousand of 1455 bytes. A block that is to cost as much of the time is"
               " smaller by that."],
    )  # fmt: skip


def components(measured: Measured) -> Evidence:
    """Fig. 2: what may limit a transfer is in the record of each run."""
    record = measured.trial("session")["record"]
    stream = record["streams"][0]
    granted, host = stream["granted"], record["client"]["host"]
    known: Mapping[str, Any] = {
        "packet size": granted.get("packet_bytes"),
        "block size": record["spec"].get("block_bytes"),
        "send buffer": granted.get("send_buffer_bytes"),
        "receive buffer": granted.get("receive_buffer_bytes"),
        "number of streams": record["spec"].get("streams"),
        "congestion control": granted.get("congestion_control"),
        "MTU of the interfaces": host["interfaces"][0].get("mtu_bytes"),
        "round-trip time": stream.get("min_rtt_us"),
        "CPU time of each thread": stream.get("thread_cpu_us"),
        "CPU model": host["cpu"].get("model"),
        "memory": host.get("memory_bytes"),
        "kernel limits on buffers": host["sysctls"].get("net.core.rmem_max"),
        "offloads of the interfaces": host["interfaces"][0].get("offloads"),
        "the other end's host": (record.get("server") or {}).get("host"),
    }
    return Evidence(
        [fact(f"The record has the {name}", value is not None,
              "recorded" if value is not None else "missing") for name, value in known.items()]
    )  # fmt: skip


def steps(measured: Measured) -> Evidence:
    """Fig. 3: the thirteen steps of the control channel, errors, and the next cycle."""
    trial = measured.trial("session")
    stages = list(trial["stages"])
    return Evidence(
        [
            fact("The client passes the states of the paper in their order", stages == list(STEPS),
                 f"{len(stages)} states in order", "7 states, 13 steps"),
            fact("Both ends have exchanged their profiles",
                 bool(trial["record"].get("client") and trial["record"].get("server")), "yes",
                 "step 13"),
            fact("An error reaches the other end as one message", bool(trial["failure"]),
                 trial["failure"] or "no message", "an error message before it exits"),
            fact("The server is ready for the next cycle after it", trial["again"] == "complete",
                 str(trial["again"]), "reset for the next cycle"),
        ],
        notes=["docs/design/session.md has the tables of both ends; a test compares them with the"
               " code, and the machine is fuzzed with errors in every state."],
    )  # fmt: skip


def lanes(measured: Measured) -> Evidence:
    """Fig. 4: one control channel, a data channel for each pair of interfaces."""
    data = measured.campaign("tpg-lanes")
    record = json.loads(data.rows[0]["record"])
    senders = [s for s in record["streams"] if s["role"] == 0]
    ends = [(s["granted"]["local"].rpartition(":")[0], s["granted"]["remote"].rpartition(":")[0])
            for s in senders]  # fmt: skip
    wanted = [("10.77.0.1", "10.77.0.2"), ("10.77.0.3", "10.77.0.4")]
    moved = [float(s["bytes"]) for s in senders]
    return Evidence(
        [
            fact("Stream i is bound to pair i", ends == wanted,
                 "; ".join(f"{a} to {b}" for a, b in ends), "a pair of addresses each"),
            fact("Each pair carries a stream of its own", len(set(ends)) == 2 and min(moved) > 0,
                 " and ".join(f"{value / 1e6:.1f} MB" for value in moved)),
        ]
    )  # fmt: skip


def options(_: Measured) -> Evidence:
    """Section IV.A: TPG's options, and that each reaches the specification of a run."""
    from farline.tools.native import resolve_spec

    checks = []
    for letter, (flag, field) in OPTIONS.items():
        spec = resolve_spec(_nested(field, VALUES[field]))
        value = _at(spec, field)
        checks.append(
            fact(f"TPG's {letter} is {flag} and stands in the record as {field}",
                 value == VALUES[field], f"{field} = {value}")
        )  # fmt: skip
    return Evidence(
        checks, notes=["TPG's -s is the command farline serve, its -c the argument HOST."]
    )


def packet_size(measured: Measured) -> Evidence:
    """Fig. 5: average throughput over the packet size."""
    data = measured.campaign("tpg-packet-size")
    budget = measured.budget("tpg-packet-size").whole
    sizes, buffers = values_of(data, PACKET), values_of(data, BUFFERS)
    ours = {b: [mean_at(data, {PACKET: size, BUFFERS: b}) for size in sizes] for b in buffers}
    best = max(buffers, key=lambda b: ours[b][-1])
    return Evidence(
        [
            no_less("Packets of the path's MTU are as fast as any (best buffer)", ours[best][-1],
                    max(ours[best]), budget, "best at the largest MTU"),
            no_less("Packets of 8972 bytes are faster than those of 1472", ours[best][-1],
                    1.03 * ours[best][0], budget, "larger is faster"),
            equal("The bandwidth-delay product of the cable", 10e9 * 0.04e-3 / 8 / 1e3, 50.0,
                  unit="kB"),
        ],
        [Picture("fig-5", "Average throughput over the packet size", "Packet (bytes)", "Gb/s",
                 [curve_of(data, PACKET, {BUFFERS: b}, f"{b // KIB} KiB") for b in buffers])],
        reason=_noise(budget),
        instead="Many packets go to the kernel in one call, so that small ones cost little.",
    )  # fmt: skip


def block_size(measured: Measured) -> Evidence:
    """Fig. 6: average throughput over the block size, for limited and ample buffers."""
    data = measured.campaign("tpg-block-size")
    budget = measured.budget("tpg-block-size").whole
    blocks, buffers = values_of(data, BLOCK), values_of(data, BUFFERS)
    ours = {b: {k: mean_at(data, {BLOCK: k, BUFFERS: b}) for k in blocks} for b in buffers}
    low, ample = ours[buffers[0]], ours[buffers[1]]
    peaks = {b: max(ours[b].values()) for b in buffers}
    ample_peak = max(peaks[buffers[1]], peaks[buffers[2]])
    return Evidence(
        [
            below("A buffer of 128 KiB holds the peak below 7 Gb/s", peaks[buffers[0]] / 1e9, 7.0,
                  unit="Gb/s", paper="less than 7 Gb/s"),
            no_less("With 128 KiB a block larger than the buffer is not faster",
                    low[blocks[-2]], low[blocks[-1]], budget, "drastically decreases"),
            no_less("With 1 MiB larger blocks are no slower", ample[blocks[-1]], ample[blocks[0]],
                    budget, "increases, less and less"),
            no_less("Buffers of 1 to 4 MiB peak at least as high as 128 KiB", ample_peak,
                    peaks[buffers[0]], budget),
            no_less("A buffer of 64 MiB peaks no higher than 1 to 4 MiB", ample_peak,
                    peaks[buffers[-1]], budget, "the peak decreases further"),
            equal("Blocks of 107471 and 179119 bytes are n = 12 and 20 payloads less a byte",
                  (107471 + 1) / 8956 + (179119 + 1) / 8956, 32),
        ],
        [Picture("fig-6", "Average throughput over the block size (n payloads of 8956 bytes)",
                 "n", "Gb/s", [curve_of(data, BLOCK, {BUFFERS: b}, f"{b // KIB} KiB",
                                        x_scale=8956.0) for b in buffers])],
        reason=_noise(budget),
        instead="A block that does not fit into the buffer is handed over piece by piece, where"
        " libudt's sender waits until the whole fits: nothing falls at n = 15.",
    )  # fmt: skip


def buffer_size(measured: Measured) -> Evidence:
    """Fig. 7: average throughput over send and receive buffers."""
    data = measured.campaign("tpg-buffers")
    budget = measured.budget("tpg-buffers").whole
    sends, receives = values_of(data, SEND), values_of(data, RECEIVE)
    at = {(s, r): mean_at(data, {SEND: s, RECEIVE: r}) for s in sends for r in receives}
    (s0, s1, s2), r0, r2 = sends[:3], receives[0], receives[-1]
    gain = {s: at[s, r2] / at[s, r0] for s in sends}
    return Evidence(
        [
            larger("A send buffer of 1 MiB is faster than one of 128 KiB (ample receive buffer)",
                   at[s1, r2], at[s0, r2], budget, "a significant improvement up to 2^10 KB"),
            no_less("With a small receive buffer 64 MiB to send is not faster than 1 MiB",
                    at[s1, r0], at[s2, r0], budget, "drastically decreases"),
            no_less("With a large receive buffer 64 MiB to send stays near 1 MiB",
                    at[s2, r2], 0.5 * at[s1, r2], budget, "decreases, then stable at 6 Gb/s"),
            no_less("A larger receive buffer does not hurt", at[s1, r2], at[s1, r0], budget),
            no_less("With a small send buffer it gains no more than with a large one", gain[s2],
                    gain[s0], budget, "no obvious effect"),
        ],
        [
            Picture("fig-7-send", "Average throughput over the send buffers", "log2 KiB", "Gb/s",
                    [_logged(curve_of(data, SEND, {RECEIVE: r}, f"receive {r // KIB} KiB"))
                     for r in receives]),
            Picture("fig-7-receive", "Average throughput over the receive buffers", "log2 KiB",
                    "Gb/s", [_logged(curve_of(data, RECEIVE, {SEND: s}, f"send {s // KIB} KiB"))
                             for s in sends]),
        ],
        reason=_noise(budget),
    )  # fmt: skip


def streams(measured: Measured) -> Evidence:
    """Fig. 8: aggregate throughput over the number of parallel streams."""
    data = measured.campaign("tpg-streams")
    budget = measured.budget("tpg-streams").whole
    counts = values_of(data, "streams")
    ours = {c: {n: mean_at(data, {"streams": n, CONTROL: c}) for n in counts}
            for c in ("native", "bbr")}  # fmt: skip
    native = ours["native"]
    few = max(native[n] for n in counts if 1 < n <= 4)
    return Evidence(
        [
            no_less("With UDT's own control two to four streams are at least as fast as one", few,
                    native[1], budget, "2 streams: 8 Gb/s"),
            no_less("Many streams are no faster than a few", few, native[counts[-1]], budget,
                    "more may not be better"),
        ],
        [Picture("fig-8", "Average throughput over the number of streams", "Streams", "Gb/s",
                 [curve_of(data, "streams", {CONTROL: c}, c) for c in ours])],
        reason=_noise(budget),
        instead="One stream of farline's own control (bbr) fills the cable on an idle host: "
        f"{ours['bbr'][1] / 1e9:.2f} Gb/s here with one, {ours['bbr'][counts[-1]] / 1e9:.2f} with"
        f" {counts[-1]}.",
    )  # fmt: skip


def table_1(measured: Measured) -> Evidence:
    """Table I and Fig. 9(a): ten settings, from UDT's defaults to tuned ones."""
    data = measured.campaign("tpg-table1")
    budget = measured.budget("tpg-table1").whole
    ours = {n: mean_at(data, {"point": n, CONTROL: "bbr"}) for n in TABLE_MBPS}
    likeness = _rank_correlation(list(TABLE_MBPS.values()), list(ours.values()))
    return Evidence(
        [
            above("Rank correlation with the paper's ten settings (Spearman)", likeness, 0.6),
            larger("The tuned setting (8) is faster than the default (1)", ours[8], ours[1],
                   budget, "19.4 times"),
            no_less("Jumbo packets are faster (8, 6)", ours[8], ours[6], budget, "3.06 times"),
            no_less("Buffers of 16 and 32 MB are no faster than 1 MB (8)", ours[8],
                    (ours[9] + ours[10]) / 2, budget, "1.36 times"),
        ],
        [_table_picture(data)],
        reason=f"{_FILLED} What is left of the differences is a few per cent on an idle host, and"
        f" on a busy one it is inside the {100 * budget:.0f} % that repeated runs differ by.",
        instead=_FILLED,
    )  # fmt: skip


def _table_picture(data: CampaignData) -> Picture:
    names = [str(number) for number in TABLE_MBPS]
    curves = [Curve("Table I", names, [mbps / 1e3 for mbps in TABLE_MBPS.values()], "paper")]
    for control in ("native", "bbr"):
        curve = curve_of(data, "point", {CONTROL: control}, control)
        curves.append(Curve(control, [f"{x:g}" if isinstance(x, float) else str(x)
                                      for x in curve.x], curve.y))  # fmt: skip
    return Picture("fig-9a", "Average throughput in each experiment", "Experiment", "Gb/s", curves,
                   "words", bars=True)  # fmt: skip


def round_trips(measured: Measured) -> Evidence:
    """Fig. 9(b) to (d): round-trip time in each setting, and throughput over time."""
    data = measured.campaign("tpg-table1")
    column = "mean_rtt_us"
    names = list(TABLE_MBPS)
    rtt = {n: mean_at(data, {"point": n, CONTROL: "native"}, column) for n in names}
    idle_us = 40.0
    curves = []
    for number in names:
        run = points_at(data, {"point": number, CONTROL: "native"})[0].run_ids[0]
        places, rates = rates_bps(data.samples[run], 0.25)
        curves.append(Curve(f"experiment {number}", places, [rate / 1e9 for rate in rates]))
    large = max(rtt[9], rtt[10])
    return Evidence(
        [
            above("Under load the round trip is several times that of the empty cable",
                  min(rtt.values()) / idle_us, 2.0, paper="0.04 ms when empty"),
            no_less("Buffers of 16 and 32 MB (9, 10) make it no shorter than 1 MB (8)", large,
                    rtt[8], measured.budget("tpg-table1", column=column).whole, "longer"),
        ],
        [
            Picture("fig-9b", "Average round-trip time in each experiment (native)", "Experiment",
                    "µs", [Curve("", [str(n) for n in names], [rtt[n] for n in names])], "words",
                    bars=True),
            Picture("fig-9c", "Throughput over time, experiments 1 to 5 (native)", "Time (s)",
                    "Gb/s", curves[:5]),
            Picture("fig-9d", "Throughput over time, experiments 6 to 10 (native)", "Time (s)",
                    "Gb/s", curves[5:]),
        ],
        reason="UDT's own control had not filled the larger buffers in runs of 2 s: "
        f"{rtt[8]:.0f} µs with 1 MB, {rtt[9]:.0f} and {rtt[10]:.0f} with 16 and 32 MB.",
    )  # fmt: skip


def text_products(_: Measured) -> Evidence:
    """Section IV.B: bandwidth-delay products of the two connections."""
    from farline.models.window_bound import bdp_bytes

    return Evidence(
        [
            equal("10 Gb/s over 0.04 ms", float(bdp_bytes(10e9, 0.04)) / 1e3, 50.0, unit="kB"),
            equal("95 Mb/s over 0.25 ms", float(bdp_bytes(95e6, 0.25)) / 1e3, 3.0, 0.02, "kB"),
        ]
    )


def text_gains(_: Measured) -> Evidence:
    """Table I: the gains that follow from its figures."""
    return Evidence(
        [
            equal("Experiment 8 over 1", TABLE_MBPS[8] / TABLE_MBPS[1], 19.4, 0.005, "times"),
            equal("Jumbo packets, 8 over 6", TABLE_MBPS[8] / TABLE_MBPS[6], 3.06, 0.005, "times"),
            fact("Experiment 8 is the best of the ten",
                 max(TABLE_MBPS, key=lambda n: TABLE_MBPS[n]) == 8, "yes"),
        ]
    )  # fmt: skip


def _noise(budget: float) -> str:
    return (
        f"Repeated runs of a setting differ by {100 * budget:.0f} % here, and the order of the"
        " settings within that is chance."
    )


def _logged(curve: Curve) -> Curve:
    import math

    places = [math.log2(float(x) / KIB) for x in curve.x]
    return Curve(curve.name, places, curve.y, curve.of, curve.low, curve.high)


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)


def _nested(field: str, value: Any) -> dict[str, Any]:
    group, _, name = field.rpartition(".")
    if not group:
        return {name: value}
    return {"transport": group, group: {name: value}}


def _at(document: Any, field: str) -> Any:
    for part in field.split("."):
        document = (document or {}).get(part)
    return document


ITEMS = (
    Item("tpg-fig1", PAPER, "Fig. 1", "throughput over time for several block sizes",
         "With larger blocks UDT's throughput is more than four times as high on average.",
         over_time, ("tpg-table1",), _HERE + "Experiments 1 to 4 of Table I are this figure.",
         guide=GUIDE),
    Item("tpg-fig2", PAPER, "Fig. 2", "components that limit a transfer",
         "Packet, block, buffers, streams, MTU, round-trip time, CPU and memory decide.",
         components, ("session",), guide="docs/guide/probe.md"),
    Item("tpg-fig3", PAPER, "Fig. 3", "the control flow of client and server",
         "Thirteen steps over a control channel; errors are reported before the end; the server is"
         " reset for the next cycle.", steps, ("session",), guide="docs/guide/probe.md"),
    Item("tpg-fig4", PAPER, "Fig. 4", "control and data channels over several interfaces",
         "Each data stream has a pair of source and destination addresses.", lanes,
         ("tpg-lanes",), "Two cables instead of those of the paper, at a low rate: it is about"
         " where streams go.", guide=GUIDE),
    Item("tpg-options", PAPER, "section IV.A", "TPG's options",
         "Thirteen options choose transport, block, streams, buffers, packets, interfaces, CPUs"
         " and rate.", options, guide="docs/guide/probe.md"),
    Item("tpg-fig5", PAPER, "Fig. 5", "throughput over the packet size",
         "Larger packets are faster, up to the MTU of the path.", packet_size,
         ("tpg-packet-size",), _HERE, guide=GUIDE),
    Item("tpg-fig6", PAPER, "Fig. 6", "throughput over the block size",
         "With ample buffers larger blocks are faster, less and less; with 128 KB they are not,"
         " and too large buffers lower the peak.", block_size, ("tpg-block-size",), _HERE,
         guide=GUIDE),
    Item("tpg-fig7", PAPER, "Fig. 7", "throughput over send and receive buffers",
         "It rises up to a send buffer of 1 MB, falls beyond if the receive buffer is small, and"
         " larger receive buffers help when the send buffer is large.", buffer_size,
         ("tpg-buffers",), _HERE, guide=GUIDE),
    Item("tpg-fig8", PAPER, "Fig. 8", "throughput over parallel streams",
         "Two streams reach 8 Gb/s; more need not be better.", streams, ("tpg-streams",), _HERE,
         guide=GUIDE),
    Item("tpg-table1", PAPER, "Table I, Fig. 9(a)", "default UDT against tuned UDT",
         "Ten settings from 450 Mb/s to 8713 Mb/s.", table_1, ("tpg-table1",), _HERE, guide=GUIDE),
    Item("tpg-fig9", PAPER, "Fig. 9(b) to (d)", "round-trip times, throughput over time",
         "The round-trip time grows with the buffers; throughput over time of each setting.",
         round_trips, ("tpg-table1",), _HERE, guide=GUIDE),
    Item("tpg-text-blocks", PAPER, "section I, text", "gain by the block size",
         "More than four times the throughput on average by the block size alone.", tiny_blocks,
         ("tpg-tiny-blocks",), _HERE + "A call for a block costs a host of today a small part of"
         " what it cost then: blocks down to 64 bytes are sent, so that calls take as much of the"
         " time.", guide=GUIDE),
    Item("tpg-text-products", PAPER, "section IV.B, text", "bandwidth-delay products",
         "10 Gb/s over 0.04 ms hold 50 KB, 95 Mb/s over 0.25 ms about 3 KB.", text_products,
         guide="docs/guide/host.md"),
    Item("tpg-text-gains", PAPER, "Table I, text", "gains of tuning",
         "Experiment 8 has a significant improvement over any other setting.", text_gains,
         guide=GUIDE),
)  # fmt: skip
