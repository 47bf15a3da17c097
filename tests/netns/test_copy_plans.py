"""The copy plans after Yu et al. 2014 and Rao et al. 2018 run as shipped, only shorter."""

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

NAMES = ("copy-flows-jumbo", "copy-xdd", "copy-gridftp")
PLANS = Path(__file__).parents[2] / "plans"
ENDS_OF_FLOWS = (0, 2, 10)
"""Points that stay of the plan of flows: from disk, over UDT from memory, over eight flows."""


def shortened(name: str, data: Path, folder: Path) -> Path:
    """The plan with the ends of everything that varies, and four files of 100 kB."""
    plan: dict[str, Any] = load_plan(PLANS / f"{name}.toml").document()
    plan["campaign"] |= {"min_repetitions": 1, "max_repetitions": 1, "count_invalid": True}
    plan["grid"] = {key: _ends(value) for key, value in plan["grid"].items()}
    plan["data"] |= {"files": ["4x100kB"], "source": str(data), "destination": str(data)}
    if isinstance(plan["path"]["rtt_s"], list):
        plan["path"]["rtt_s"] = plan["path"]["rtt_s"][:2]
    if "point" in plan:
        plan["point"] = [plan["point"][index] for index in ENDS_OF_FLOWS]
    written = folder / f"{name}.toml"
    written.write_text(plan_toml({"plan": plan_from_document(plan).document()}))
    return written


def _ends(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _ends(value) for key, value in values.items()}
    return [values[0], values[-1]]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_of_copies_runs_and_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    plan, report = shortened(name, data, tmp_path), tmp_path / "report"
    command = [str(FARLINE), "profile", str(plan), "--json", "--store", str(tmp_path / "store")]
    done = subprocess.run(
        [*command, "--report", str(report)], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    assert all(setting["failed"] == 0 for setting in settings), done.stdout
    store = Store(tmp_path / "store", create=False)
    rows = store.runs().to_pylist()
    assert len(rows) == len(settings)
    assert {row["copied_files"] for row in rows} == {4}
    assert {row["copied_bytes"] for row in rows} == {400_000}
    assert {row["failed_files"] for row in rows} == {0}
    samples = store.mover_samples([rows[0]["run_id"]])
    assert set(samples["end"].to_pylist()) == {0, 1}
    assert (report / "report.html").exists()
    assert list(data.iterdir()) == []
