"""The tables of docs/design/tpg-profiles.md: made from the plans' campaigns, beside the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.campaign.plan import load_plan
from farline.campaign.settings import Setting
from scripts.page_tables import made_from, put_in
from scripts.tpg_profiles import PAGE, PAPER_MBPS, TABLES, ranks
from tests.support.planned import planned_data

PLANS = Path(__file__).parents[2] / "plans"


def as_in_the_paper(setting: Setting) -> float:
    return PAPER_MBPS.get(int(setting.varied.get("point", 8)), 1000) * 2e6


@pytest.mark.parametrize("name", TABLES)
def test_every_plan_has_a_table_and_a_place_for_it(name: str) -> None:
    data = planned_data(load_plan(PLANS / f"{name}.toml"), as_in_the_paper)
    table = TABLES[name](data)
    assert len(table.splitlines()) >= 4
    page = put_in(PAGE.read_text(encoding="utf-8"), name, table)
    assert table in page
    assert put_in(page, name, table) == page


def test_table_1_stands_beside_the_paper_with_its_ranks() -> None:
    data = planned_data(load_plan(PLANS / "tpg-table1.toml"), as_in_the_paper)
    lines = TABLES["tpg-table1"](data).splitlines()
    first = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert first[:3] == ["1", "450", "10"]
    assert first[3].startswith("900 ± ") and first[4] == "10"
    assert made_from(data).endswith(": 2 to 4 runs of 5 s of each setting.")
    assert lines[-1] == "Rank correlation with the paper (Spearman), bbr: 1.00."


def test_equal_values_share_a_rank() -> None:
    assert ranks({"a": 3.0, "b": 5.0, "c": 3.0}) == {"a": 2, "b": 1, "c": 2}


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks <!-- x: begin -->"):
        put_in("text", "x", "table")
