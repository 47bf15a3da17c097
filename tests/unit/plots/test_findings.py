"""Results in words: each sentence stands on a figure, and failures are never hidden."""

from __future__ import annotations

import dataclasses

import pytest

from farline.plots.data import CampaignData
from farline.plots.findings import beats_reference, failures, findings, limits_text, reference_gain
from farline.plots.page import _tiles
from farline.spec.units import rate_human


def said(data: CampaignData) -> str:
    return " ".join(finding.text for finding in findings(data))


def test_the_best_setting_comes_first_with_its_interval(grid: CampaignData) -> None:
    lead = findings(grid)[0].text
    assert grid.best is not None and grid.best.mean is not None
    assert lead.startswith(f"The best of 12 settings reached {rate_human(grid.best.mean)} (95")
    assert "confidence interval" in lead and "4 runs)" in lead
    assert lead.endswith("4 streams, block size 1 MiB, cubic.")


def test_the_gain_over_the_reference_is_stated(grid: CampaignData) -> None:
    gain = reference_gain(grid)
    assert gain is not None and gain.ratio > 1.5
    assert "times the reference setting, which reached" in said(grid)


def test_what_the_test_does_not_tell_apart_is_said_so_first(
    grid: CampaignData, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert beats_reference(grid)
    assert "difference from the reference is within" not in said(grid)
    assert _tiles(grid)[1].figure.endswith("\N{MULTIPLICATION SIGN}")
    monkeypatch.setattr("farline.plots.findings.told_apart", lambda *_: False)
    assert findings(grid)[1].text.startswith(
        "The difference from the reference is within the uncertainty: "
    )
    assert (_tiles(grid)[1].label, _tiles(grid)[1].figure) == (
        "Gain over the reference", "within the uncertainty",
    )  # fmt: skip


def test_a_best_setting_that_is_the_reference_claims_no_gain(single: CampaignData) -> None:
    assert reference_gain(single) is None
    assert "times the reference" not in said(single)


def test_failed_and_partial_runs_are_stated_with_their_kind(grid: CampaignData) -> None:
    finding = failures(grid.rows)
    assert finding.bad
    assert "2 runs failed (2 timeout) and 1 run interrupted" in finding.text
    assert "not included in means" in finding.text


def test_a_campaign_without_failures_says_so(single: CampaignData) -> None:
    finding = failures(single.rows)
    assert finding.text == f"All {len(single.rows)} runs completed." and not finding.bad


def test_nothing_complete_is_the_main_finding(lost: CampaignData) -> None:
    first, second = findings(lost)
    assert first.bad and "No run of this campaign completed" in first.text
    assert "6 runs failed" in second.text


def test_limits_name_the_share_of_the_runs() -> None:
    counts = {"receiver-cpu": 4, "path": 1}
    assert limits_text(counts) == "receiver CPU (4 of 5 runs), path (1)"


def test_an_unfinished_campaign_is_not_passed_off_as_whole(grid: CampaignData) -> None:
    begun = dataclasses.replace(grid, plan={"target": "host:5470", "finished_at": None})
    assert "is not finished" in said(begun)
    done = dataclasses.replace(grid, plan={"finished_at": "2026-11-21T20:00:00Z"})
    assert "is not finished" not in said(done)


def test_a_debug_build_is_no_measure(grid: CampaignData) -> None:
    rows = [
        {**row, "record": str(row["record"]).replace('"profile":"release"', '"profile":"debug"')}
        for row in grid.rows
    ]
    assert "debug build" in said(dataclasses.replace(grid, rows=rows))
    assert "debug build" not in said(grid)
