"""The example of the Python interface runs as it is printed in the documentation."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "analytics_api.py"


def test_the_example_runs_and_shows_profiles_and_coefficients(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    assert "ThroughputProfile 'memory', modality T, 3 round-trip times, capacity 10.0 Gbit" in said
    assert "C_UC of files: 0." in said
    assert "files over memory" in said
