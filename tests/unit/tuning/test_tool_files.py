"""Files that a driven tool moves as samples: each once, folder by folder, where rsync puts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.api.tool_sampler import ToolFiles, offers_of
from farline.drivers.catalogue import find_driver
from farline.errors import UsageError


def test_every_file_is_taken_once_and_keeps_its_folder(tmp_path: Path) -> None:
    for name in ("a/one", "a/two", "b/c/three", "four"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 1000)
    files = ToolFiles([f"{tmp_path}/"], "/dst/")
    assert (files.count, files.mean_bytes) == (4, 1000)
    found = {}
    while not files.is_empty:
        folder, batch = files.take(1000, least=1)
        ends = files.ends(folder, batch)
        for source in ends["sources"]:
            assert source not in found
            found[source] = ends["destination"]
    assert found == {
        f"{tmp_path}/four": "/dst/", f"{tmp_path}/a/one": "/dst/a/",
        f"{tmp_path}/a/two": "/dst/a/", f"{tmp_path}/b/c/three": "/dst/b/c/",
    }  # fmt: skip
    with pytest.raises(UsageError, match="all files were moved"):
        files.take(1, least=1)
    named = ToolFiles([str(tmp_path / "a")], "/dst")
    assert named.ends(*named.take(1, least=1))["destination"] == "/dst/a/"


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        ToolFiles([str(tmp_path / "none")], "/dst")
    with pytest.raises(UsageError, match="holds no files"):
        ToolFiles([str(tmp_path)], "/dst")


def test_a_tool_offers_what_its_driver_takes_and_nobody_stated() -> None:
    gridftp = find_driver("gridftp")
    assert {"files", "pipelining"} <= set(offers_of(gridftp, {}, has_files=True))
    memory = offers_of(gridftp, {"tcp": {"send_buffer_bytes": 1}}, has_files=False)
    assert "block" in memory
    assert not {"files", "pipelining", "buffers", "congestion"} & set(memory)
    assert not offers_of(find_driver("scp"), {}, has_files=True)
