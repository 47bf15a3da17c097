"""Past transfers as evidence: likeness, tiers, age, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from farline.store.paths import PastTransfer
from farline.tuning.belief import log_of, rate_of
from farline.tuning.grids import knob_grid, stream_grid, stream_prior
from farline.tuning.history import (
    TIER_CAPS,
    belief_after,
    evidence_for,
    features_of,
    likeness,
)
from farline.tuning.situation import Setting
from tests.unit.tuning.histories import FLAT, NOW_S, RISING, WAN, row, sweep

GRID = stream_grid()
DECLINING = (1500, 1200, 900, 600, 400, 300)


def test_features_and_likeness_have_their_reference_values() -> None:
    one = features_of(1e9, 100, 4, 4, 40.0, 1e10, 32 << 20)
    reference = [29.897353, 6.643856, 2, 2, 5.323730, 0.576393]
    assert list(one.values()) == pytest.approx(reference, abs=5e-7)
    other = features_of(2e8, 400, 4, 8, 40.0, 1e10, 32 << 20)
    assert likeness(one, other) == pytest.approx(0.272827, abs=5e-7)
    assert likeness(one, other, width=2.0) == pytest.approx(0.722723, abs=5e-7)


def test_what_is_unknown_of_one_is_neither_alike_nor_far() -> None:
    known = features_of(1e9, 100, 4, 4, 40.0, 1e10, 32 << 20)
    unknown = features_of(1e9, 100, 4, 4, None, None, None)
    assert likeness(known, known) == 1
    assert 0.2 < likeness(known, unknown) < 1
    assert likeness(unknown, unknown) == 1


def best(rows: list[PastTransfer]) -> int:
    belief = belief_after(stream_prior(GRID, WAN), evidence_for(rows, WAN, GRID))
    return GRID.settings[int(np.argmax(belief.mean))].streams


def test_the_same_path_and_kind_decides() -> None:
    assert best([*sweep(DECLINING), *sweep(DECLINING)]) <= 2
    assert best([]) == 32


def test_a_near_witness_is_not_shouted_down_by_many_far_ones() -> None:
    far = [
        one
        for number in range(60)
        for one in sweep(RISING, path=f"near > far{number}", to_host=f"far{number}",
                         to_names=(f"far{number}",))
    ]  # fmt: skip
    near = sweep(DECLINING)
    assert best(far) == 32
    assert best([*far, *near]) <= 4
    evidence = evidence_for([*far, *near], WAN, GRID)
    assert sum(group.weight for group in evidence.groups) <= sum(TIER_CAPS.values())
    assert evidence.count("other") == 360
    assert evidence.count("kind") == 6


def test_a_changed_host_makes_its_past_another_path_s_and_is_told() -> None:
    old = sweep(DECLINING, to_kernel="5.10.0")
    evidence = evidence_for(old, WAN, GRID)
    assert evidence.changed == ("the other host's kernel was 5.10.0 and is 6.1.0",)
    assert (evidence.count("kind"), evidence.count("other")) == (0, 6)
    assert evidence.text == "6 past transfers on other paths"
    assert evidence_for(sweep(FLAT), WAN, GRID).text == "6 past transfers like these on this path"


def test_another_route_is_noticed_by_its_round_trip_time() -> None:
    (change,) = evidence_for(sweep(FLAT, rtt_ms=90.0), WAN, GRID).changed
    assert change == "the RTT was 90 ms and is 40 ms"


def test_a_round_trip_that_waits_behind_others_is_no_other_route() -> None:
    busy = sweep(FLAT, rtt_ms=20.0, loaded_rtt_ms=38.0)
    assert evidence_for(busy, WAN, GRID).changed == ()
    assert evidence_for(busy, WAN, GRID).count("kind") == 6


def test_samples_of_one_search_are_one_group_however_fast_and_behind_whatever_queue() -> None:
    """Their bytes are their rates; their round trips are what others leave of the path's."""
    memory = replace(WAN, modality="T", file_bytes=None, files=None, concurrency=1, pipelining=1)
    samples = [
        replace(
            one, kind="probe", modality="T", files=None, concurrency=1, pipelining=1,
            duration_s=3.0, bytes=int(one.rate_bps * 3 / 8), steady_bps=one.rate_bps,
            rtt_ms=40.0 + 12 * at, loaded_rtt_ms=95.0,
        )
        for at, one in enumerate(sweep(DECLINING))
    ]  # fmt: skip
    assert any(one.short for one in samples)
    evidence = evidence_for(samples, memory, GRID)
    assert evidence.count("kind") == 6
    (group,) = evidence.groups
    assert group.counts.sum() == 6


