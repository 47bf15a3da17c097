"""Entries of the papers: every one can be told, judged or refused, and names plans that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from farline.errors import UsageError
from farline.reproduce.items import ITEMS, items_named
from farline.reproduce.measured import Measured
from farline.reproduce.plans import SCALES, plan_document, plan_text, plans_folder
from farline.reproduce.sources import SOURCES
from farline.reproduce.trials import TRIALS

ROOT = Path(__file__).resolve().parents[3]
COMPUTED = [item for item in ITEMS if item.judge is not None and not item.sources]
SLIPS = {
    "fairness-text-jumbo", "fairness-text-gridftp", "rbudp-text-window", "analytics-text-range",
    "analytics-text-convex", "analytics-fig14",
}  # fmt: skip
"""Items in which the paper's own figures do not hold."""
CLAIMS = "## Claims behind this page"
QUICK = [item for item in COMPUTED if item.id not in ("analytics-fig1c", "analytics-fig15")]
"""Those that read no logs."""


def test_every_figure_and_table_of_the_papers_has_an_entry() -> None:
    figures = [item for item in ITEMS if item.kind == "figure"]
    assert len(figures) >= 44
    assert len({item.id for item in ITEMS}) == len(ITEMS)


def test_at_most_two_entries_are_impossible_here() -> None:
    impossible = [item.id for item in ITEMS if item.judge is None]
    assert impossible == ["rbudp-table1"]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_an_entry_says_what_it_stands_on(item) -> None:  # type: ignore[no-untyped-def]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", item.id)
    assert item.claim.endswith(".")
    assert (item.judge is None) == bool(item.impossible)
    assert all(name in SOURCES or name in TRIALS for name in item.sources)
    assert (ROOT / item.guide).is_file()


def test_each_guide_names_the_entries_that_it_stands_on_and_no_others() -> None:
    named = {
        f"docs/guide/{page.name}": set(re.findall(r"`([a-z0-9-]+)`", text.partition(CLAIMS)[2]))
        for page in (ROOT / "docs/guide").glob("*.md")
        if CLAIMS in (text := page.read_text("utf-8"))
    }
    entries: dict[str, set[str]] = {}
    for item in ITEMS:
        entries.setdefault(item.guide, set()).add(item.id)
    assert named == entries


@pytest.mark.parametrize("item", QUICK, ids=lambda item: item.id)
def test_a_computed_entry_has_the_verdict_that_its_figures_give(item, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    evidence = item.judge(Measured(tmp_path))
    assert evidence.verdict == ("differs" if item.id in SLIPS else "agrees"), evidence.checks
    assert evidence.verdict == "agrees" or evidence.reason


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SOURCES)
def test_a_plan_is_allowed_at_each_scale(name: str, scale: str) -> None:
    source = SOURCES[name]
    document = plan_document(source, scale, plans_folder())  # type: ignore[arg-type]
    assert f"{name}-{scale}" in plan_text(document)


def test_an_unknown_item_is_refused_with_what_may_have_been_meant() -> None:
    with pytest.raises(UsageError, match="rbudp-fig4"):
        items_named(["rbudp-fig44"])


def test_a_folder_without_plans_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no plans in"):
        plans_folder(tmp_path)
