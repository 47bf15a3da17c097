"""A destination folder that several users copy into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.serving import FARLINE, environment

AS_A_USER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner")
SOMEBODY = 12345

pytestmark = [
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux"),
    pytest.mark.skipif(os.geteuid() != 0, reason="gives folders to another user: needs root"),
]


def others_folder(path: Path) -> None:
    """What a copy of another user keeps."""
    path.mkdir(mode=0o700)
    (path / "key").mkdir(mode=0o700)
    os.chown(path / "key", SOMEBODY, SOMEBODY)
    os.chown(path, SOMEBODY, SOMEBODY)


def a_file(path: Path) -> None:
    path.write_text("no folder")


def a_link(path: Path) -> None:
    path.symlink_to("/nowhere")


@pytest.mark.parametrize("there", [others_folder, a_file, a_link])
def test_what_others_have_there_keeps_nobody_from_copying(
    tmp_path: Path, there: Callable[[Path], None]
) -> None:
    source, shared = tmp_path / "source", tmp_path / "shared"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_bytes(name.encode() * 100_000)
    shared.mkdir()
    shared.chmod(0o777)
    theirs = shared / ".farline-partial"
    there(theirs)
    before = theirs.lstat()
    done = subprocess.run(
        [*AS_A_USER, *FARLINE, "copy", "--no-store", "--no-progress", "--json", "--delete",
         "--max-delete", "9", f"{source}/", str(shared)],
        env=environment(tmp_path), text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["copy"]
    assert (report["copied"]["files"], report["deleted"]["files"]) == (2, 0)
    assert sorted(path.name for path in shared.iterdir()) == [".farline-partial", "a", "b"]
    assert theirs.lstat().st_ino == before.st_ino
    assert (shared / "a").read_bytes() == (source / "a").read_bytes()
