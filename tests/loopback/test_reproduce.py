"""`farline reproduce` on loopback: a session of the paper's states, and the command's own words."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.netns.conftest import FARLINE

pytestmark = pytest.mark.loopback


def _reproduce(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(FARLINE), "reproduce", *words, "-o", str(folder)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip


def test_components_and_control_flow_are_those_of_the_paper(tmp_path: Path) -> None:
    done = _reproduce("tpg-fig2", "tpg-fig3", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert [one["verdict"] for one in document["items"]] == ["agrees", "agrees"]
    assert Path(document["page"]).is_file() and (tmp_path / "tpg-fig3.html").is_file()
    kept = _reproduce("tpg-fig2", "--resume", folder=tmp_path)
    assert "session: measured before" in kept.stderr


def test_an_item_that_differs_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    done = _reproduce("fairness-text-jumbo", folder=tmp_path)
    assert done.returncode == 3
    assert "61 % more" in done.stdout


def test_nothing_named_is_refused(tmp_path: Path) -> None:
    done = _reproduce(folder=tmp_path)
    assert done.returncode == 1 and "--list" in done.stderr
