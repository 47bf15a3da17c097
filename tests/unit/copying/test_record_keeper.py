"""Keeping a copy: what it imports, and when, since at its end every import is a wait."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from farline.copying.record_keeper import PREFIX, RECEIPT, STALE_S, sweep

STEPS = """
import sys
from farline.copying import record_keeper as keep
clock = [100.0]
keep.time = type("Clock", (), {"monotonic": staticmethod(lambda: clock[0]), "time": lambda: 0.0})
keeper = keep.RecordKeeper(keeps=False)
keeper.meanwhile()
keeper.prepare()
clock[0] += SECONDS
keeper.meanwhile()
print("farline.findings.verdict" in sys.modules)
"""


NOT_YET = "keeper.keep(type('Attempt', (), {'record': None})())\n"
"""A session that failed early; the next one has not begun."""


@pytest.mark.parametrize(
    ("seconds", "before", "imported"), [(0.9, "", False), (1.1, "", True), (1.1, NOT_YET, False)]
)
def test_the_full_analysis_is_imported_while_a_copy_of_more_than_a_second_runs(
    seconds: float, before: str, imported: bool
) -> None:
    steps = STEPS.replace("clock[0] +=", f"{before}clock[0] +=").replace("SECONDS", str(seconds))
    done = subprocess.run([sys.executable, "-c", steps], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(imported)]


def test_what_a_killed_copy_left_long_ago_is_swept_away(tmp_path: Path) -> None:
    old, young = (tmp_path / f"{PREFIX}{name}" for name in ("1-a", "2-b"))
    for folder in (old, young):
        folder.mkdir()
        (folder / RECEIPT).write_text("{}")
    now_s = young.stat().st_mtime
    for path in (old, old / RECEIPT, young):
        os.utime(path, (0, now_s - STALE_S - 1))
    sweep(tmp_path, now_s)
    assert young.exists() and not old.exists()
