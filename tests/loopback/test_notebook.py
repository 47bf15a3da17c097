"""The notebook in examples runs from top to bottom, as its reader would run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

pytestmark = pytest.mark.loopback

NOTEBOOK = Path(__file__).parents[2] / "examples" / "measure-and-move.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = nbclient.NotebookClient(
        notebook, timeout=60, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return notebook


def outputs(notebook: Any, word: str) -> list[Any]:
    """Outputs of the one cell whose source has `word`."""
    (cell,) = [one for one in notebook.cells if one.cell_type == "code" and word in one.source]
    found: list[Any] = cell.outputs
    return found


def text(output: Any, kind: str = "text/plain") -> str:
    return str(output["data"].get(kind, ""))


def test_every_cell_runs_and_none_complains(executed: Any) -> None:
    for cell in executed.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type not in ("error", "stream"), output


def test_a_run_is_drawn_with_what_limited_it(executed: Any) -> None:
    drawn = "".join(text(one, "text/html") for one in outputs(executed, "streams=2"))
    assert "<svg" in drawn and "limited by" in drawn
    assert "farline://" not in drawn


def test_a_campaign_is_drawn_with_a_row_per_setting(executed: Any) -> None:
    drawn = "".join(text(one, "text/html") for one in outputs(executed, '"grid"'))
    assert "streams 1" in drawn and "streams 2" in drawn


def test_a_copy_says_what_it_came_to(executed: Any) -> None:
    assert "'files': 20" in text(outputs(executed, "part-")[-1])


def test_a_job_is_awaited(executed: Any) -> None:
    assert text(outputs(executed, "await")[-1]) == "'complete'"
