"""Folders that go with their process."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
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


def test_what_a_killed_process_left_goes_and_what_others_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    program = (
        "import os, signal\n"
        "from farline.tools.temporary_state import temporary_state\n"
        "with temporary_state() as folder:\n"
        "    (folder / 'ticket.key').write_text('secret')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    _, _, process, here, _ = left.name.split("-")
    locked = tmp_path / f"farline-server-{process}-{here}-{1:016x}"
    living = tmp_path / f"farline-server-{os.getpid()}-{here}-{2:016x}"
    other = tmp_path / f"farline-server-{process}-notes"
    abroad = tmp_path / f"farline-server-{process}-0123abcd.f00d-{3:016x}"
    elsewhere = tmp_path / "elsewhere"
    for folder in (locked, living, other, abroad, elsewhere):
        folder.mkdir()
        (folder / "file").write_text("x")
    link = tmp_path / f"farline-server-{process}-{here}-{4:016x}"
    link.symlink_to(elsewhere)
    young = tmp_path / f"farline-server-{process}-{here}-{5:016x}"
    young.mkdir()
    long_ago = time.time() - 3600
    for folder in (left, locked, living, other, abroad, elsewhere):
        os.utime(folder, (long_ago, long_ago))
    os.utime(link, (long_ago, long_ago), follow_symlinks=False)
    holds = os.open(locked, os.O_RDONLY)
    try:
        fcntl.flock(holds, fcntl.LOCK_EX)
        with temporary_state():
            pass
    finally:
        os.close(holds)
    assert set(tmp_path.iterdir()) == {
        locked, living, other, abroad, elsewhere, link, young
    }  # fmt: skip
    assert (elsewhere / "file").read_text() == "x"


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
