"""What a choice keeps whatever the path, the samples and the history are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farline.store.paths import PastTransfer
from farline.tuning.belief import Belief, log_of
from farline.tuning.choice import CERTAIN_Z, Choice, cost_of, make_choice
from farline.tuning.grids import (
    Grid,
    KnobLimits,
    knob_grid,
    knob_prior,
    stream_grid,
    stream_prior,
    with_seen_capacity,
)
from farline.tuning.history import belief_after, evidence_for
from farline.tuning.online import TICK_S, OnlineController, OnlineSettings, Tick
from farline.tuning.search import STREAM_LIMITS, BeliefSearch, Sample
from farline.tuning.situation import Goal, Setting, Situation
from tests.unit.tuning.histories import ENDS, NOW_S, WAN, row, sweep

GOALS: tuple[Goal, ...] = ("throughput", "fairness", "cpu")
NAN, INF = math.nan, math.inf


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


ROWS = st.builds(
    lambda from_host, to_host, **more: PastTransfer(
        path=f"{from_host} > {to_host}", from_host=from_host, to_host=to_host, **more
    ),
    kind=st.sampled_from(["copy", "probe", "ingested"]),
    tool=st.sampled_from(["farline", "gridftp"]),
    source=st.just("log"),
    from_host=st.sampled_from(["near", "elsewhere"]),
    to_host=st.sampled_from(["far", "elsewhere"]),
    started_s=st.just(0.0),
    ended_s=maybe(st.floats(0, 2 * NOW_S)),
    duration_s=maybe(st.floats(1e-9, 1e9)),
    rate_bps=st.floats(1e-3, 1e18) | st.sampled_from([NAN, INF, 0.0, -1.0]),
    steady_bps=maybe(st.floats(0, 1e13)),
    bytes=maybe(st.integers(0, 2**63 - 1)),
    files=maybe(st.integers(0, 2**40)),
    concurrency=maybe(st.integers(1, 1024)),
    streams=maybe(st.integers(1, 1024)),
    parallelism=maybe(st.integers(1, 1024)),
    pipelining=maybe(st.integers(0, 20_000)),
    rtt_ms=maybe(st.floats(0, 1e6)),
    capacity_bps=maybe(st.floats(1, 1e15)),
    nic_bps=maybe(st.integers(1, 10**13)),
    window_bytes=maybe(st.integers(0, 2**40)),
    modality=st.sampled_from("TE"),
    from_kernel=maybe(st.sampled_from(["6.1.0", "?"])),
    transport=maybe(st.sampled_from(["tcp", "udt"])),
)
SITUATIONS = st.builds(
    Situation,
    ends=st.just(ENDS),
    now_s=st.just(NOW_S),
    modality=st.sampled_from("TE"),
    file_bytes=maybe(st.floats(0, 1e15)),
    files=maybe(st.integers(0, 2**40)),
    rtt_ms=maybe(st.floats(0, 1e5)),
    capacity_bps=maybe(st.floats(1, 1e13)),
    nic_bps=maybe(st.floats(1, 1e13)),
    window_bytes=maybe(st.integers(0, 2**34)),
)
RATES = st.lists(st.floats(1e-3, 1e15), min_size=6, max_size=6)
"""Of samples in the order in which they are taken: any noise, any shape, any drift."""


def grid_of(most: int, default: Setting, with_files: bool) -> Grid:
    grid = stream_grid(most)
    if with_files:
        grid = knob_grid(KnobLimits(8, min(32, most), 1, most), with_pipelining=False)
    return grid if grid.index(default) is not None else grid.with_setting(default)


def searched(
    grid: Grid, now: Situation, rows: list[PastTransfer], rates: list[float], budget: int
) -> tuple[BeliefSearch, Belief]:
    """A search over the grid whose samples have these rates, and what is believed at its end."""
    evidence = evidence_for(rows, now, grid)
    prior = stream_prior if grid.axes == ("streams",) else knob_prior
    limits = replace(STREAM_LIMITS, most_samples=budget, nic_bps=now.nic_bps)

    def believed(samples: list[Sample]) -> Belief:
        seen = with_seen_capacity(now, ((one.setting.streams, one.rate_bps) for one in samples))
        belief = belief_after(prior(grid, seen), evidence)
        for one in samples:
            at = grid.index(one.setting)
            assert at is not None
            belief = belief.with_sample(at, log_of(one.rate_bps))
        return belief

    search = BeliefSearch(grid, believed([]), limits)
    while (setting := search.next()) is not None:
        search.learn(Sample(setting, rates[len(search.samples) % len(rates)], 2.0, 1000))
        search.belief = believed(search.samples)
    return search, search.belief


@settings(max_examples=30, deadline=None)
@given(
    st.lists(ROWS, max_size=20),
    SITUATIONS,
    st.sampled_from([1, 2, 7, 32, 256]),
    st.integers(1, 64),
    st.integers(1, 6),
    RATES,
    st.sampled_from(GOALS),
    st.booleans(),
)
def test_any_path_gives_a_choice_within_its_limits(
    rows: list[PastTransfer],
    now: Situation,
    most: int,
    streams: int,
    budget: int,
    rates: list[float],
    goal: Goal,
    with_files: bool,
) -> None:
    default = Setting(streams)
    grid = grid_of(most, default, with_files)
    search, belief = searched(grid, now, rows, rates, budget)
    assert np.isfinite(belief.mean).all()
    assert 1 <= len(search.samples) <= budget
    assert search.reason is not None
    choice = make_choice(
        grid, belief, search.samples, default=default, goal=goal, reason=search.reason
    )
    assert 1 <= choice.setting.streams <= max(most, streams)
    assert choice.default == default
    assert 0 < choice.gain_low <= choice.gain <= choice.gain_high < INF
    for one in (choice.expected, choice.default_expected):
        assert one is None or 0 < one.low_bps <= one.rate_bps <= one.high_bps < INF
    gain_is_sure(grid, belief, choice)
    assert cost_of(choice, is_own_data=True).seconds == sum(one.seconds for one in choice.samples)
    again, _ = searched(grid, now, rows, rates, budget)
    assert [one.setting for one in again.samples] == [one.setting for one in search.samples]


def gain_is_sure(grid: Grid, belief: Belief, choice: Choice) -> None:
    """Nothing that takes as much as the default is taken for a gain inside the noise."""
    at, reference = grid.index(choice.setting), grid.index(choice.default)
    assert at is not None
    assert reference is not None
    if choice.setting != choice.default and not choice.setting.takes_less(choice.default):
        gain = belief.mean[at] - belief.mean[reference]
        assert gain >= CERTAIN_Z * belief.difference_sd(at, reference)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.3, 1.2))
def test_on_a_flat_path_noise_alone_never_makes_it_much_worse(seed: int, sd: float) -> None:
    """Whatever noise says, all counts are alike there: nothing can be lost but streams."""
    draw = np.random.default_rng(seed)
    rates = [1e9 * math.exp(float(draw.normal(0, sd))) for _ in range(6)]
    grid = stream_grid()
    search, belief = searched(grid, WAN, [], rates, 5)
    choice = make_choice(grid, belief, search.samples, default=Setting(8), reason="budget")
    assert choice.setting.streams <= 32
    assert choice.expected is not None
    # Of samples that swing so far, the mean is not far outside what was seen.
    assert 0.3 * min(rates) < choice.expected.rate_bps < 3 * max(rates)


@pytest.mark.parametrize(
    "odd",
    [
        {"rate_bps": NAN},
        {"rate_bps": INF},
        {"rate_bps": 1e15},
        {"ended_s": NOW_S + 30 * 86_400},
    ],
)
def test_what_cannot_be_true_is_no_evidence(odd: dict[str, float]) -> None:
    grid = stream_grid()
    rows = sweep((900, 1000, 1050, 1040, 1000, 950))
    wrong = [replace(one, **odd) for one in sweep((1500, 1200, 900, 600, 400, 300))]  # type: ignore[arg-type]
    told = [evidence_for(given, WAN, grid) for given in (rows, [*rows, *wrong])]
    assert told[0].transfers == told[1].transfers
    assert belief_after(stream_prior(grid, WAN), told[1]).mean == pytest.approx(
        belief_after(stream_prior(grid, WAN), told[0]).mean
    )


def test_a_transfer_a_minute_ahead_of_this_clock_counts() -> None:
    one = replace(row(8, 900), ended_s=NOW_S + 60)
    assert evidence_for([one], WAN, stream_grid()).count("kind") == 1


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-3, 100),
    st.integers(1, 64),
    st.floats(0.0, 60.0),
    st.booleans(),
    st.booleans(),
    st.lists(
        st.tuples(st.floats(0, 1e13), st.floats(0, 1e13), st.floats(0, 1e13), st.floats(0, 1)),
        min_size=1,
        max_size=40,
    ),
    st.none() | st.floats(0, 1e15),
)
def test_a_running_copy_stays_within_its_streams_whatever_its_rates_do(
    first: int,
    most: int,
    ramp_s: float,
    is_known: bool,
    is_polite: bool,
    rates: list[tuple[float, float, float, float]],
    left: float | None,
) -> None:
    asked = OnlineSettings(first, most, ramp_s, is_known, is_polite)
    one, other = OnlineController(asked), OnlineController(asked)
    for step in range(1, 400):
        read, network, write, loss = rates[step // 10 % len(rates)]
        tick = Tick(step * TICK_S, read, network, write, loss, left)
        told = one.tick(tick)
        assert told == other.tick(tick)
        assert all(1 <= decision.setting <= most for decision in told)
        assert 1 <= one.setting <= most
        if told:
            assert told[-1].setting == one.setting
