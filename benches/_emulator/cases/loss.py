"""Ordered loss, as numbered datagrams show it: how much, and whether by independent draws."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from _emulator.beds import LINK, RECEIVER, SENDER, pair, pipe
from _emulator.chance import (
    LIMIT_Z,
    Losses,
    binomial_half_width,
    burst_length_limit,
    burst_loss_limit,
    gaps_z,
    lag_one_z,
    losses_of_runs,
    runs_z,
)
from _emulator.figures import Figure, Label, Seen, none_of, within
from _emulator.results import Effort
from _emulator.runs import Run, forget_samples, forward_samples, overrun, seen, up, valid_runs
from _emulator.traffic import Blast, blast, catcher
from farline.testbeds import Testbed

GROUP = "loss"
PROBABILITIES = (1e-4, 1e-3, 1e-2, 0.1)
RATE_BPS = 10e9
RTT_S = 0.002
PAYLOAD_BYTES = 1000
DATAGRAMS_PER_S = 200_000.0
COUNT = 1_000_000
BURST_ENTER, BURST_LEAVE = 0.002, 0.25

TESTS: dict[str, Callable[[Losses], float]] = {
    "runs test": runs_z,
    "lag-1 correlation": lag_one_z,
    "distances between losses": gaps_z,
}


@dataclass(frozen=True)
class Fate:
    """What became of numbered datagrams: losses as the host saw them, and what nobody ordered."""

    losses: Losses
    miscounted: int
    dropped_elsewhere: int
    dropped_by_host: int


def rows(effort: Effort) -> Iterator[Figure]:
    """Independent losses, then losses in bursts."""
    yield from _independent(effort)
    yield from _bursts(effort)


def _independent(effort: Effort) -> Iterator[Figure]:
    base = pipe(RATE_BPS, RTT_S, loss={"random": PROBABILITIES[0]})
    with up(pair(base)) as bed:
        for probability in PROBABILITIES:
            bed.change(LINK, direction="forward", loss=probability)
            # Rare losses need more packets before chance says anything.
            count = COUNT * (4 if probability < 1e-3 else 1)
            runs = valid_runs(bed, partial(_send, bed, count), effort.repetitions, _obstacle)
            yield from _independent_rows(runs, probability)


def _independent_rows(runs: list[Run[Fate]], probability: float) -> Iterator[Figure]:
    name = f"{probability:g}"
    allowed = min(
        binomial_half_width(run.value.losses.lost, run.value.losses.total, probability)
        for run in runs
    )
    label = Label(GROUP, f"{name}, part lost", "", "binomial 99 % interval")
    yield within(label, seen(runs, lambda fate: fate.losses.fraction), probability, allowed)
    for test, score in TESTS.items():
        label = Label(GROUP, f"{name}, {test}", "sd", "99 %")
        scores = Seen([score(run.value.losses) for run in runs], [run.stamp for run in runs])
        yield within(label, scores, 0.0, LIMIT_Z)
    yield _unordered(name, runs)


def _unordered(name: str, runs: list[Run[Fate]]) -> Figure:
    """A row for losses that the link does not know of, or knows by another name."""
    label = Label(GROUP, f"{name}, losses not ordered", "pkt", "host's count − link's, other drops")
    return none_of(label, seen(runs, lambda fate: fate.miscounted + fate.dropped_elsewhere))


def _bursts(effort: Effort) -> Iterator[Figure]:
    burst = {"enter": BURST_ENTER, "leave": BURST_LEAVE}
    with up(pair(pipe(RATE_BPS, RTT_S, loss={"burst": burst}))) as bed:
        runs = valid_runs(bed, lambda: _send(bed, COUNT), effort.repetitions, _obstacle)
    fewest = min(len(run.value.losses.length) for run in runs)
    label = Label(GROUP, "bursts, mean length", "pkt", "Gilbert-Elliott, 99 % interval")
    lengths = seen(runs, lambda fate: float(np.mean(fate.losses.length)))
    yield within(label, lengths, 1 / BURST_LEAVE, burst_length_limit(BURST_LEAVE, fewest))
    label = Label(GROUP, "bursts, part lost", "", "Gilbert-Elliott, 99 % interval")
    part = BURST_ENTER / (BURST_ENTER + BURST_LEAVE)
    allowed = burst_loss_limit(BURST_ENTER, BURST_LEAVE, COUNT)
    yield within(label, seen(runs, lambda fate: fate.losses.fraction), part, allowed)
    yield _unordered("bursts", runs)


def _obstacle(fate: Fate) -> str:
    return overrun(fate.dropped_by_host)


def _send(bed: Testbed, count: int) -> Fate:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    load = Blast(count, DATAGRAMS_PER_S, segments=40, payload=PAYLOAD_BYTES, numbered=True)
    forget_samples(bed)
    with catcher(receiver, "numbers") as caught:
        said = blast(sender, receiver.address, load)
    time.sleep(0.3)  # two of the link's intervals, so that the last packets are in its samples
    link = forward_samples(bed)
    losses = losses_of_runs(caught.arrays["first"], caught.arrays["length"], count)
    ordered = int(link["loss_packets"].sum())
    elsewhere = int(link["tail_drop_packets"].sum()) + count - said["sent"]
    return Fate(losses, abs(losses.lost - ordered), elsewhere, caught.dropped)
