"""The page as text: whole, closed to the network, and never prettier than the runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from farline.plots.data import CampaignData
from farline.plots.page import render_page
from farline.plots.payload import box_figures, document, payload
from farline.plots.series import run_series


class Tags(HTMLParser):
    """Start tags of a page, and the texts of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[tuple[str, str]] = []
        self._in: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        executed = tag == "style" or (tag == "script" and "type" not in dict(attrs))
        self._in = tag if executed else None

    def handle_endtag(self, tag: str) -> None:
        self._in = None

    def handle_data(self, data: str) -> None:
        if self._in:
            self.inline.append((self._in, data))


@pytest.fixture(scope="module")
def html(grid: CampaignData) -> str:
    return render_page(grid, ["response-streams.png"])


@pytest.fixture(scope="module")
def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    return tags


def test_nothing_in_it_can_be_fetched(parsed: Tags) -> None:
    for tag, attributes in parsed.tags:
        assert tag not in ("img", "iframe", "object", "embed", "form", "base")
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        href = attributes.get("href") or "#"
        assert href.startswith("#") or href == "data:,"


def test_the_policy_allows_exactly_what_is_in_the_page(parsed: Tags) -> None:
    policy = next(a["content"] for t, a in parsed.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "http" not in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    digests = (hashlib.sha256(text.encode()).digest() for _, text in parsed.inline)
    assert allowed == {base64.b64encode(digest).decode() for digest in digests}


def test_the_library_keeps_its_licence(html: str) -> None:
    assert "Copyright (c) 2022 Leon Sorokin" in html
    assert "Permission is hereby granted, free of charge" in html


def test_findings_failures_and_hosts_are_in_the_text_without_scripts(html: str) -> None:
    assert "The best of 12 settings reached" in html
    assert "2 runs failed (2 timeout) and 1 run interrupted" in html
    assert "nothing came from the server for 30 s" in html
    assert "TCP profile from alpha to beta" in html
    assert "net.core.rmem_max" in html
    assert "farline profile 192.0.2.7:5470" in html
    assert html.count("<tbody>") >= 5


def test_a_hostile_name_stays_text(grid: CampaignData) -> None:
    evil = "</script><script>alert(1)</script>"
    rows = [{**row, "error": evil, "verdict_line": evil} for row in grid.rows]
    changed = CampaignData(
        evil, rows, grid.parameters, grid.points, grid.reference, grid.samples, grid.plan
    )
    html = render_page(changed)
    assert evil not in html and "<script>alert" not in html
    tags = Tags()
    tags.feed(html)
    assert sum(tag == "script" for tag, _ in tags.tags) == 7


def test_the_payload_is_json_without_a_way_out_of_its_element(grid: CampaignData) -> None:
    text = payload(grid)
    assert "<" not in text
    assert json.loads(text) == json.loads(json.dumps(document(grid)))


def test_points_carry_means_intervals_and_single_runs(grid: CampaignData) -> None:
    made = document(grid)
    for entry, point in zip(made["points"], grid.throughput, strict=True):
        figures: dict[str, Any] = entry["q"]["total_bps"]
        assert figures["m"] == pytest.approx(point.mean, rel=1e-4)
        assert len(figures["v"]) == point.n
        assert entry["failed"] == point.failed
    assert made["points"][made["best"]]["q"]["total_bps"]["m"] == max(
        entry["q"]["total_bps"]["m"] for entry in made["points"]
    )


def test_a_setting_that_only_failed_has_no_figures(lost: CampaignData) -> None:
    made = document(lost)
    assert made["best"] is None
    assert all(entry["q"] == {} and entry["n"] == 0 for entry in made["points"])
    assert "No run of this campaign completed" in render_page(lost)


def test_every_run_can_be_chosen_and_says_how_it_ended(grid: CampaignData) -> None:
    made = document(grid)
    assert len(made["runs"]) == len(grid.rows)
    notes = {run["status"]: run["note"] for run in made["runs"]}
    assert notes["failed"].startswith("This run failed: nothing came from the server")
    assert notes["partial"].startswith("This run was interrupted")
    assert set(made["series"]) == set(grid.samples)


def test_series_keep_the_bytes_of_the_run(both_ways: CampaignData) -> None:
    made = document(both_ways)
    for run_id, samples in both_ways.samples.items():
        series = run_series(samples)
        assert series is not None
        entry = made["series"][run_id]
        assert [d["way"] for d in entry["d"]] == ["forward", "reverse"]
        for drawn, known in zip(entry["d"], series.directions, strict=True):
            assert drawn["total"] == pytest.approx(known.total_bps.tolist(), rel=1e-4)


def test_a_campaign_of_one_setting_still_has_an_axis(single: CampaignData) -> None:
    made = document(single)
    assert [parameter["texts"] for parameter in made["parameters"]] == [("the only setting",)]
    assert made["view"] == {"x": "", "curve": None, "fixed": {}}


def test_boxes_end_at_the_last_value_within_their_reach() -> None:
    low, first, middle, third, high = box_figures([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (first, middle, third) == (2.0, 3.0, 4.0)
    assert (low, high) == (1.0, 4.0)
