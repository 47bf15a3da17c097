"""Which setting is sampled next, when it ends and why, and which is taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.tuning.belief import Belief
from farline.tuning.grids import KnobLimits, knob_grid, knob_prior, stream_grid, stream_prior
from farline.tuning.search import (
    KNOB_LIMITS,
    STREAM_LIMITS,
    BeliefSearch,
    BracketSearch,
    Sample,
    SearchLimits,
)
from farline.tuning.situation import Setting, Situation
from tests.unit.tuning.histories import FAR, FLAT, KIND, NEAR, PATH, RISING, WAN, driven

GRID = stream_grid()
BEST = replace(STREAM_LIMITS, within=0.0)
"""The best itself, as the reference values have it; not the fewest streams near it."""


def prior() -> Belief:
    return stream_prior(GRID, Situation(rtt_ms=40.0))


@pytest.mark.parametrize(
    ("truth", "sampled", "answer"),
    [(RISING, [32, 4, 8, 1, 8], 32), (FLAT, [32, 4, 2, 8, 16], 8)],
)
def test_without_history_the_search_takes_its_reference_steps(
    truth: tuple[int, ...], sampled: list[int], answer: int
) -> None:
    search = BeliefSearch(GRID, prior(), BEST)
    assert driven(search, truth) == sampled
    assert (search.answer.streams, search.reason) == (answer, "budget")


def test_with_history_the_search_takes_its_reference_steps() -> None:
    search = BeliefSearch(GRID, prior().with_groups([KIND, NEAR, PATH, FAR]), BEST)
    assert driven(search, RISING) == [16, 32, 16, 32]
    assert (search.answer.streams, search.reason) == (32, "noise")


@pytest.mark.parametrize(
    ("truth", "sampled", "answer"), [(RISING, [8, 32], 32), (FLAT, [8, 32, 16], 8)]
)
def test_the_bracket_takes_its_reference_steps(
    truth: tuple[int, ...], sampled: list[int], answer: int
) -> None:
    search = BracketSearch()
    assert driven(search, truth) == sampled
    assert search.answer.streams == answer


def test_the_fewest_streams_near_the_best_are_taken() -> None:
    search = BeliefSearch(GRID, prior())
    driven(search, (500, 980, 1000, 1005, 1000, 990))
    assert search.answer.streams <= 8


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (Sample(Setting(32), 9.3e9), "cap:nic"),
        (Sample(Setting(32), 5e9, cpu_full=True), "cap:cpu"),
        (Sample(Setting(32), 5e9, limit="receiver-disk"), "cap:disk"),
    ],
)
@pytest.mark.parametrize("search_of", [BeliefSearch, BracketSearch])
def test_a_capacity_of_a_host_ends_the_search_by_its_name(
    sample: Sample, reason: str, search_of: type
) -> None:
    limits = SearchLimits(nic_bps=1e10)
    search = (
        BracketSearch(limits) if search_of is BracketSearch else BeliefSearch(GRID, prior(), limits)
    )
    first = search.next()
    assert first is not None
    search.learn(replace(sample, setting=first))
    # What is answered has been sampled: one more run where it was not.
    while (setting := search.next()) is not None:
        search.learn(Sample(setting, sample.rate_bps))
    assert search.reason == reason
    assert len(search.samples) <= 2
    assert search.answer in {s.setting for s in search.samples}


def test_the_last_file_ends_the_search() -> None:
    search = BeliefSearch(GRID, prior())
    setting = search.next()
    assert setting is not None
    search.learn(Sample(setting, 1e9, all_there=True))
    assert search.next() is None
    assert search.reason == "data"


def test_more_streams_that_only_lose_are_told_as_a_decline() -> None:
    search = BeliefSearch(GRID, prior(), replace(STREAM_LIMITS, most_samples=9))
    driven(search, (1200, 700, 400, 300, 200, 100))
    assert (search.answer.streams, search.reason) == (1, "decline")


def test_what_ends_a_search_from_outside_stays_its_reason() -> None:
    search = BeliefSearch(GRID, prior())
    search.stop("budget")
    search.stop("noise")
    assert (search.next(), search.reason) == (None, "budget")


@given(st.lists(st.floats(50, 5000), min_size=6, max_size=6))
def test_whatever_the_path_an_answer_is_sampled_within_the_budget(truth: list[float]) -> None:
    search = BeliefSearch(GRID, prior())
    counts = driven(search, truth)
    assert 1 <= len(counts) <= STREAM_LIMITS.most_samples
    assert search.reason is not None
    again = BeliefSearch(GRID, prior())
    assert driven(again, truth) == counts


def knob_search() -> BeliefSearch:
    grid = knob_grid(KnobLimits(16, 16, 8))
    belief = knob_prior(grid, WAN)
    anchor = grid.settings[int(np.argmax(belief.mean))]
    return BeliefSearch(grid, belief, KNOB_LIMITS, anchor)


def test_the_prior_s_best_is_left_only_for_what_is_surely_better() -> None:
    search = knob_search()
    anchor, few = search.answer, Setting(4, 4, 8)
    at, there = search.grid.index(few), search.grid.index(anchor)
    assert at is not None
    assert there is not None
    base = search.belief.with_sample(there, 7.0, sd=0.25)
    search.belief = base.with_sample(at, 7.05, sd=0.25)
    assert search.answer == anchor
    search.belief = base.with_sample(there, 7.0, sd=0.02).with_sample(at, 9.0, sd=0.02)
    assert search.answer != anchor


def test_three_knobs_are_searched_in_few_samples() -> None:
    search = knob_search()
    lost = []
    while (setting := search.next()) is not None:
        concurrency, pipelining = setting.concurrency or 1, setting.pipelining or 1
        # Files side by side help up to 8, then their disk; the other two little.
        rate = 1e9 * min(concurrency, 8) ** 0.7 * pipelining**0.05
        search.learn(Sample(setting, rate / (1 + 0.1 * max(0, concurrency - 8))))
        lost.append(rate)
    assert 1 <= len(search.samples) <= KNOB_LIMITS.most_samples
    assert search.answer.concurrency in (8, 16)


def test_knobs_that_history_knows_are_not_sampled_again() -> None:
    search = knob_search()
    size = len(search.grid.settings)
    belief = search.belief
    for at in range(size):
        belief = belief.with_sample(at, float(belief.mean[at]), sd=0.02)
    known = BeliefSearch(search.grid, belief, KNOB_LIMITS)
    assert known.next() is None
    assert (known.reason, known.samples) == ("history", [])
    assert np.argmax(known.belief.mean) == np.argmax(search.belief.mean)
