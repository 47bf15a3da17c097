"""Every step of the controller on links whose rate over streams is known, without noise.

`time:streams reason difference`: what was decided, from when on how many streams, and the
difference of the logs of both rates that decided it. These are its reference steps.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farline.tuning.online import TICK_S, Decision, OnlineController, OnlineSettings, Tick

Rate = Callable[[int, float], float]


def link(count: int, stream: float = 1.0, cap: float = 10.0, hurt: float = 0.15) -> float:
    """Streams up to the cap; beyond it they disturb each other."""
    return min(count * stream, cap) / (1 + hurt * max(0.0, count * stream / cap - 1))


def shared(count: int) -> float:
    """Ten other flows want all of a link of 10."""
    return 10 * count / (count + 10)


def shared_loss(count: int) -> float:
    return 0.001 * max(0.0, (count + 10) / 10 - 1)


def no_loss(_count: int) -> float:
    return 0.0


def from_60(before: float, after: float) -> Callable[[float], float]:
    return lambda at_s: after if at_s >= 60 else before


HALVED, FREED, SLOWED = from_60(10, 5), from_60(5, 10), from_60(1, 0.25)

Case = tuple[OnlineSettings, Rate, Callable[[int], float], float, float | None, str]


def settings(first: int, is_known: bool = False, is_polite: bool = False) -> OnlineSettings:
    return OnlineSettings(first, 64, 1.0, is_known, is_polite)


CASES: dict[str, Case] = {
    "knee at 10": (
        settings(8), lambda n, t: link(n), no_loss, 120, None,
        "2.5:16 probe; 6.5:8 back -0.01; 10.0:16 keep +0.14; 10.0:32 probe; 11.5:16 back -0.20;"
        " 11.5:11 probe; 15.0:16 confirm +0.07; 18.5:11 keep +0.07; 18.5:8 probe;"
        " 20.0:11 back -0.21; 30.0:14 small; 34.0:11 back -0.04; 64.0:9 small; 67.5:11 back -0.09;"
        " 84.5:14 small; 88.5:11 back -0.04",
    ),
    "knee at 40": (
        settings(8), lambda n, t: link(n, stream=0.25), no_loss, 120, None,
        "2.5:16 probe; 3.5:16 keep +0.55; 3.5:32 probe; 4.5:32 keep +0.55; 4.5:64 probe;"
        " 8.5:32 back -0.01; 12.0:64 keep +0.14; 52.0:51 small; 55.5:51 keep +0.05; 55.5:36 probe;"
        " 59.0:51 back -0.06; 89.0:41 small; 92.5:41 keep +0.04; 92.5:29 probe; 93.5:41 back -0.32",
    ),
    "one thread fills": (
        settings(8), lambda n, t: link(n, stream=12, hurt=0.3), no_loss, 120, None,
        "2.5:16 probe; 4.0:8 back -0.74; 7.5:4 probe; 11.0:4 keep +0.51; 11.0:2 probe;"
        " 14.5:2 keep +0.41; 14.5:1 probe; 18.0:1 keep +0.29; 28.0:2 small; 32.0:1 back -0.29",
    ),
    "plateau at 10": (
        settings(8), lambda n, t: link(n, hurt=0), no_loss, 120, None,
        "2.5:16 probe; 6.5:16 keep +0.08; 6.5:32 probe; 10.5:16 back +0.00; 10.5:11 probe;"
        " 14.0:16 back +0.00; 24.0:20 small; 28.0:16 back +0.00; 58.0:13 small; 61.5:16 back +0.00;"
        " 76.5:20 small; 80.5:16 back +0.00",
    ),
    "known, the link is halved": (
        settings(10, is_known=True), lambda n, t: link(n, cap=HALVED(t)), no_loss, 100, None,
        "15.0:12 small; 19.0:10 back -0.03; 49.0:8 small; 50.0:10 back -0.22; 61.0:10 alarm -0.83;"
        " 64.0:20 probe; 65.5:10 back -0.23; 65.5:7 probe; 69.0:7 keep +0.08; 69.0:5 probe;"
        " 72.5:7 confirm +0.06; 76.0:5 keep +0.06; 76.0:4 probe; 77.5:5 back -0.22; 87.5:6 small;"
        " 91.5:5 back -0.03",
    ),
    "known, streams become slow": (
        settings(10, is_known=True), lambda n, t: link(n, stream=SLOWED(t)), no_loss, 100, None,
        "15.0:12 small; 19.0:10 back -0.03; 49.0:8 small; 50.0:10 back -0.22; 61.0:10 alarm -1.39;"
        " 64.0:20 probe; 65.0:20 keep +0.69; 65.0:40 probe; 66.0:40 keep +0.69; 66.0:64 probe;"
        " 70.0:40 back -0.09; 73.5:57 probe; 77.5:40 back -0.06; 87.5:50 small; 91.5:40 back -0.04",
    ),
    "known, one tick at half the rate is no change": (
        settings(10, is_known=True), lambda n, t: link(n) * (0.5 if t == 60 else 1), no_loss, 100,
        None,
        "15.0:12 small; 19.0:10 back -0.03; 49.0:8 small; 50.0:10 back -0.22; 65.0:12 small;"
        " 69.0:10 back -0.03",
    ),
    "known, the link becomes free and the rate shows nothing": (
        settings(5, is_known=True), lambda n, t: link(n, cap=FREED(t)), no_loss, 200, None,
        "15.0:6 small; 19.0:5 back -0.03; 49.0:4 small; 50.0:5 back -0.22; 65.0:6 small;"
        " 69.0:6 keep +0.18; 69.0:8 probe; 70.0:8 keep +0.29; 70.0:11 probe; 71.0:11 keep +0.21;"
        " 71.0:16 probe; 72.5:11 back -0.18; 86.0:14 small; 90.0:11 back -0.04; 120.0:9 small;"
        " 123.5:11 back -0.09; 140.5:14 small; 144.5:11 back -0.04; 189.5:9 small;"
        " 193.0:11 back -0.09",
    ),
    "too little is left to try anything": (settings(8), lambda n, t: link(n), no_loss, 20, 60, ""),
    "polite: growth that others pay for is refused": (
        settings(8, is_polite=True), lambda n, t: shared(n), shared_loss, 60, None,
        "2.5:16 probe; 6.5:8 back +0.18; 10.0:11 probe; 14.0:8 back +0.16; 24.0:10 small;"
        " 28.0:8 back +0.12; 58.0:6 small; 59.0:8 back -0.17",
    ),
    "not polite: it is taken": (
        settings(8), lambda n, t: shared(n) / (1 + 0.15 * max(0, n / 10 - 1)), shared_loss, 60,
        None,
        "2.5:16 probe; 6.5:16 keep +0.09; 6.5:32 probe; 10.5:16 back +0.01; 10.5:11 probe;"
        " 14.0:16 back -0.09; 24.0:20 small; 28.0:16 back +0.03; 58.0:13 small",
    ),
}  # fmt: skip


def text_of(one: Decision) -> str:
    difference = "" if one.difference is None else f" {one.difference:+.2f}"
    return f"{one.at_s:.1f}:{one.setting} {one.reason}{difference}"


def trace(case: Case) -> str:
    first, rate, loss, until_s, amount, _ = case
    controller = OnlineController(first)
    told, done = [], 0.0
    for step in range(1, round(until_s / TICK_S) + 1):
        at_s, count = step * TICK_S, controller.setting
        now = rate(count, at_s)
        done += now * TICK_S
        left = None if amount is None else max(0.0, amount - done) / 8
        told += controller.tick(Tick(at_s, now, now, now, loss(count), left))
    return "; ".join(map(text_of, told))


@pytest.mark.parametrize("name", CASES)
def test_the_controller_takes_its_reference_steps(name: str) -> None:
    assert trace(CASES[name]) == CASES[name][-1]


def test_an_alarm_at_the_most_streams_looks_for_fewer() -> None:
    """There is nothing above to try: to hold instead left copies at a third of the rate."""

    def quick(at_s: float) -> float:
        return 0.25 if at_s < 19 else 1.0

    found = trace(
        (settings(64, is_known=True), lambda n, t: link(n, stream=quick(t)), no_loss, 40, None, "")
    )
    assert "20.0:64 alarm -0.51; 23.0:32 probe; 26.5:32 keep" in found
    assert int(found.rpartition(":")[2].split()[0]) <= 16


def test_a_step_that_was_cut_short_says_as_much_by_losing_less() -> None:
    """From 51 to 64 a loss of 0.11 is what 0.3 is of a double step: fewer streams are tried."""
    quick = from_60(0.25, 1.0)
    found = trace(
        (settings(64, is_known=True), lambda n, t: link(n, stream=quick(t)), no_loss, 90, None, "")
    )
    assert "65.0:64 probe; 66.5:51 back -0.11; 66.5:26 probe" in found


def test_a_false_alarm_does_not_bring_the_small_probes_back_to_their_first_pace() -> None:
    """A search that changes nothing teaches nothing: probes stay as rare as they had become."""

    def dip(at_s: float) -> float:
        return 0.5 if 130 <= at_s < 133 else 1.0

    found = trace(
        (settings(10, is_known=True), lambda n, t: link(n) * dip(t), no_loss, 200, None, "")
    )
    later = found.partition("alarm")[2]
    assert "alarm" in found
    assert later.count("small") <= 1


def test_a_copy_that_begins_with_the_most_streams_looks_for_fewer() -> None:
    found = trace((settings(64), lambda n, t: link(n), no_loss, 60, None, ""))
    assert found.startswith("2.5:45 probe")
    assert int(found.rpartition(":")[2].split()[0]) <= 16


def test_the_most_streams_are_not_tried_twice_in_a_row() -> None:
    """From 45 both a double and a half step are 64."""
    found = trace((settings(45), lambda n, t: link(n, hurt=0), no_loss, 25, None, ""))
    assert found.count(":64 probe") == 1
