"""What the UDT benches compute by themselves: cells, payload rates, ratios if a side stalls."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable

import pytest

from _emulator.figures import LARGEST_RATIO, Label
from _emulator.results import Effort
from _udt import grid, haul
from _udt.peers import PeerFailed, Said, first_line, running
from _udt.versus import NOTHING, Cell, Duel, Run, cost, figures, interleaved, speed
from tests.interop.hostile import Outcome

LABEL = Label("group", "case", "Gb/s")


def said(received: int, steady: int, steady_s: float, cpu_s: float) -> Said:
    """What an end with one connection says."""
    one = {"received_bytes": received, "steady_bytes": steady, "steady_s": steady_s}
    return Said({"connections": [one], "cpu_s": cpu_s}, 0)


def test_a_run_is_its_steady_rate_and_the_cost_of_all_it_moved() -> None:
    server, client = said(4 * 10**9, 2 * 10**9, 2.0, 0.5), said(0, 0, 0.0, 1.5)
    assert figures(server, client) == Run(gbps=8.0, cpu_s_per_gb=0.5)


def test_a_run_that_moved_nothing_is_no_error() -> None:
    assert figures(said(0, 0, 1.0, 0.1), said(0, 0, 0.0, 0.1)) == NOTHING


def test_a_program_that_says_nothing_is_not_waited_for() -> None:
    mute = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, text=True)
    with running(mute), pytest.raises(PeerFailed, match="says nothing within 0 s"):
        first_line(mute, 0.05)


@pytest.mark.parametrize("seen", [[], [4_000]])
def test_too_few_samples_of_memory_are_no_growth(seen: list[int]) -> None:
    end = said(1, 1, 1.0, 0.1)
    outcome = Outcome(end, end, 1.0, {"sender": seen})
    assert outcome.growth_kb("sender") == 0 and outcome.is_level()


@pytest.mark.parametrize(
    ("ours", "peer", "ratio"), [(20.0, 2.0, 10.0), (20.0, 0.0, LARGEST_RATIO), (0.0, 0.0, 0.0)]
)
def test_a_peer_that_stalls_counts_with_what_it_moved(
    ours: float, peer: float, ratio: float
) -> None:
    row = speed(LABEL, [Run(ours, 0.3)], [Run(peer, 3.0)], 10.0)
    assert (row.ours, row.peer, row.ratio) == (ours, peer, ratio)
    assert row.reached == (ratio >= 10)


def test_cost_is_better_when_it_is_less() -> None:
    ours, peer = [Run(20, 0.5), Run(20, 0.4), Run(20, 0.6)], [Run(2, 3.0), Run(2, 4.0), Run(2, 3.0)]
    row = cost(LABEL, ours, peer, 5.0)
    assert (row.ratio, row.reached) == (6.0, True)
    assert cost(LABEL, [NOTHING], [Run(2, 3.0)], 5.0).ratio == 0.0
    assert cost(LABEL, [Run(20, 0.5)], [NOTHING], 5.0).ratio == LARGEST_RATIO


def test_rows_hold_only_numbers_that_json_has() -> None:
    row = cost(LABEL, [NOTHING], [NOTHING], 5.0)
    assert all(map(math.isfinite, [row.ours, row.peer, row.ratio, row.low, row.high]))
    assert all(map(math.isfinite, [*row.measured, *row.peer_measured]))


def test_runs_take_turns() -> None:
    turns: list[str] = []

    def contender(name: str) -> Callable[[], Run]:
        return lambda: turns.append(name) or Run(1.0, 1.0)  # type: ignore[func-returns-value]

    assert len(interleaved([contender("a"), contender("b")], 3)) == 3
    assert turns == ["a", "b"] * 3


def test_cells_have_the_names_of_the_contract() -> None:
    assert Cell().name == "lo mss1500 1str block65536 buf10M"
    assert Cell().words()[:2] == ["--packet", 1472]
    assert len(grid.groups()) == 2 + 3 * 3
    assert haul.Cell(1500, 366).name == "rtt366 mtu1500 loss0"
    assert haul.Cell(9000, 100, 0.001).name == "rtt100 mtu9000 loss0.1"
    assert len(haul.groups()) == 12


@pytest.mark.parametrize(("mtu", "gbps"), [(1500, 9.467), (9000, 9.909)])
def test_udt_payload_of_a_saturated_link(mtu: int, gbps: float) -> None:
    assert haul.payload_bps(mtu) / 1e9 == pytest.approx(gbps, abs=0.001)


def test_only_losses_may_cost_more_than_a_tenth() -> None:
    assert haul.Cell(1500, 366).must == 0.9
    assert haul.Cell(1500, 100, 0.001).must == 0.8
    assert (haul.Cell(1500, 0).omit_s, haul.Cell(1500, 366).omit_s) == (3.0, 9.15)
    assert haul.Cell(1500, 366).seconds(Effort(3, False)) == 40
    assert isinstance(speed(LABEL, [Run(1, 1)], [Run(1, 1)], 1.0), Duel)
