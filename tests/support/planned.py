"""Campaigns of a plan with made-up results, without a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from farline.campaign.journal import new_journal
from farline.campaign.machine import block_order
from farline.campaign.plan import Plan
from farline.campaign.settings import Campaign, Setting, make_campaign
from farline.plots.data import CampaignData, by_option, campaign_data
from farline.store import Entry
from farline.store.columns import run_row
from tests.support.campaigns import made_samples
from tests.support.driving import validate
from tests.support.paths import make_path
from tests.support.records import make_record

BpsOf = Callable[[Setting], float]
BLOCKS = 2


def planned_data(
    plan: Plan, bps_of: BpsOf, with_samples: bool = False, with_blasts: bool = False
) -> CampaignData:
    """Two blocks of the plan's campaign, every run with the throughput of its setting.

    With blasts, each is one of the plan's payload that lost 7 % at first and took three passes.
    """
    campaign = make_campaign(plan, validate)
    rows: list[Mapping[str, Any]] = []
    samples = {}
    chance = np.random.default_rng(1)
    for number, (setting, labels) in enumerate(_runs(campaign)):
        bps = bps_of(setting) * (1 + 0.02 * (labels["block"] - 0.5))
        record = make_record(number, setting.spec, bps=bps)
        record["summary"]["forward"]["mean_rtt_us"] = 40 + 1e12 / bps
        if "rtt_s" in setting.path:
            record["path"] = make_path(rtt_s=setting.path["rtt_s"])
        if with_blasts:
            record["streams"] = [_blasting(setting, bps)]
        rows.append(by_option(run_row(Entry(record, campaign.id, labels))))
        if with_samples:
            samples[record["run_id"]] = made_samples(("forward",), 1, bps, 2.0, chance)
    journal = new_journal(campaign, "testbed back-to-back").document()
    return campaign_data(campaign.id, rows, samples, journal)


def _blasting(setting: Setting, bps: float) -> dict[str, Any]:
    """The sending end of a stream with one blast of this throughput."""
    size = setting.spec["rbudp"]["payload_bytes"]
    packets = -(-size // 1456)
    lost = round(0.07 * packets)
    blast = {"bytes": size, "passes": 3, "packets": packets, "sent_packets": packets + lost}
    blast |= {"first_pass_lost_packets": lost, "elapsed_us": round(8e6 * size / bps)}
    return {"stream": 0, "end": 0, "role": 0, "blasts": [blast], "whole_blasts": 1}


def _runs(campaign: Campaign) -> list[tuple[Setting, dict[str, Any]]]:
    keys = [setting.key for setting in campaign.settings]
    cells = [cell for block in range(BLOCKS) for cell in block_order(campaign, block, keys)]
    return [(campaign.setting(cell.setting), cell.labels) for cell in cells]
