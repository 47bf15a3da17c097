"""The plans of Yun et al. 2015 run as shipped, only shorter, and leave the paper's figures."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from farline.campaign.plan import load_plan, plan_from_document
from farline.plots.plan_text import plan_toml
from farline.store import Store
from tests.netns.conftest import FARLINE

pytestmark = pytest.mark.netns

PLANS = sorted((Path(__file__).parents[2] / "plans").glob("tpg-*.toml"))
KEPT = 2
"""Values that stay of everything that varies: the first and the last."""


def shortened(path: Path, folder: Path) -> Path:
    """The plan with two values of everything, and runs of a quarter of a second."""
    plan = load_plan(path).document()
    plan["campaign"] |= {"min_repetitions": 1, "max_repetitions": 1, "reference": "none"}
    plan["campaign"]["count_invalid"] = True
    plan["fixed"]["duration_s"] = 0.25
    plan["grid"] = {key: _ends(value) for key, value in plan["grid"].items()}
    for group in plan.get("together", {}).values():
        group["values"] = _ends(group["values"])
    if "point" in plan:
        plan["point"] = _ends(plan["point"])
    for figure in plan["figure"]:
        figure.pop("panels", None)
    short = plan_from_document(plan)
    written = folder / path.name
    written.write_text(plan_toml({"plan": short.document()}))
    return written


def _ends(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _ends(value) for key, value in values.items()}
    return [values[0], values[-1]] if len(values) > KEPT else values


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_of_the_paper_leaves_its_pictures(path: Path, tmp_path: Path) -> None:
    plan, report = shortened(path, tmp_path), tmp_path / "report"
    done = subprocess.run(
        [
            *(str(FARLINE), "profile", str(plan), "--json"),
            *("--store", str(tmp_path / "store"), "--report", str(report)),
        ],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["stopped"] == "finished"
    assert all(row["mean_bps"] > 1e6 for row in results["settings"]), results["settings"]
    wanted = {figure.name for figure in load_plan(plan).figures}
    assert wanted <= {file.stem for file in (report / "figures").iterdir()}
    rows = Store(tmp_path / "store").runs().to_pylist()
    assert {row["transport"] for row in rows} == {"udt"}
    assert {row["path.rate_bps"] for row in rows} == {10_000_000_000}
