"""How many passes chance asks for: the distribution against what is known and what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.models.rbudp_corrected import PassDistribution

PAPER = PassDistribution(400_000, 0.07)


def test_the_distribution_of_600_mb_at_7_percent_loss() -> None:
    assert round(PAPER.mean, 3) == 4.539
    assert [round(PAPER.cdf(k), 4) for k in (3, 4, 5, 6)] == [0.0001, 0.5105, 0.9540, 0.9967]
    assert (PAPER.quantile(0.05), PAPER.quantile(0.5), PAPER.quantile(0.95)) == (4, 4, 5)


def test_it_is_what_draws_come_to() -> None:
    chance = np.random.default_rng(4)
    passes = chance.geometric(1 - 0.2, size=(20_000, 50)).max(axis=1) - 1
    expected = PassDistribution(50, 0.2)
    assert passes.mean() == pytest.approx(expected.mean, abs=4 * passes.std() / math.sqrt(20_000))
    for resends in range(5):
        assert (passes <= resends).mean() == pytest.approx(expected.cdf(resends), abs=0.015)


def test_without_loss_nothing_is_sent_again() -> None:
    none = PassDistribution(10**9, 0.0)
    assert (none.mean, none.quantile(0.999), none.cdf(0)) == (0.0, 0, 1.0)
    assert none.probabilities().tolist() == [1.0]


def test_one_packet_is_a_geometric_distribution() -> None:
    one = PassDistribution(1, 0.25)
    assert one.mean == pytest.approx(0.25 / 0.75, rel=1e-12)
    assert one.probabilities()[:4].tolist() == pytest.approx([0.75 * 0.25**k for k in range(4)])


def test_a_billion_packets_and_one_loss_in_a_billion_keep_their_digits() -> None:
    rare = PassDistribution(1e9, 1e-9)
    assert rare.cdf(0) == pytest.approx(math.exp(-1), rel=1e-8)
    assert rare.mean == pytest.approx(1 - math.exp(-1), rel=1e-8)


@given(
    packets=st.integers(1, 10**9),
    loss=st.floats(1e-12, 0.999),
    share=st.floats(0.001, 0.999),
)
def test_mean_quantiles_and_chances_are_of_one_distribution(
    packets: int, loss: float, share: float
) -> None:
    own = PassDistribution(packets, loss)
    chances = own.probabilities()
    assert chances.sum() == pytest.approx(1, abs=1e-12) and (chances >= 0).all()
    assert (chances * np.arange(len(chances))).sum() == pytest.approx(own.mean, rel=1e-9, abs=1e-12)
    at = own.quantile(share)
    assert own.cdf(at) >= share - 1e-12
    assert at == 0 or own.cdf(at - 1) < share + 1e-12


@given(packets=st.integers(1, 10**8), loss=st.floats(0.0, 0.9), more=st.floats(1.01, 1.1))
def test_more_loss_and_more_packets_take_more_passes(
    packets: int, loss: float, more: float
) -> None:
    here = PassDistribution(packets, loss).mean
    assert PassDistribution(packets, loss * more).mean >= here
    assert PassDistribution(packets * 2, loss).mean >= here


@pytest.mark.parametrize("share", [0.0, 1.0, 2.0])
def test_a_quantile_is_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match="allowed: between 0 and 1"):
        PAPER.quantile(share)


def test_no_blast_ends_before_it_began() -> None:
    assert PAPER.cdf(-1) == 0
