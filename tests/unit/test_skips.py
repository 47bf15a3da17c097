"""A skip in CI is a failure unless its reason is listed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
SKIPPING = "import pytest\ndef test_a() -> None: pytest.skip('no such device: eth9')\n"
SKIPPING_FILE = "import pytest\npytest.skip('no such device: eth9', allow_module_level=True)\n"


def outcome(folder: Path, test: str, allowed: str, ci: str, tier: str = "unit") -> str:
    """Output of pytest over one test file, with one allowed reason."""
    (folder / tier).mkdir()
    (folder / tier / "test_a.py").write_text(test, encoding="utf-8")
    (folder / "skip-allowlist.txt").write_text(f"# reasons\n{allowed}\n", encoding="utf-8")
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    unit: x\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env=os.environ | {"CI": ci},
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("test", [SKIPPING, SKIPPING_FILE], ids=["test", "file"])
def test_an_unlisted_skip_fails_in_ci(tmp_path: Path, test: str) -> None:
    output = outcome(tmp_path, test, "", "true")
    assert "does not allow it: no such device: eth9" in output
    assert "1 failed" in output or "1 error" in output


def test_a_listed_skip_is_a_skip_in_ci(tmp_path: Path) -> None:
    assert "1 skipped" in outcome(tmp_path, SKIPPING, "no such device: *", "true")


def test_elsewhere_a_skip_is_a_skip(tmp_path: Path) -> None:
    assert "1 skipped" in outcome(tmp_path, SKIPPING, "", "")


def test_a_test_outside_the_tiers_is_refused(tmp_path: Path) -> None:
    output = outcome(tmp_path, "def test_a() -> None: pass\n", "", "", tier="elsewhere")
    assert "tests live in one of unit" in output
    assert "passed" not in output
