"""What a router's counters say of each side."""

from __future__ import annotations

from typing import Any

import pytest

from farline.fairness.wire import Wire, Wires, capacity_of, moments_of, seen_by, wires_between

TOPOLOGY: dict[str, Any] = {
    "name": "dumbbell",
    "main_link": "bottleneck",
    "links": [
        {"name": "bottleneck", "a": "left", "b": "right"},
        {"name": "source", "a": "source", "b": "left"},
        {"name": "other", "a": "other", "b": "left"},
        {"name": "sink", "a": "right", "b": "sink"},
        {"name": "other-sink", "a": "right", "b": "other-sink"},
    ],
}
MINE = Wires(Wire(1, 0), Wire(3, 0), Wire(0, 0), 0.01)
THEIRS = Wires(Wire(2, 0), Wire(4, 0), Wire(0, 0), 0.01)
COLUMNS = (
    "link", "direction", "start_us", "end_us", "in_packets", "out_packets", "out_bytes",
    "backlog_bytes", "rate_bps",
)  # fmt: skip


def samples(ticks: int, rates: dict[int, float], backlog_bytes: int = 0) -> dict[str, list[int]]:
    """Ten samples a second of every link; each carries its rate in Mbit/s, forward."""
    rows = []
    for tick in range(ticks):
        for link in range(5):
            sent = round(rates.get(link, 0.0) * 1e6 / 8 / 10)
            packets = sent // 1250
            lost = packets // 100 if link == 1 else 0
            rows.append(
                (link, 0, tick * 100_000, (tick + 1) * 100_000, packets + lost, packets, sent,
                 backlog_bytes if link == 0 else 0, 100_000_000 if link == 0 else 0)
            )  # fmt: skip
            rows.append((link, 1, tick * 100_000, (tick + 1) * 100_000, 9, 9, 9, 0, 0))
    return {name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)}


def test_a_side_has_what_left_the_network_at_its_end_within_the_window() -> None:
    columns = samples(20, {0: 100.0, 1: 60.0, 3: 60.0, 2: 40.0, 4: 40.0})
    seen = seen_by(columns, MINE, (500_000, 1_500_000))
    assert seen is not None
    assert seen.rate_bps == pytest.approx(60e6)


def test_loss_is_what_was_sent_and_never_arrived() -> None:
    columns = samples(20, {1: 60.0, 3: 60.0})
    seen = seen_by(columns, MINE, (0, 1_000_000))
    assert seen is not None and seen.loss == pytest.approx(1 / 101, rel=0.02)


def test_the_queue_of_the_shared_link_delays_both() -> None:
    columns = samples(10, {1: 60.0, 3: 60.0, 4: 1.0, 2: 1.0}, backlog_bytes=125_000)
    for wires in (MINE, THEIRS):
        seen = seen_by(columns, wires, (0, 1_000_000))
        assert seen is not None and seen.rtt_s == pytest.approx(0.02)


def test_a_window_without_samples_says_nothing() -> None:
    assert seen_by(samples(5, {3: 10.0}), MINE, (10_000_000, 11_000_000)) is None


def test_the_rate_of_the_line_is_that_of_the_shared_link() -> None:
    columns = samples(2, {})
    assert capacity_of(columns, Wire(0, 0)) == 100e6
    assert capacity_of(columns, Wire(3, 0)) is None


def test_moments_begin_with_the_newcomer() -> None:
    columns = samples(10, {3: 60.0, 4: 40.0})
    moments = moments_of(columns, MINE, THEIRS, 300_000, 700_000)
    assert [one.start_s for one in moments] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert [one.newcomer_bps for one in moments] == pytest.approx([60e6] * 4)
    assert [one.other_bps for one in moments] == pytest.approx([40e6] * 4)


def test_wires_follow_from_the_topology() -> None:
    assert wires_between(TOPOLOGY, "source", "sink", "bottleneck", 0.01) == MINE
    back = wires_between(TOPOLOGY, "sink", "source", "bottleneck", 0.01)
    assert back == Wires(Wire(3, 1), Wire(1, 1), Wire(0, 1), 0.01)


@pytest.mark.parametrize(
    ("client", "server", "shared", "words"),
    [
        ("source", "sink", "nowhere", "no link 'nowhere'"),
        ("left", "sink", "bottleneck", "'left' has 3 links"),
        ("source", "sink", "other", "does not lie between"),
    ],
)
def test_what_counters_cannot_tell_apart_is_refused(
    client: str, server: str, shared: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        wires_between(TOPOLOGY, client, server, shared, 0.01)
