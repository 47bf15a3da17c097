"""Delivered rate over a second, overdriven: by a receiver's timestamps and the link's samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.delivery import rates_bps, sampled_rates_bps, wire_bytes
from _emulator.figures import Figure, Label, Seen, none_of, within
from _emulator.results import Effort
from _emulator.runs import forget_samples, forward_samples, overrun, seen, seen_all, up, valid_runs
from _emulator.traffic import at_wire_rate, blast, catcher
from farline.testbeds import Testbed

GROUP = "rate"
RATES_BPS = (100e6, 1e9, 5e9, 9e9)
OVERDRIVE, LEAST_OVERDRIVE = 1.3, 1.1
ALLOWED = 0.001
RTT_S = 0.01
QUEUE_S = 0.1
# The queue is full after a third of a second, at 1.3 times the rate.
SKIP_S = 0.6
INTERVAL_S = 0.01


@dataclass(frozen=True)
class Delivered:
    """Rates over seconds as host and link saw them, and what the hosts may have failed at."""

    host_bps: list[float]
    link_bps: list[float]
    dropped_by_host: int
    overdrive: float


def rows(effort: Effort) -> Iterator[Figure]:
    """Two rows per rate: host and link."""
    for rate_bps in RATES_BPS:
        # Deep enough that a sender that misses its turn for a moment does not let it run dry.
        queue = {"capacity_bytes": int(rate_bps / 8 * QUEUE_S)}
        with up(pair(pipe(rate_bps, RTT_S, queue=queue), interval_s=INTERVAL_S)) as bed:
            yield from _rows(bed, rate_bps, effort)


def _rows(bed: Testbed, rate_bps: float, effort: Effort) -> Iterator[Figure]:
    seconds = effort.seconds(6.0, 2.8)
    runs = valid_runs(bed, lambda: _deliver(bed, rate_bps, seconds), effort.repetitions, _obstacle)
    name, stated = f"{rate_bps / 1e9:g} Gb/s", rate_bps / 1e9
    by_host = seen_all(runs, lambda run: [rate / 1e9 for rate in run.host_bps])
    by_link = seen_all(runs, lambda run: [rate / 1e9 for rate in run.link_bps])
    for view, values in (("host's view", by_host), ("link's view", by_link)):
        label = Label(GROUP, f"{name}, {view}", "Gb/s", "on the wire, windows of 1 s")
        yield within(label, values, stated, stated * ALLOWED)
    dropped: Seen = seen(runs, lambda run: float(run.dropped_by_host))
    yield none_of(Label(GROUP, f"{name}, receiver's overruns", ""), dropped)


def _obstacle(delivered: Delivered) -> str:
    if delivered.overdrive < LEAST_OVERDRIVE:
        return f"the sender offered {delivered.overdrive:.2f} of the rate"
    return overrun(delivered.dropped_by_host)


def _deliver(bed: Testbed, rate_bps: float, seconds: float) -> Delivered:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    forget_samples(bed)
    with catcher(receiver, "times") as caught:
        load = at_wire_rate(rate_bps * OVERDRIVE, seconds)
        said = blast(sender, receiver.address, load)
    samples, arrays = forward_samples(bed), caught.arrays
    sizes = wire_bytes(arrays["payload_bytes"], arrays["datagrams"])
    return Delivered(
        host_bps=rates_bps(arrays["at_ns"], sizes, SKIP_S, seconds),
        link_bps=sampled_rates_bps(samples["end_us"], samples["out_bytes"], SKIP_S, seconds),
        dropped_by_host=caught.dropped,
        overdrive=OVERDRIVE * seconds / said["seconds"],
    )
