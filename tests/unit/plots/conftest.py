"""Campaigns to draw, made once."""

from __future__ import annotations

import pytest

from farline.plots.data import CampaignData, campaign_data
from tests.support.campaigns import CAMPAIGN, KIB, MadeRun, made_campaign

FAILING = dict.fromkeys(range(9), "failed")


def as_data(runs: list[MadeRun]) -> CampaignData:
    """Values of a campaign as the store would give them."""
    samples = {str(run.record["run_id"]): run.samples for run in runs if run.samples}
    return campaign_data(CAMPAIGN, [run.row for run in runs], samples)


@pytest.fixture(scope="session")
def grid() -> CampaignData:
    """Three parameters, five repetitions, two failed runs and one that broke off."""
    failing = {3: "failed", 9: "partial", 20: "failed"}
    return as_data(
        made_campaign((1, 4), (64 * KIB, 256 * KIB, 1024 * KIB), failing=failing, duration_s=2.0)
    )


@pytest.fixture(scope="session")
def single() -> CampaignData:
    """One setting, repeated."""
    return as_data(made_campaign((4,), (128 * KIB,), ("bbr",), repetitions=4, duration_s=1.0))


@pytest.fixture(scope="session")
def both_ways() -> CampaignData:
    """One parameter, both directions at once."""
    return as_data(
        made_campaign(
            (1, 2, 4), (128 * KIB,), ("bbr",), 2, direction="bidirectional", duration_s=1.0
        )
    )


@pytest.fixture(scope="session")
def lost() -> CampaignData:
    """A campaign in which nothing completed."""
    runs = made_campaign((1, 2), (128 * KIB,), ("bbr",), 2, failing=FAILING)
    return as_data(runs)
