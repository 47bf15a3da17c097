"""What cases compute by themselves: payload rates, paces, halves of runs, what formulas need."""

from __future__ import annotations

import time

import pytest

from _emulator.blaster import Pace
from _emulator.cases.fairness import second_half_bytes
from _emulator.cases.steady import Cell, groups, payload_bps
from _emulator.cases.teeth import TEETH, Tooth
from _emulator.results import Effort
from _emulator.sawtooth import CUBIC, cubic_plateau_s, period_s
from _emulator.traffic import DATAGRAM_WIRE_BYTES, at_wire_rate, increase


@pytest.mark.parametrize(("mtu", "gbps"), [(1500, 9.415), (9000, 9.900)])
def test_payload_rates_are_those_of_ten_gigabit_ethernet(mtu: int, gbps: float) -> None:
    assert payload_bps(mtu) / 1e9 == pytest.approx(gbps, abs=0.001)


def test_only_several_streams_over_the_longest_path_may_reach_less() -> None:
    assert Cell(1500, 366, 1).must == Cell(9000, 100, 10).must == 0.93
    assert Cell(1500, 366, 4).must == Cell(9000, 366, 10).must == 0.80
    assert (Cell(1500, 0, 1).omitted_s, Cell(1500, 366, 1).omitted_s) == (3, 9)
    assert Cell(1500, 366, 1).seconds(Effort(3, False)) == 50
    assert len(groups()) == 10


@pytest.mark.parametrize("rate_bps", [100e6, 1e9, 11.7e9])
def test_a_load_has_its_rate_on_the_wire_and_its_length(rate_bps: float) -> None:
    load = at_wire_rate(rate_bps, 2.0)
    assert load.per_s * DATAGRAM_WIRE_BYTES * 8 == pytest.approx(rate_bps)
    assert load.count / load.per_s == pytest.approx(2.0, rel=1e-3)
    assert 1 <= load.segments <= 44


def test_a_sender_that_fell_behind_makes_up_for_little() -> None:
    pace = Pace(1000.0, 0.005)
    pace.start = time.monotonic() - 3.0
    pace.wait_for(1)
    assert time.monotonic() - (pace.start + 0.001) == pytest.approx(0.005, abs=0.05)


def test_without_a_rate_nothing_is_waited_for() -> None:
    pace = Pace(0.0, 0.005)
    pace.start = time.monotonic() + 100
    pace.wait_for(1)


def test_the_second_half_of_a_run_counts() -> None:
    parts = [{"sum": {"start": second + 0.0001, "bytes": 2**second}} for second in range(10)]
    assert second_half_bytes({"intervals": parts}, 10.0) == 2**10 - 2**5


@pytest.mark.parametrize("tooth", [tooth for tooth in TEETH if tooth.growth is CUBIC])
def test_cubic_is_in_reno_s_place_wherever_that_is_assumed(tooth: Tooth) -> None:
    assert cubic_plateau_s(tooth.path) > 1.5 * period_s(tooth.path, tooth.growth)


def test_counters_rise_together() -> None:
    before, after = {"a": 1, "b": 5}, {"a": 4, "b": 5}
    assert increase(before, after, "a", "b") == 3
