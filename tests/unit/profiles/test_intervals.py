"""Sample rows gathered into the intervals people look at."""

from __future__ import annotations

import pytest

from farline.cli.lines import interval_heads
from farline.profiles.intervals import IntervalFeed, intervals_of
from tests.support.runs import CLIENT, RECEIVER, SENDER, SERVER, columns, steady_rows


def rows(count: int, stream: int = 0, **more: int) -> list[dict[str, int]]:
    return steady_rows([1e9] * count, end=CLIENT, role=SENDER, stream=stream, **more)


def test_fine_samples_become_the_seconds_they_fall_into() -> None:
    shown = intervals_of(columns(rows(20, retransmits=1, rtt_us=70)), 1.0)
    assert [(one.start_s, one.end_s) for one in shown] == [(0.0, 1.0), (1.0, 2.0)]
    assert shown[0].bits_per_second(sends=True) == pytest.approx(1e9)
    assert (shown[0].total("retransmits"), shown[0].mean("rtt_us")) == (10, 70)


def test_streams_add_up_and_directions_stay_apart() -> None:
    back = steady_rows([3e9] * 10, end=CLIENT, role=RECEIVER, stream=2)
    shown = intervals_of(columns(rows(10) + rows(10, stream=1) + back), 1.0)[0]
    assert shown.bits_per_second(sends=True) == pytest.approx(2e9)
    assert shown.bits_per_second(sends=False) == pytest.approx(3e9)
    assert [stream.stream for stream in shown.side(sends=True)] == [0, 1]


def test_what_is_unknown_stays_unknown() -> None:
    shown = intervals_of(columns(rows(10)), 1.0)[0]
    assert (shown.total("retransmits"), shown.mean("rtt_us"), shown.cpu) == (None, None, None)


def test_cpu_of_the_process_is_counted_once_for_all_streams() -> None:
    both = rows(10, process_cpu_us=150_000) + rows(10, stream=1, process_cpu_us=150_000)
    assert intervals_of(columns(both), 1.0)[0].cpu == pytest.approx(1.5)


def test_the_other_end_is_not_shown() -> None:
    assert intervals_of(columns(steady_rows([1e9], end=SERVER, role=RECEIVER)), 1.0) == []
    assert intervals_of({}, 1.0) == []


def test_an_interval_comes_once_when_it_is_whole() -> None:
    feed, given = IntervalFeed(1.0), []
    for row in rows(25):
        given += feed.add(columns([row]))
    assert [one.end_s for one in given] == [1.0, 2.0]
    assert [one.end_s for one in feed.rest()] == [2.5]
    assert feed.rest() == []


def test_ticks_that_come_a_little_early_still_close_their_interval() -> None:
    early = [row | {"end_us": row["end_us"] - 300} for row in rows(10)]
    assert len(IntervalFeed(1.0).add(columns(early))) == 1


def test_no_sample_is_lost_between_two_intervals() -> None:
    feed, given = IntervalFeed(1.0), []
    fine = steady_rows([1e9] * 100, width_us=20_011, end=CLIENT, role=SENDER)
    for row in fine:
        given += feed.add(columns([row]))
    given += feed.rest()
    assert sum(s.bytes for one in given for s in one.streams) == sum(row["bytes"] for row in fine)


def test_a_sliver_after_the_end_is_no_interval() -> None:
    sliver = {"end": CLIENT, "role": SENDER, "start_us": 1_000_000, "end_us": 1_004_000, "bytes": 9}
    feed = IntervalFeed(1.0)
    assert len(feed.add(columns([*rows(10), sliver]))) == 1
    assert feed.rest() == []


@pytest.mark.parametrize("shift_us", [-20_000, -3_000, 4_000, 30_000])
def test_intervals_follow_each_other_without_gaps_however_samples_come(shift_us: int) -> None:
    late = [
        row | {"start_us": max(0, row["start_us"] + shift_us), "end_us": row["end_us"] + shift_us}
        for row in rows(30)
    ]
    shown = intervals_of(columns(late), 1.0)
    assert [(one.start_s, one.end_s) for one in shown[:3]] == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]


def test_rates_say_whose_they_are() -> None:
    assert interval_heads("tcp", both_ways=False)[1] == "sent"
    assert interval_heads("tcp", both_ways=False, receives=True)[1] == "received"
    assert interval_heads("udt", both_ways=True)[1:3] == ["sent", "received"]
