"""Folders that go with their process."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.tools.temporary_state import remove_folder, temporary_state


def test_a_folder_for_its_owner_alone_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with temporary_state() as folder:
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
        (folder / "key").write_text("secret")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_removed_with_all_below_and_nothing_beside(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "file").write_text("x")
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "link").symlink_to(beside)
    (folder / "a" / "gone").symlink_to("nowhere")
    remove_folder(folder)
    assert not folder.exists() and (beside / "file").read_text() == "x"
    remove_folder(folder)
