"""The plans of He et al. 2002 run as shipped, with less to send, and leave its figures."""

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

ROOT = Path(__file__).parents[2]
PLANS = sorted(
    set((ROOT / "plans").glob("rbudp-*.toml")) - {ROOT / "plans" / "rbudp-parallel-tcp.toml"}
)
PAYLOADS_BYTES = (1_000_000, 2_000_000)


def shortened(path: Path, folder: Path) -> Path:
    """The plan with the ends of everything that varies, one run each, and a megabyte or two."""
    plan = load_plan(path).document()
    plan["campaign"] |= {"min_repetitions": 1, "max_repetitions": 1, "count_invalid": True}
    plan["grid"] = {key: _ends(value) for key, value in plan["grid"].items()}
    if "together" in plan:
        plan["together"]["payload_bytes"]["values"] = list(PAYLOADS_BYTES)
    else:
        plan["fixed"]["total_bytes"] = PAYLOADS_BYTES[0]
        plan["fixed"]["rbudp"]["payload_bytes"] = PAYLOADS_BYTES[0]
    written = folder / path.name
    written.write_text(plan_toml({"plan": plan_from_document(plan).document()}))
    return written


def _ends(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _ends(value) for key, value in values.items()}
    return [values[0], values[-1]] if len(values) > 2 else values


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
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["stopped"] == "finished"
    wanted = {figure.name for figure in load_plan(plan).figures}
    assert wanted <= {file.stem for file in (report / "figures").iterdir()}
    rows = Store(tmp_path / "store").runs().to_pylist()
    assert {row["status"] for row in rows} == {"complete"}
    assert {row["transport"] for row in rows} == {"rbudp"}
    assert {row["forward_bytes"] for row in rows} <= set(PAYLOADS_BYTES)
