"""The notebook that mines logs runs from top to bottom and finds the slow file system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

pytestmark = pytest.mark.loopback

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def executed() -> Any:
    notebook = nbformat.read(EXAMPLES / "mine-logs.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}
    ).execute()
    return notebook


def shown(notebook: Any, word: str) -> str:
    """What the one cell whose source has `word` shows as text."""
    (cell,) = [one for one in notebook.cells if one.cell_type == "code" and word in one.source]
    return str(cell.outputs[-1]["data"]["text/plain"])


def test_every_log_is_read(executed: Any) -> None:
    assert shown(executed, "len(transfers)") == "(5, 1)"


def test_profiles_have_a_line_for_each_round_trip_time(executed: Any) -> None:
    for modality in ("T", "E"):
        assert "10 round-trip times" in shown(executed, f'modality="{modality}"')


def test_the_slow_file_system_is_named(executed: Any) -> None:
    assert "to and from cedar reach 17 %" in shown(executed, "explanation.lead")
    named = " ".join(shown(executed, "cause.site").split())
    assert named.startswith("('cedar', 'file system'")
