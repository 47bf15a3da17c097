"""Policies for the number of streams, each from a way to sample to its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from farline.models.transfer_knobs import textbook_knobs
from farline.store.paths import PastTransfer
from farline.tuning.choice import make_choice
from farline.tuning.grids import Grid, stream_grid, stream_prior
from farline.tuning.history import belief_after, evidence_for
from farline.tuning.search import BeliefSearch, BracketSearch, Sample
from farline.tuning.situation import Setting, Situation

Sampler = Callable[[int], float]
"""bit/s of one run with so many streams."""
Answer = tuple[int, int]
"""Streams, and how many samples were taken."""


def constant(streams: int) -> Callable[[Sampler], Answer]:
    """Always the same."""
    return lambda _sample: (streams, 0)


def textbook(rate_bps: float, rtt_ms: float, file_bytes: float, buffer_bytes: float) -> int:
    """Streams for a file by the published rule, as a power of two."""
    knobs = textbook_knobs(rate_bps, rtt_ms / 1000, file_bytes, 64, buffer_bytes)
    return int(2 ** min(5, round(math.log2(knobs.parallelism))))


def first_decrease(sample: Sampler, counts: Sequence[int]) -> Answer:
    """Doubles until it is slower once (Yildirim, Yin and Kosar 2011)."""
    rates: list[float] = []
    for streams in counts:
        rates.append(sample(streams))
        if len(rates) > 1 and rates[-1] < rates[-2]:
            break
    return counts[int(np.argmax(rates))], len(rates)


def patient_doubling(sample: Sampler, counts: Sequence[int]) -> Answer:
    """Doubles until two in a row gain less than 2 % over the best."""
    rates: list[float] = []
    idle = 0
    for streams in counts:
        rates.append(sample(streams))
        idle = 0 if len(rates) == 1 or rates[-1] > 1.02 * max(rates[:-1]) else idle + 1
        if idle == 2:
            break
    return counts[int(np.argmax(rates))], len(rates)


def full_grid(sample: Sampler, counts: Sequence[int], repeats: int = 1) -> Answer:
    """Every count, and the best."""
    means = [np.mean([sample(streams) for _ in range(repeats)]) for streams in counts]
    return counts[int(np.argmax(means))], repeats * len(counts)


def bracket(sample: Sampler) -> Answer:
    """8, 32, and 16 where these are close."""
    search = BracketSearch()
    while (setting := search.next()) is not None:
        search.learn(Sample(setting, sample(setting.streams)))
    return search.answer.streams, len(search.samples)


def believing(
    sample: Sampler,
    now: Situation,
    rows: Sequence[PastTransfer] = (),
    *,
    samples: int | None = None,
    default: int | None = None,
    grid: Grid | None = None,
) -> Answer:
    """farline's search; `samples` bounds them, 0 chooses from history; `default` is preferred where
    a gain is inside the noise, as in `farline tune`."""
    grid = grid or stream_grid()
    belief = belief_after(stream_prior(grid, now), evidence_for(rows, now, grid))
    search = BeliefSearch(grid, belief)
    while samples != 0 and (setting := search.next()) is not None:
        search.learn(Sample(setting, sample(setting.streams)))
        if samples is not None and len(search.samples) >= samples:
            break
    if default is None:
        return search.answer.streams, len(search.samples)
    choice = make_choice(grid, search.belief, search.samples, default=Setting(default))
    return choice.setting.streams, len(search.samples)