def test_old_transfers_count_less() -> None:
    year_s = 365 * 86_400
    fresh, old = sweep(DECLINING), sweep(DECLINING, ended_s=NOW_S - year_s)
    weights = [evidence_for(rows, WAN, GRID).groups for rows in (fresh, old)]
    assert weights[0][0].weight == pytest.approx(1.0, rel=0.01)
    assert weights[1] == () or weights[1][0].weight < 1e-4


@pytest.mark.parametrize(
    "more",
    [
        {"capped": True}, {"duration_s": 1.0, "rtt_ms": 100.0}, {"transport": "udt"},
        {"streams": None}, {"streams": 3000},
    ],
)  # fmt: skip
def test_what_tells_nothing_of_the_path_is_left_out(more: dict[str, object]) -> None:
    one = replace(row(8, 900), **more)  # type: ignore[arg-type]
    assert evidence_for([one], WAN, GRID).groups == ()


def test_the_level_of_the_path_is_known_from_its_own_kind_alone() -> None:
    evidence = evidence_for(sweep(FLAT), WAN, GRID)
    belief = belief_after(stream_prior(GRID, WAN), evidence)
    assert rate_of(float(belief.mean.mean())) == pytest.approx(1e9, rel=0.15)
    assert float(np.sqrt(belief.covariance[3, 3])) < 0.7
    other = evidence_for(sweep(FLAT, to_names=("x",), to_host="x", path="near > x"), WAN, GRID)
    assert other.levels == ()
    unknown = belief_after(stream_prior(GRID, WAN), other)
    assert float(np.sqrt(unknown.covariance[3, 3])) > 4


def test_three_knobs_take_their_evidence_from_logs_of_other_tools() -> None:
    grid = knob_grid()
    rows = [
        row(
            c * p, 100 * c, tool="gridftp", concurrency=c, parallelism=p, pipelining=q,
            kind="ingested",
        )
        for c in (1, 4, 16) for p in (1, 4) for q in (1, 8)
    ]  # fmt: skip
    (group,) = evidence_for(rows, WAN, grid).groups
    assert group.counts.sum() == len(rows)
    assert group.sums.sum() == pytest.approx(sum(log_of(one.rate_bps) for one in rows))


def busy_path(*ended: tuple[int, float, int, str]) -> list[PastTransfer]:
    """Transfers by streams, Mbit/s, minutes ago and congestion control."""
    return [
        row(
            streams, mbps, ended_s=NOW_S - 60 * minutes, started_s=NOW_S - 60 * minutes - 10,
            congestion_control=control,
        )
        for streams, mbps, minutes, control in ended
    ]  # fmt: skip


def test_a_cliff_is_seen_among_transfers_of_one_search_alone() -> None:
    """Other controls, other days: what was slow then was not slow for its streams."""
    alike = busy_path((8, 800, 9, "cubic"), (16, 1500, 8, "cubic"), (32, 40, 7, "cubic"))
    found = evidence_for(alike, WAN, GRID)
    assert found.collapsed == Setting(32)
    known = "2 past transfers like these on this path"
    assert found.text == f"{known} (the rate collapsed at 32 streams)"
    for unlike in (
        busy_path((1, 4000, 9, "bbr"), (8, 200, 8, "cubic"), (32, 800, 7, "cubic")),
        busy_path((4, 5000, 28_800, "cubic"), (8, 1000, 2880, "cubic"), (32, 1150, 2879, "cubic")),
        busy_path((16, 1500, 9, "cubic"), (32, 40, 8, "cubic"), (32, 2000, 2, "cubic")),
        [*alike, *busy_path((32, 1600, -30, "cubic"))],
    ):
        assert evidence_for(unlike, replace(WAN, now_s=NOW_S + 3600), GRID).collapsed is None
    assert evidence_for(alike, replace(WAN, now_s=NOW_S + 40 * 86_400), GRID).collapsed is None


def test_a_path_that_is_measured_all_the_time_can_change_its_route() -> None:
    """Each follows the one before within minutes; what came after the change is of another path."""
    before = [
        row(8, 900, rtt_ms=20.0, loaded_rtt_ms=25.0, ended_s=NOW_S - 600 * (300 - at))
        for at in range(280)
    ]
    after = [
        row(8, 300, rtt_ms=80.0, loaded_rtt_ms=85.0, ended_s=NOW_S - 600 * (20 - at))
        for at in range(20)
    ]
    now = replace(WAN, rtt_ms=80.0)
    evidence = evidence_for([*before, *after], now, GRID)
    assert (evidence.count("kind"), evidence.count("other")) == (20, 280)
    back = evidence_for([*before, *after], replace(WAN, rtt_ms=20.0), GRID)
    assert back.changed == ("the RTT was 80 ms and is 20 ms",)
