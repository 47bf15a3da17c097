"""What the RBUDP benches compute by themselves: cells, ratios under chance, rates, bursts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from _emulator.figures import LARGEST_RATIO, Label
from _emulator.runs import Run
from _rbudp import against_model, cells, loopback, lossy, pacing
from _rbudp.cells import GB, MB, Cell
from _rbudp.probing import Probe, one_blast, rbudp
from farline.models.rbudp_corrected import PassDistribution

STAMP: dict[str, Any] = {"valid": True, "reasons": []}
PACED_BPS = 8e6


def blast_run(payload_bytes: int, seconds: float, passes: int = 1) -> Run[Probe]:
    """A run of one blast of packets of 1456 bytes, as its record has it."""
    blast = {"bytes": payload_bytes, "passes": passes, "elapsed_us": round(seconds * 1e6)}
    sender = {"role": 0, "granted": {"packet_bytes": 1472}, "blasts": [blast]}
    return Run(Probe({"streams": [sender, {"role": 1, "blasts": []}]}), STAMP)


def cost_run(cpu_s: float) -> Probe:
    """A run of 10^9 bytes whose server used so much CPU time."""
    summary = {"forward": {"bytes": 10**9, "total_bps": 3e10}}
    return Probe(
        {"summary": summary, "server": {"cpu": {"user_s": cpu_s / 2, "system_s": cpu_s / 2}}}
    )


def test_the_chosen_cells_cover_every_value_and_each_is_there_once() -> None:
    chosen = cells.chosen()
    assert {cell.payload_bytes for cell in chosen} == set(cells.PAYLOADS_BYTES)
    assert {cell.rate_bps for cell in chosen} == set(cells.RATES_BPS)
    assert {cell.rtt_ms for cell in chosen} == set(cells.RTTS_MS)
    assert {cell.loss for cell in chosen} == set(cells.LOSSES)
    assert len({cell.group for cell in chosen}) == len(chosen) == 24
    blasts_s = sum(cell.prediction().time_s * against_model.runs_of(cell) for cell in chosen)
    assert blasts_s < 450, "the rest of a quarter of an hour goes to setting up"


def test_the_grid_is_all_of_them_but_what_takes_too_long() -> None:
    every = len(cells.PAYLOADS_BYTES) * len(cells.RATES_BPS) * len(cells.RTTS_MS)
    assert 0.85 < len(cells.grid()) / (every * len(cells.LOSSES) * 2) < 1
    assert max(cell.prediction().time_s for cell in cells.grid()) <= cells.LONGEST_S


def test_a_cell_says_what_it_is() -> None:
    cell = Cell(600 * MB, 0.6 * GB, 110, 0.07)
    assert (cell.name, cell.group) == ("600MB 0.6G rtt110 loss7", "600MB-0.6G-rtt110-loss7")
    assert cell.pipe() == {"delay_s": 0.055, "mtu_bytes": 1500, "loss": {"random": 0.07}}
    assert (cell.case().packet_payload_bytes, cell.case(packet_payload_bytes=8).packets) == (
        1456,
        75_000_000,
    )
    assert Cell(2 * GB, 9 * GB, 0, 0.0, True).model == "early"
    assert Cell(2 * GB, 9 * GB, 0, 0.0).mtu_bytes == 9000


def test_a_blast_without_loss_is_held_to_three_per_cent() -> None:
    cell = Cell(100 * MB, 0.6 * GB, 110, 0.0)
    stated_s = 8 * 100e6 / 0.6e9 + 0.11
    exact = against_model.time_row(cell, [blast_run(100 * MB, stated_s)], 0.0)
    assert exact.ratio == LARGEST_RATIO
    within = against_model.time_row(cell, [blast_run(100 * MB, stated_s / 1.02)], 0.0)
    assert within.reached and within.ratio == pytest.approx(1.5, rel=0.01)
    beyond = against_model.time_row(cell, [blast_run(100 * MB, stated_s / 0.96)], 0.0)
    assert not beyond.reached and beyond.ratio == pytest.approx(0.75, rel=0.01)


def test_the_round_trip_that_the_machine_adds_is_part_of_the_path() -> None:
    cell = Cell(MB, 9 * GB, 0, 0.0)
    slow = [blast_run(MB, 8e6 / 9e9 + 0.0005)]
    assert against_model.time_row(cell, slow, 0.0005).reached
    assert not against_model.time_row(cell, slow, 0.0).reached


def test_chance_widens_what_is_allowed_and_more_runs_narrow_it() -> None:
    cell = Cell(100 * MB, 1 * GB, 366, 0.01)
    model_s = cell.prediction(0.0, 1456).time_s
    off = [blast_run(100 * MB, model_s * 1.06, 3)]
    few = against_model.time_row(cell, off * 3, 0.0)
    many = against_model.time_row(cell, off * 300, 0.0)
    assert few.ratio > 1 > many.ratio > 0.5


def test_passes_are_held_against_what_chance_does_to_their_sum() -> None:
    cell = Cell(600 * MB, 0.6 * GB, 110, 0.07)
    # The case of He et al. 2002: 4.54 resends on average.
    usual = against_model.passes_row(cell, [blast_run(600 * MB, 9, n) for n in (5, 6, 5, 6, 6)])
    assert usual.reached and usual.peer == pytest.approx(5.54, abs=0.02)
    always_few = against_model.passes_row(cell, [blast_run(600 * MB, 9, 4)] * 5)
    always_many = against_model.passes_row(cell, [blast_run(600 * MB, 9, 8)] * 5)
    assert not always_few.reached and not always_many.reached


@pytest.mark.parametrize(("packets", "loss"), [(687, 0.33), (400_000, 0.07)])
@pytest.mark.parametrize("count", [1, 5])
def test_the_limits_of_a_sum_hold_the_middle_of_drawn_ones(
    packets: int, loss: float, count: int
) -> None:
    law = PassDistribution(packets, loss).probabilities()
    low, high = against_model.sum_limits(law, count, 0.99)
    chance = np.random.default_rng(4)
    sums = chance.choice(len(law), (200_000, count), p=law / law.sum()).sum(axis=1)
    assert np.mean(sums < low) <= 0.006 and np.mean(sums > high) <= 0.006
    assert np.mean((sums < low + 1) | (sums > high - 1)) > 0.008, "and no more than that"


def arrivals(gaps_s: list[float], batch_bytes: int) -> pacing.Arrivals:
    """Batches of one size with these pauses before them."""
    at_ns = np.cumsum(np.array([0.0, *gaps_s]) * 1e9).astype(np.int64)
    return pacing.Arrivals(at_ns, np.full(len(at_ns), batch_bytes, np.int64))


def test_an_even_pace_is_the_rate_and_leaves_nothing_waiting() -> None:
    even = arrivals([0.001] * 1000, 1000)
    assert even.delivered_bps == pytest.approx(PACED_BPS)
    assert even.most_waiting_bytes(PACED_BPS) == pytest.approx(0, abs=0.01)
    row = pacing.rate_row(PACED_BPS, [even])
    assert row.reached and row.case == "lo paced 0.008G"


def test_what_comes_at_once_waits() -> None:
    late = arrivals([0.001] * 100 + [0.004] + [0.0005] * 8 + [0.001] * 100, 1000)
    assert late.most_waiting_bytes(PACED_BPS) == pytest.approx(4000, rel=0.01)
    row = pacing.burst_row(PACED_BPS, [late])
    assert row.ours == pytest.approx(4, rel=0.02)
    assert (row.peer, row.reached) == (10.0, True)
    later = arrivals([0.001] * 100 + [0.014] + [0.0005] * 28 + [0.001] * 100, 1000)
    assert not pacing.burst_row(PACED_BPS, [later]).reached


def test_a_late_start_is_no_credit() -> None:
    idle = arrivals([1.0] + [0.0] * 9, 1000)
    assert idle.most_waiting_bytes(PACED_BPS) == pytest.approx(9000)


@pytest.mark.parametrize(("off", "reached"), [(0.004, True), (0.006, False), (-0.006, False)])
def test_half_a_per_cent_is_allowed(off: float, reached: bool) -> None:
    off_pace = arrivals([0.001 / (1 + off)] * 1000, 1000)
    assert pacing.rate_row(PACED_BPS, [off_pace]).reached == reached


def test_only_full_batches_of_the_data_port_are_data() -> None:
    sniffed = pacing.Sniffed(
        np.arange(4, dtype=np.int64),
        np.array([28 + 1472, 28 + 44 * 1472, 28 + 64, 28 + 1472]),
        np.array([5470, 5470, 5470, 53]),
    )
    data = sniffed.arrivals(5470, 1472)
    assert data.payload_bytes.tolist() == [1456, 44 * 1456]
    assert data.at_ns.tolist() == [0, 1]


def test_a_cheaper_receiver_has_a_ratio_above_one() -> None:
    rounds = [(cost_run(0.4), cost_run(0.3), cost_run(0.1))] * 3
    label = Label("plain", "gather", "s/GB")
    assert loopback.cost_row(label, rounds, 0).ratio == pytest.approx(4 / 3)
    assert loopback.cost_row(label, rounds, 1).ratio == pytest.approx(3)
    dearer = [(cost_run(0.3), cost_run(0.4), cost_run(0.1))] * 3
    assert not loopback.cost_row(label, dearer, 0).reached


def test_three_times_cubic_and_the_link() -> None:
    pair = Run(lossy.Pair(ours_bps=9e9, whole_bps=8.6e9, cubic_bps=4e6), STAMP)
    row = lossy.against_cubic(Label("g", "c", "Gb/s"), [pair])
    assert (row.ours, row.peer) == (9.0, 0.004)
    assert row.ratio == pytest.approx(750)
    assert lossy.payload_bps(1500) / 1e9 == pytest.approx(9.467, abs=0.001)
    assert lossy.payload_bps(9000) / 1e9 == pytest.approx(9.909, abs=0.001)


def test_commands_state_their_rate_and_that_the_path_is_theirs() -> None:
    words = " ".join(map(str, rbudp(6e8, "--early", *one_blast(1000))))
    assert "--rate 600000000bit/s --shared-path allow --early" in words
    assert "-n 1000 --payload 1000 --in-flight 1" in words


def test_what_arrives_is_timed_from_its_first_byte_to_its_last() -> None:
    """Two blasts of half a second each; the first one's gaps take longer than the whole second."""
    rtt_us = round(1e6 * lossy.RTT_S)
    blasts = [{"bytes": 5, "elapsed_us": 900_000}, {"bytes": 5, "elapsed_us": 650_000}]
    sender = {"bytes": 10, "elapsed_us": 1_000_000, "blasts": blasts}
    assert lossy.arriving_s(sender) == pytest.approx((1_150_000 - rtt_us) / 1e6)
    blasts[0]["elapsed_us"] = 1_400_000
    assert lossy.arriving_s(sender) == pytest.approx((1_400_000 - rtt_us) / 1e6)
