"""Checks, budgets, drift and pages: what decides a verdict, and how it is shown."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import InterruptedRun, SystemFailure
from farline.plots.gallery import Curve, Picture
from farline.profiles.response import ResponsePoint
from farline.reproduce.budget import UNREPEATED, Budget, budget_of, widest
from farline.reproduce.evidence import Check, Evidence, above, below, equal, larger, no_less, same
from farline.reproduce.items import items_named
from farline.reproduce.measured import Measured, trial_path
from farline.reproduce.pages import write_pages
from farline.reproduce.results import Result, drift_of, read_result, write_result
from farline.reproduce.runner import Runner, shown_results
from farline.reproduce.trials import dd_figures, received_bytes

RATES = st.floats(1e3, 1e11)
SHARES = st.floats(0.0, 0.5)


@given(RATES, RATES, SHARES)
def test_two_figures_are_larger_smaller_or_the_same(a: float, b: float, budget: float) -> None:
    verdicts = [larger("", a, b, budget), larger("", b, a, budget), same("", a, b, budget)]
    assert sum(check.holds for check in verdicts) == 1
    assert no_less("", a, b, budget).holds is not larger("", b, a, budget).holds


def test_evidence_agrees_only_where_every_check_holds() -> None:
    good, bad = equal("", 74.25, 74.25), above("", 1.0, 2.0)
    assert Evidence([good]).verdict == "agrees"
    assert Evidence([good, bad]).verdict == "differs"


def test_a_figure_has_the_digits_that_people_read() -> None:
    assert equal("", 99.76306273, 99.763, 1e-5, "Mb/s").ours == "99.7631 Mb/s"
    assert (check := equal("", 1.0000001, 1.0)).holds is False
    assert (check.ours, check.paper) == ("1.0000001", "1")
    (item,) = items_named(["analytics-fig9"])
    assert item.judge is not None
    assert not any(one.ours == "-0.000000" for one in item.judge(Measured(Path())).checks)


def test_a_check_shows_the_bar_that_its_verdict_follows_from() -> None:
    assert above("", 3.96, 4.0, paper="25 times").paper == "25 times; asked here: more than 4"
    assert below("", 0.3, 0.5, paper="below 0.5").paper == "below 0.5"
    said = above("", -0.01, 0.0, 0.02, paper="concave").paper
    assert said == "concave; asked here: more than 0 with a margin of 0.02"
    assert below("", 0.1, 0.005, unit="%").paper == "less than 0.5 %"


def test_a_budget_adds_its_parts_in_squares() -> None:
    assert Budget(0.03, 0.04, 0.12).whole == pytest.approx(0.13)
    assert widest([Budget(0.1, 0.0, 0.2), Budget(0.0, 0.3, 0.1)]) == Budget(0.1, 0.3, 0.2)


def test_repetitions_make_the_budget_and_single_runs_a_stated_one() -> None:
    single = ResponsePoint({"streams": 1}, (100.0,), ("a",), 100.0)
    twice = ResponsePoint({"streams": 2}, (95.0, 105.0), ("b", "c"), 100.0)
    assert budget_of([], [single]).repetition == UNREPEATED
    # Student's t at one degree of freedom, 12.706, times 0.0707 over the root of two.
    assert budget_of([], [twice]).repetition == pytest.approx(12.706 * 0.05, rel=1e-3)


def _result(value: float, verdict: str = "agrees", margin: float = 0.01) -> Result:
    check = Check("rate", True, f"{value:g} Gb/s", "", value, margin)
    curve = Curve("here", [1, 2], [value, value], low=[None, 0.9], high=[None, 1.1])
    picture = Picture("rates", "Rates", "Streams", "Gb/s", [curve])
    return Result("rbudp-fig4", verdict, "quick", "2026-01-02T03:04:05Z", checks=[check],
                  pictures=[picture], budget=Budget(0.01).document())  # fmt: skip


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_result(tmp_path, _result(1.0))
    found = read_result(tmp_path, "rbudp-fig4", "quick")
    assert found is not None
    assert json.dumps(found.document()) == json.dumps(_result(1.0).document())
    assert read_result(tmp_path, "rbudp-fig4", "full") is None


def test_a_damaged_result_says_which(tmp_path: Path) -> None:
    write_result(tmp_path, _result(1.0))
    (tmp_path / "results" / "rbudp-fig4-quick.json").write_text('{"schema": 1}')
    with pytest.raises(SystemFailure, match=r"rbudp-fig4-quick\.json: damaged"):
        read_result(tmp_path, "rbudp-fig4", "quick")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("verdict", "superb"), ("item", "tpg-fig1"), ("made_at", 5), ("facts", [["a"]]),
        ("new", 1), ("notes", "text"), ("budget", {"whole": 0.1}), ("checks", [{"text": "a"}]),
        ("checks", [{"text": "a", "holds": True, "ours": "1", "value": "abc"}]),
        ("checks", [{"text": "a", "holds": True, "ours": 1}]), ("pictures", [3]), ("drift", None),
    ],
)  # fmt: skip
def test_a_result_that_was_edited_is_no_result(tmp_path: Path, name: str, value: object) -> None:
    write_result(tmp_path, _result(1.0))
    path = tmp_path / "results" / "rbudp-fig4-quick.json"
    path.write_text(json.dumps({**_result(1.0).document(), name: value}))
    with pytest.raises(SystemFailure, match=r"rbudp-fig4-quick\.json: damaged: .*; delete it"):
        read_result(tmp_path, "rbudp-fig4", "quick")


def test_a_result_that_may_not_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "results" / "rbudp-fig4-quick.json").mkdir(parents=True)
    with pytest.raises(SystemFailure, match="cannot read the result: Is a directory"):
        read_result(tmp_path, "rbudp-fig4", "quick")


def test_what_cannot_be_written_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "results" / "rbudp-fig4-quick.json").mkdir(parents=True)
    with pytest.raises(SystemFailure, match="cannot write the result"):
        write_result(tmp_path, _result(1.0))
    (tmp_path / "index.html").mkdir()
    with pytest.raises(SystemFailure, match="cannot write the gallery"):
        write_pages(items_named(["rbudp-fig4"]), [_result(1.0)], tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_figure_that_moved_beyond_both_margins_is_flagged() -> None:
    assert drift_of(None, _result(1.0)) == []
    assert drift_of(_result(1.0), _result(1.01)) == []
    assert drift_of(_result(1.0), _result(1.2)) == ["rate: 1 Gb/s before, 1.2 Gb/s now"]
    changed = drift_of(_result(1.0), _result(1.0, "differs"))
    assert changed == ["the verdict was agrees on 2026-01-02"]


def test_pages_hold_everything_and_load_nothing(tmp_path: Path) -> None:
    items = items_named(["rbudp-fig4"])
    index = write_pages(items, [_result(1.0)], tmp_path).read_text()
    page = (tmp_path / "rbudp-fig4.html").read_text()
    assert 'href="rbudp-fig4.html"' in index and "agrees" in index
    for text in (index, page):
        assert "default-src 'none'" in html.unescape(text)
        assert "http://" not in text and 'src="//' not in text
    assert "prefers-color-scheme: dark" in page and "data:image/svg+xml" in page


def test_an_index_says_what_it_counts_and_how_to_make_it_again(tmp_path: Path) -> None:
    items = items_named(["rbudp-fig4", "rbudp-fig5", "rbudp-fig6"])
    text = write_pages(items, [_result(1.0)], tmp_path).read_text()
    assert "quick scale; 2 items not reproduced yet" in text and "--scale full" not in text
    text = write_pages(items[:1], [replace(_result(1.0), scale="full")], tmp_path).read_text()
    assert "not reproduced yet" not in text and "farline reproduce --all --scale full" in text


def test_pages_show_the_newest_result_of_either_scale(tmp_path: Path) -> None:
    items = items_named(["rbudp-fig4", "rbudp-fig5"])
    quick, later = _result(1.0), "2026-01-03T00:00:00Z"
    write_result(tmp_path, quick)
    write_result(tmp_path, replace(quick, item="rbudp-fig5"))
    full = replace(quick, scale="full", made_at=later)
    write_result(tmp_path, full)
    assert [(one.item, one.scale) for one in shown_results(tmp_path, items)] == [
        ("rbudp-fig4", "full"),
        ("rbudp-fig5", "quick"),
    ]
    write_result(tmp_path, replace(full, verdict="not measured"))
    assert {one.scale for one in shown_results(tmp_path, items)} == {"quick"}
    text = write_pages(items, [full, replace(quick, item="rbudp-fig5")], tmp_path).read_text()
    assert "full and quick scale" in text and "rbudp-fig5.html" in text


def _runner(folder: Path, is_asked: bool = False) -> Runner:
    return Runner(folder, Path("plans"), "quick", False, lambda step: None, lambda: is_asked)


def test_an_item_is_judged_kept_and_compared(tmp_path: Path) -> None:
    items = items_named(["rbudp-text-payload", "rbudp-table1"])
    first = _runner(tmp_path).run(items)
    again = _runner(tmp_path).run(items)
    assert [one.verdict for one in first] == ["not possible here", "agrees"]
    assert all(not one.drift for one in again)


def test_an_interruption_is_not_a_result(tmp_path: Path) -> None:
    with pytest.raises(InterruptedRun, match="--resume"):
        _runner(tmp_path, is_asked=True).run(items_named(["rbudp-text-payload"]))
    assert not (tmp_path / "results").exists()


def test_what_dd_prints_is_read_and_anything_else_refused() -> None:
    said = "64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.0512 s, 1.3 GB/s\n"
    assert dd_figures(said) == (67108864, 0.0512)
    with pytest.raises(SystemFailure, match="dd printed no figures"):
        dd_figures("dd: command not found")


def test_what_arrived_is_read_from_the_document_of_the_client() -> None:
    said = json.dumps({"end": {"sum_sent": {"bytes": 9}, "sum_received": {"bytes": 7}}})
    assert received_bytes(said) == 7
    for wrong in ("", "{}", '{"end": {"sum_received": {}}}', '{"error": "refused"}'):
        with pytest.raises(SystemFailure, match="no received bytes"):
            received_bytes(wrong)


NODE_RATES = {"1": 10e6, "2": 20e6, "4": 40e6, "8": 58e6, "16": 56e6}


@pytest.mark.parametrize(
    ("at_16", "verdict"), [(56e6, "agrees"), (110e6, "differs")], ids=["full", "rises on"]
)
def test_nodes_agree_where_the_path_is_full_before_the_last(
    tmp_path: Path, at_16: float, verdict: str
) -> None:
    rates = {n: [0.99 * rate, 1.01 * rate] for n, rate in {**NODE_RATES, "16": at_16}.items()}
    path = trial_path(tmp_path, "nodes", "quick")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"1": rates, "default": 5e6}), encoding="utf-8")
    (item,) = items_named(["e2e-fig1-nodes"])
    assert item.judge is not None
    assert item.judge(Measured(tmp_path)).verdict == verdict
