"""Cases of `rbudp-speed` over 10 Gb/s, 100 ms and 0.1 % loss: 2 GB, beside one cubic stream.

Ours blasts 2 GB at the payload rate of the link, with every option as it comes. Its throughput is
payload over the time from the first byte at the receiver to the last, by the sender's clock: from
its first packet until it knows that everything came, less a round trip. (The receiver's clock
starts when it agrees to the run, one to two round trips before the first byte is there.) The whole
of it, with agreement and first trip, is in the row's note. Cubic sends for some seconds over the
same path, turn by turn, and counts with what it carried after its first seconds: the whole 2 GB
would take it the better part of an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.figures import Figure, Label, figure, share_of
from _emulator.results import Effort
from _emulator.runs import Run, seen, up, valid_run
from _emulator.traffic import serving
from _rbudp.probing import RBUDP_HEADER_BYTES, probe, rbudp
from _udt.haul import FRAMING_BYTES, HOST_CPUS
from farline.testbeds import Testbed

RATE_BPS, RTT_S, LOSS = 10_000_000_000, 0.1, 0.001
TOTAL_BYTES, SHORT_BYTES = 2_000_000_000, 400_000_000
IP_UDP_BYTES = 28
TCP_SECONDS, TCP_OMIT_S = 8, 2
PAIRS = 5
TIMES, SHARE = 3.0, 0.9
LIMIT_S = 60.0


@dataclass(frozen=True)
class Pair:
    """Both contenders' throughput in bit/s."""

    ours_bps: float
    whole_bps: float
    cubic_bps: float


def payload_bps(mtu_bytes: int) -> float:
    """Payload of RBUDP that a saturated link carries."""
    headers = IP_UDP_BYTES + RBUDP_HEADER_BYTES
    return RATE_BPS * (mtu_bytes - headers) / (mtu_bytes + FRAMING_BYTES)


def rows(effort: Effort, mtu_bytes: int) -> Iterator[Figure]:
    """Three times cubic, and nine tenths of the link."""
    both = {"mtu_bytes": mtu_bytes, "queue": {"capacity_bdp": 1.0}}
    path = pipe(RATE_BPS, RTT_S, loss={"random": LOSS}, **both)
    with up(pair(path, cpus=HOST_CPUS)) as bed:
        receiver = bed.hosts[RECEIVER]
        with serving(receiver.popen, receiver.address) as ticket:
            count = 1 if effort.is_short else PAIRS
            runs = [_pair(bed, ticket, mtu_bytes, effort) for _ in range(count)]
    group, case = f"lossy{mtu_bytes}", f"2 GB rtt100 loss0.1 mtu{mtu_bytes}"
    yield against_cubic(Label(group, f"{case} cubic", "Gb/s"), [run for run, _ in runs])
    ours = seen([run for run, _ in runs], lambda one: one.ours_bps / 1e9)
    whole = sorted(run.value.whole_bps / 1e9 for run, _ in runs)
    middle = whole[len(whole) // 2]
    note = f"with agreement and first trip {middle:.3g} Gb/s, sent in {_sender_note(runs)}"
    label = Label(group, case, "Gb/s", note)
    yield share_of(label, ours, payload_bps(mtu_bytes) / 1e9, SHARE)


def against_cubic(label: Label, runs: list[Run[Pair]]) -> Figure:
    """Ours over cubic's, a third of it."""
    ours = seen(runs, lambda one: one.ours_bps / 1e9)
    cubic = sorted(run.value.cubic_bps / 1e9 for run in runs)
    ratios = [run.value.ours_bps / run.value.cubic_bps / TIMES for run in runs]
    allowed = f"at least {TIMES:g} times cubic's"
    return figure(label, ours, cubic[len(cubic) // 2], ratios, 1.0, allowed)


def _pair(bed: Testbed, ticket: str, mtu_bytes: int, effort: Effort) -> tuple[Run[Pair], float]:
    """A run of each, and the seconds ours took until the sender knew that all had come."""
    sender = bed.hosts[SENDER].popen
    total = SHORT_BYTES if effort.is_short else TOTAL_BYTES
    ours = valid_run(
        bed, lambda: probe(sender, ticket, LIMIT_S, *rbudp(payload_bps(mtu_bytes), "-n", total))
    )
    span = ["-t", TCP_SECONDS, "-O", TCP_OMIT_S]
    cubic = probe(sender, ticket, LIMIT_S, "--transport", "tcp", "-C", "cubic", *span)
    steady = cubic.record["summary"]["forward"]["steady_bps"] or cubic.total_bps
    arrived_bps = 8 * total / arriving_s(ours.value.sender)
    found = Pair(arrived_bps, ours.value.total_bps, steady)
    return Run(found, ours.stamp), _sender_s(ours.value.sender)


def arriving_s(sender: Mapping[str, Any]) -> float:
    """Seconds from the first byte at the receiver to the last, from what the sender knows.

    A blast begins when all before it were sent once, and ends when the sender hears that it is
    whole: half a round trip later than it was, as its first packet arrives half a one later.
    """
    begin_bytes, end_s = 0, 0.0
    for blast in sender["blasts"]:
        begin_s = sender["elapsed_us"] / 1e6 * begin_bytes / sender["bytes"]
        end_s = max(end_s, begin_s + blast["elapsed_us"] / 1e6)
        begin_bytes += blast["bytes"]
    return end_s - RTT_S


def _sender_s(stream: dict[str, object]) -> float:
    return float(str(stream["elapsed_us"])) / 1e6


def _sender_note(runs: list[tuple[Run[Pair], float]]) -> str:
    found = sorted(seconds for _, seconds in runs)
    return f"{found[len(found) // 2]:.3f} s"
