"""From the store to values that can be drawn."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest

from farline.campaign.journal import new_journal, write_journal
from farline.campaign.plan import plan_from_document
from farline.campaign.settings import Campaign
from farline.errors import UsageError
from farline.plots.data import CampaignData, campaign_data, load_campaign, split_reference
from tests.support.campaigns import CAMPAIGN, KIB, fill_store, made_campaign


def row(reference: bool = False, **settings: Any) -> dict[str, Any]:
    return {"reference": reference, **settings}


def test_the_grid_has_one_point_per_setting(grid: CampaignData) -> None:
    assert list(grid.parameters) == ["streams", "block_bytes", "tcp.congestion_control"]
    assert len(grid.throughput) == 2 * 3 * 2
    assert all(len(points) == 12 for points in grid.points.values())
    assert sum(point.failed for point in grid.throughput) == 2
    assert sum(point.partial for point in grid.throughput) == 1


def test_only_quantities_with_figures_are_offered(grid: CampaignData) -> None:
    columns = [quantity.column for quantity in grid.quantities]
    assert columns[0] == "total_bps"
    assert "cpu_s_per_gb" in columns and "lost_packets" not in columns


def test_a_reference_off_the_grid_is_no_point_of_it() -> None:
    rows = [row(streams=2), row(streams=4), row(True, streams=1)]
    grid, references = split_reference(rows)
    assert [r["streams"] for r in grid] == [2, 4]
    assert [r["streams"] for r in references] == [1]


def test_a_reference_that_differs_in_what_the_grid_holds_is_no_point_of_it() -> None:
    rows = [row(streams=1, block_bytes=64), row(streams=2, block_bytes=64)]
    other = row(True, streams=1, block_bytes=128)
    assert split_reference([*rows, other])[0] == rows


def test_a_reference_on_the_grid_counts_there_too() -> None:
    rows = [row(streams=1), row(streams=2), row(True, streams=1)]
    grid, references = split_reference(rows)
    assert len(grid) == 3 and len(references) == 1


def test_a_reference_may_be_the_only_run_of_its_cell() -> None:
    rows = [
        row(streams=1, block_bytes=8),
        row(streams=2, block_bytes=9),
        row(streams=2, block_bytes=8),
    ]
    missing = row(True, streams=1, block_bytes=9)
    assert missing in split_reference([*rows, missing])[0]


def test_nothing_but_the_reference_is_a_grid_of_one() -> None:
    rows = [row(True, streams=1), row(True, streams=1)]
    assert split_reference(rows) == (rows, rows)


def test_what_only_follows_from_the_grid_is_no_parameter() -> None:
    rows = [
        row(run_id=f"{duration}", status="complete", duration_s=duration, interval_s=duration / 10)
        for duration in (1.0, 2.0)
    ]
    assert list(campaign_data("c", rows).parameters) == ["duration_s", "interval_s"]
    plan = {"plan": {"grid": {"duration_s": [1.0, 2.0]}}}
    assert list(campaign_data("c", rows, plan=plan).parameters) == ["duration_s"]
    nested = {"plan": {"grid": {"tcp": {"no_delay": [True, False]}}}}
    assert list(campaign_data("c", rows, plan=nested).parameters) == ["duration_s", "interval_s"]


def test_a_campaigns_own_journal_gives_plan_seed_and_confidence(tmp_path: Path) -> None:
    store = fill_store(tmp_path, made_campaign((1, 2), (64 * KIB,), ("bbr",), 2, duration_s=0.3))
    document = {
        "campaign": {"name": "demo", "repetitions": 2, "confidence": 0.9},
        "fixed": {"duration_s": 0.3},
        "grid": {"streams": [1, 2]},
    }
    plan = plan_from_document(document)
    campaign = Campaign(CAMPAIGN, plan, 11, (), None)
    write_journal(store, new_journal(campaign, "dtn:5470"), finished=True)
    data = load_campaign(tmp_path)
    assert data.confidence == 0.9 and not data.unfinished
    assert data.command == "farline profile dtn:5470 plan.toml"
    again = plan_from_document(tomllib.loads(data.plan_text))
    assert again == dataclasses.replace(plan, seed=11)


def test_the_last_campaign_comes_out_of_the_store(tmp_path: Path) -> None:
    runs = made_campaign((1, 2), (64 * KIB,), ("bbr",), 2, failing={1: "failed"}, duration_s=0.5)
    fill_store(tmp_path / "store", runs)
    data = load_campaign(tmp_path / "store")
    assert data.name == CAMPAIGN and len(data.rows) == len(runs)
    made = {str(run.record["run_id"]): run.samples for run in runs if run.samples}
    assert set(data.samples) == set(made)
    for run_id, columns in data.samples.items():
        assert sorted(columns["bytes"]) == sorted(made[run_id]["bytes"])
        assert (columns["rtt_us"] == -1).sum() == (made[run_id]["rtt_us"] == -1).sum()
    assert data.document(next(iter(made)))["run_id"] == next(iter(made))


def test_an_unknown_campaign_names_those_that_are_there(tmp_path: Path) -> None:
    fill_store(tmp_path, made_campaign((1,), (64 * KIB,), ("bbr",), 1, duration_s=0.2))
    with pytest.raises(UsageError, match=f"no campaign 'other' in .*{CAMPAIGN}"):
        load_campaign(tmp_path, "other")


def test_a_store_that_is_not_there_or_has_no_campaign_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no store here"):
        load_campaign(tmp_path / "nowhere")
    fill_store(tmp_path / "empty", [])
    with pytest.raises(UsageError, match="no campaign here yet"):
        load_campaign(tmp_path / "empty")
