"""HTCondor's plugin without HTCondor: which files go in one copy, and what became of each."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[3] / "integrations/htcondor/farline_plugin.py"


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, as a module."""
    found = importlib.util.spec_from_file_location("farline_plugin", PROGRAM)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "farline_plugin", module)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (r"b\\n\xff\x01", "b\\n\udcff\x01"),
        (r"zero\xe2\x80\x8bwidth", "zero\u200bwidth"),
        (r"c1\xc2\x85 \\x41", "c1\x85 \\x41"),
        ("plain é", "plain é"),
    ],
)
def test_names_of_receipts_are_read_as_they_are_written_there(
    plugin: ModuleType, text: str, name: str
) -> None:
    assert plugin.read_name(text) == name
    file = plugin.Wanted(f"farline://h:1/#d/{name}", f"/here/{name}")
    lines = {plugin.read_name(text): {"status": "copied", "bytes": 3}}
    plugin.judge(file, lines, 0, "")
    assert (file.error, file.size) == (None, 3)


def test_a_name_that_is_no_text_goes_from_the_input_to_the_results(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ad = b'[ Url = "farline://h:1/#a\xff"; LocalFileName = "/here/a\xff" ]'
    given, out = tmp_path / "in", tmp_path / "out"
    given.write_bytes(ad)
    out.write_bytes(b" " * 4096)
    monkeypatch.setattr(plugin, "carry", lambda group, uploads, known: None)
    assert plugin.main(["-infile", str(given), "-outfile", str(out)]) == 0
    assert b'TransferUrl = "farline://h:1/#a\xff"' in out.read_bytes()


def test_files_that_ask_for_different_options_go_in_different_copies(plugin: ModuleType) -> None:
    files = [
        plugin.Wanted(f"farline://h:1/#{name}", f"/here/{name}", {"streams": streams})
        for name, streams in (("a", "1"), ("b", "8"), ("c", "1"))
    ]
    assert [[one.name for one in group] for group in plugin.groups(files, False)] == [
        ["a", "c"],
        ["b"],
    ]
