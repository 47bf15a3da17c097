"""The notebook that chooses, moves and explains runs from top to bottom."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

pytestmark = pytest.mark.loopback

NOTEBOOK = Path(__file__).parents[2] / "examples" / "choose-and-move.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    nbclient.NotebookClient(
        notebook, timeout=90, resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


def shown(notebook: Any, word: str) -> Any:
    """The value that the one cell whose source has `word` shows."""
    (cell,) = [one for one in notebook.cells if one.cell_type == "code" and word in one.source]
    return literal_eval(cell.outputs[-1]["data"]["text/plain"])


def test_a_setting_is_chosen_with_what_is_expected_of_it(executed: Any) -> None:
    setting, reason, basis = shown(executed, "choice.reason")
    assert "stream" in setting and reason and "sample" in basis
    expected = shown(executed, '"without it"')
    assert expected["expected"] >= expected["without it"] > 0


def test_every_file_arrives_and_is_verified(executed: Any) -> None:
    assert shown(executed, ".watch()") == {
        "files": 24,
        "bytes": 6_000_000,
    }
    verify, checksum, cipher = shown(executed, '["verify"]')
    assert (verify, cipher) == ("tree", "aes128-gcm") and checksum
    assert shown(executed, '"present"') == (0, 24)


def test_what_limited_the_copy_is_named(executed: Any) -> None:
    line, evidence, _ = shown(executed, "verdict[")
    assert "rate" in line and evidence
