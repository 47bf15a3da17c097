"""Verdicts on how a transfer shares: what they say, and at which figures they change."""

from __future__ import annotations

from typing import Any

import pytest

from farline.fairness.contest import BACKGROUND, SUBJECT, Contest, Trial, contests
from farline.fairness.wire import Seen
from farline.findings.contention import contention_verdict, flows_text, side_text

CUBIC = ("native", {"transport": "tcp", "tcp.congestion_control": "cubic"})
RBUDP = ("native", {"transport": "rbudp"})


def contest(mine: float, theirs: float, repetitions: int = 1) -> Contest:
    """A transfer and a background that would each take all of a line of 100, together so."""
    trials = []
    for number in range(repetitions):
        trials += [
            Trial("x", None, number, {SUBJECT: Seen(100.0)}),
            Trial(None, 100.0, number, {BACKGROUND: Seen(100.0, 0.01, 0.0)}),
            Trial(
                "x", 100.0, number,
                {SUBJECT: Seen(mine + number), BACKGROUND: Seen(theirs - number, 0.02, 0.0)},
            ),
        ]  # fmt: skip
    return contests(trials, 100.0)[0]


def test_a_greedy_transfer_is_said_to_take_more_than_its_share() -> None:
    found = contention_verdict(contest(79, 21), ("native", {**CUBIC[1], "streams": 4}), CUBIC)
    assert found.level == "harsh"
    assert found.line == (
        "TCP cubic, 4 streams takes 1.6 times its share from one CUBIC flow; harms it by 0.79"
        " (a fair sharer: 0.50): it takes more than its share from others"
    )
    assert found.remedies == ("fewer streams than 4 streams: -P 2",)


def test_a_transfer_that_does_not_give_way_is_for_dedicated_paths() -> None:
    found = contention_verdict(contest(95, 5), RBUDP, CUBIC)
    assert found.level == "unfit"
    assert found.line.endswith("it does not yield to other traffic; use it on dedicated paths only")
    assert any("--transport tcp" in line for line in found.remedies)


def test_an_equal_sharer_is_fair_though_it_harms_by_half() -> None:
    found = contention_verdict(contest(50, 50), CUBIC, CUBIC)
    assert found.level == "fair" and found.remedies == ()
    assert "takes 1.00 of its share beside one CUBIC flow; harms it by 0.50" in found.line


def test_a_yielding_transfer_is_gentle() -> None:
    found = contention_verdict(contest(20, 80), ("native", {"transport": "udt"}), CUBIC)
    assert found.level == "gentle" and "it yields to others" in found.line


def test_an_interval_that_is_known_can_tell_a_smaller_difference() -> None:
    def of(harm: float) -> Contest:
        return contest(100 * harm, 100 * (1 - harm), repetitions=2)

    assert contention_verdict(of(0.60), CUBIC, CUBIC, of(0.55)).level == "fair"
    assert contention_verdict(of(0.80), CUBIC, CUBIC, of(0.55)).level == "harsh"


@pytest.mark.parametrize(("harm", "level"), [(0.74, "fair"), (0.76, "harsh")])
def test_harm_counts_beside_that_of_the_reference(harm: float, level: str) -> None:
    """Ware et al. 2019: no worse than what is deployed already."""
    found = contention_verdict(
        contest(100 * harm, 100 * (1 - harm)), CUBIC, CUBIC, contest(60, 40), "one CUBIC flow"
    )
    assert found.level == level
    assert "(one CUBIC flow: 0.60)" in found.line


def test_evidence_has_use_index_and_harm_to_delay() -> None:
    found = contention_verdict(contest(50, 50), CUBIC, CUBIC)
    text = "\n".join(found.evidence)
    assert "used 100 % of the line" in text
    assert "harm to the delay of the background: 0.50" in text
    assert "did not give way" not in text


@pytest.mark.parametrize(
    ("side", "name", "flows"),
    [
        (CUBIC, "TCP cubic", "one CUBIC flow"),
        (("iperf3", {"streams": 2}), "iperf3 TCP, 2 streams", "2 iperf3 TCP flows"),
        (("native", {"transport": "udt"}), "UDT", "one UDT flow"),
    ],
)
def test_sides_have_names(side: Any, name: str, flows: str) -> None:
    assert side_text(*side) == name
    assert flows_text(side) == flows
