"""A test that measures times runs again where its failure may be the hypervisor's doing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
STUB = """
import pytest
from pathlib import Path

RUNS = Path(__file__).with_name("runs")

@pytest.fixture
def fresh():
    return []

{mark}
def test_a(fresh, tmp_path, monkeypatch) -> None:
    assert fresh == []
    fresh.append(1)
    with RUNS.open("a") as runs:
        runs.write("x")
    assert len(RUNS.read_text()) >= {passes_at}
"""


def outcome(
    folder: Path, mark: str, passes_at: int, stolen: str, patience_s: float = 0.1
) -> tuple[str, int]:
    """What pytest says of a test that passes at its nth run, and how often it ran."""
    tier = folder / "unit"
    tier.mkdir()
    text = STUB.format(mark=mark, passes_at=passes_at)
    (tier / "test_a.py").write_text(text, encoding="utf-8")
    shutil.copy(CONFTEST, folder / "conftest.py")
    own = (folder / "conftest.py").read_text(encoding="utf-8")
    told = (
        f"\nfrom itertools import count\n_clock = count()\nstolen_s = lambda: {stolen}\n"
        f"PATIENCE_S, WATCHED_S = {patience_s}, 0.1\n"
    )
    (folder / "conftest.py").write_text(own + told, encoding="utf-8")
    markers = "[pytest]\nmarkers =\n    unit: x\n    alone: x\n"
    (folder / "pytest.ini").write_text(markers, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env=os.environ | {"CI": ""},
    )
    return done.stdout + done.stderr, len((tier / "runs").read_text(encoding="utf-8"))


TAKEN = "10.0 * next(_clock)"
ALONE = "@pytest.mark.alone"


def test_a_failure_while_others_had_the_cpus_is_no_answer(tmp_path: Path) -> None:
    output, runs = outcome(tmp_path, ALONE, 2, TAKEN)
    assert "1 passed" in output and "failed" not in output
    assert "ran again: unit/test_a.py::test_a: others had 10.0 s of CPU time in" in output
    assert runs == 2


def test_it_runs_again_when_the_cpus_are_its_own(tmp_path: Path) -> None:
    """Others take 10 s in the run and in each of the first two looks, and nothing then."""
    output, runs = outcome(tmp_path, ALONE, 2, "10.0 * min(next(_clock), 6)", patience_s=60)
    assert "1 passed" in output and output.count("ran again") == 1 and runs == 2
    waited = re.search(r"waited ([\d.]+) s for CPUs that others had", output)
    assert waited is not None and float(waited[1]) >= 0.3


def test_a_fault_fails_however_often_it_runs(tmp_path: Path) -> None:
    output, runs = outcome(tmp_path, ALONE, 9, TAKEN)
    assert "1 failed" in output and runs == 3


@pytest.mark.parametrize(
    ("mark", "stolen"), [(ALONE, "7.0"), ("", TAKEN)], ids=["a quiet host", "not alone"]
)
def test_other_failures_stand(tmp_path: Path, mark: str, stolen: str) -> None:
    output, runs = outcome(tmp_path, mark, 2, stolen)
    assert "1 failed" in output and "ran again" not in output and runs == 1
