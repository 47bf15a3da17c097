"""What an experiment comes to: measures within a repetition, intervals over repetitions."""

from __future__ import annotations

import pytest

from farline.fairness.contest import BACKGROUND, SUBJECT, Trial, contests, estimate
from farline.fairness.curve import ideal_rates
from farline.fairness.dynamics import Moment
from farline.fairness.wire import Seen

LOADS = [float(load) for load in range(1, 11)]


def experiment(repetitions: int = 2, greed: float = 0.0) -> list[Trial]:
    """A transfer that shares ideally, but for what it takes of the background besides."""
    trials = []
    for number in range(repetitions):
        trials.append(Trial("tcp", None, number, {SUBJECT: Seen(9.8)}))
        for load in LOADS:
            alone = Seen(min(load, 9.8), rtt_s=0.01, loss=0.0)
            mine, theirs = ideal_rates(load, 10.0)
            taken = greed * theirs
            both = {
                SUBJECT: Seen(mine + taken, 0.02, 0.01),
                BACKGROUND: Seen(theirs - taken, 0.02, 0.01),
            }
            moments = (Moment(0.0, 1.0, mine, theirs),)
            trials.append(Trial(None, load, number, {BACKGROUND: alone}))
            trials.append(Trial("tcp", load, number, both, moments))
    return trials


def test_an_ideal_sharer_has_the_ideal_curve() -> None:
    (contest,) = contests(experiment(), 10.0)
    assert contest.alone_bps.mean == pytest.approx(9.8)
    assert [point.load_bps for point in contest.points] == LOADS
    assert contest.knee is not None and contest.knee.load_bps == pytest.approx(5.0, abs=0.1)
    for point in contest.points:
        assert point.mean("utilisation") == pytest.approx(1.0)
        assert point.mean("jain_demand") == pytest.approx(1.0, abs=1e-3)
        assert point.mean("max_min_distance") == pytest.approx(0.0, abs=0.03)
        assert point.mean("convergence_s") == pytest.approx(1.0)
    full = contest.full
    assert full.mean("harm") == pytest.approx(full.mean("harm_fair"))
    assert full.mean("harm_delay") == pytest.approx(0.5)
    assert full.mean("harm_loss") == 1.0


def test_small_background_is_not_harmed_by_a_fair_sharer() -> None:
    (contest,) = contests(experiment(), 10.0)
    assert [p.mean("harm") for p in contest.points[:5]] == pytest.approx([0.0] * 5)


def test_greed_is_seen_in_share_and_harm() -> None:
    (contest,) = contests(experiment(greed=0.8), 10.0)
    assert contest.full.mean("share") == pytest.approx(1.8, rel=0.02)
    assert contest.full.mean("harm") == pytest.approx(1 - 1 / 9.8)


def test_a_transfer_that_is_not_measured_alone_has_no_contest() -> None:
    trials = [one for one in experiment() if one.load_bps is not None]
    assert contests(trials, 10.0) == []


def test_a_load_without_the_background_alone_has_no_point() -> None:
    trials = [one for one in experiment() if (one.subject, one.load_bps) != (None, 3.0)]
    (contest,) = contests(trials, 10.0)
    assert 3.0 not in [point.load_bps for point in contest.points]


def test_measures_pair_trials_of_one_repetition() -> None:
    """A slower repetition has the same harm: its own runs alone were slow too."""
    slow = [
        Trial(
            one.subject,
            one.load_bps,
            1,
            {side: Seen(0.9 * seen.rate_bps) for side, seen in one.seen.items()},
        )
        for one in experiment(1)
    ]
    (contest,) = contests([*experiment(1), *slow], 10.0)
    harm = contest.full.measures["harm"]
    assert harm.half == pytest.approx(0.0, abs=1e-9)
    assert contest.full.measures["background_bps"].half > 0


def test_an_exponent_of_distance_needs_distances_that_differ() -> None:
    (near,) = contests(experiment(), 10.0)
    (far,) = contests(experiment(), 10.0, rtts_s={"tcp": (0.01, 0.04)})
    assert near.full.mean("rtt_exponent") is None
    assert far.full.mean("rtt_exponent") == pytest.approx(0.0)


def test_students_interval_over_repetitions() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2.0 and found.half == pytest.approx(2.4841, abs=1e-3)
    assert estimate([4.0]).low is None and estimate([4.0]).half == 0.0
    rates = estimate([1.0, 2.0, 3.0], above_zero=True)
    assert rates.low is not None and rates.low > 0
