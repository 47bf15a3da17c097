"""The notebook that measures a path over round-trip times and reads its profile."""

from __future__ import annotations

import os
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

from farline.testbeds import needs
from farline.testbeds.fixture import SKIP_REASON
from tests.netns.conftest import FARLINE

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

pytestmark = [pytest.mark.netns, pytest.mark.timeout(240)]

NOTEBOOK = Path(__file__).parents[2] / "examples" / "read-a-profile.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if needs.missing() is not None:
        pytest.skip(SKIP_REASON)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(FARLINE).parent}:{os.environ['PATH']}")
        nbclient.NotebookClient(
            notebook, timeout=150, resources={"metadata": {"path": str(folder)}}
        ).execute()
    return notebook


def shown(notebook: Any, word: str) -> str:
    """What the one cell whose source has `word` shows as text."""
    (cell,) = [one for one in notebook.cells if one.cell_type == "code" and word in one.source]
    return str(cell.outputs[-1]["data"]["text/plain"])


def test_the_profile_has_every_round_trip_time(executed: Any) -> None:
    assert "4 round-trip times, capacity 200 Mbit/s" in shown(executed, "throughput_profile(")


def test_it_is_evaluated_between_them(executed: Any) -> None:
    assert 60 < literal_eval(shown(executed, "profile(25.0)")) <= 200


def test_its_shape_and_coefficients_show_a_window(executed: Any) -> None:
    regions = literal_eval(shown(executed, "concave_regions"))
    assert regions[0][0] == 2.0 and regions[-1][1] == 120.0
    found = literal_eval(shown(executed, '"c_cc"'))
    assert 0 < found["mean"] < 1 and found["mean"] + found["c_u"] == pytest.approx(1, abs=0.02)


def test_the_far_end_is_limited_by_its_window(executed: Any) -> None:
    assert "receiver window" in shown(executed, "verdict")
