"""A destination folder that several users copy into."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.limited import NEEDS_ROOT, copy, start

SOMEBODY = 12345

pytestmark = NEEDS_ROOT


def others_folder(path: Path) -> None:
    """What a copy of another user keeps."""
    path.mkdir(mode=0o700)
    (path / "key").mkdir(mode=0o700)
    os.chown(path / "key", SOMEBODY, SOMEBODY)
    os.chown(path, SOMEBODY, SOMEBODY)


def open_to_all(path: Path) -> None:
    """What somebody made who would like to change what others copy."""
    path.mkdir()
    path.chmod(0o777)
    os.chown(path, SOMEBODY, SOMEBODY)


def own_and_open(path: Path) -> None:
    """One's own, but others may write there."""
    path.mkdir()
    path.chmod(0o777)


def a_file(path: Path) -> None:
    path.write_text("no folder")


def a_link(path: Path) -> None:
    path.symlink_to("/nowhere")


@pytest.mark.parametrize("there", [others_folder, open_to_all, own_and_open, a_file, a_link])
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
    words = ("--json", "--delete", "--max-delete", "9", f"{source}/", str(shared))
    done = copy(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["copy"]
    assert (report["copied"]["files"], report["deleted"]["files"]) == (2, 0)
    assert sorted(path.name for path in shared.iterdir()) == [".farline-partial", "a", "b"]
    assert theirs.lstat().st_ino == before.st_ino
    assert (shared / "a").read_bytes() == (source / "a").read_bytes()


@pytest.mark.parametrize("there", [others_folder, open_to_all, a_file])
def test_nothing_is_believed_that_others_put_under_ones_own_name(
    tmp_path: Path, there: Callable[[Path], None]
) -> None:
    source, shared = tmp_path / "source", tmp_path / "shared"
    source.mkdir()
    (source / "a").write_text("a")
    shared.mkdir()
    for name in (".farline-partial", ".farline-partial.0"):
        there(shared / name)
    done = copy(tmp_path, f"{source}/", str(shared))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "farline: folder .farline-partial.0 for incomplete files, at the destination: "
        "it is no folder, another user's, or one that others may write to; remove it"
    )
    assert sorted(path.name for path in shared.iterdir()) == [
        ".farline-partial", ".farline-partial.0",
    ]  # fmt: skip


def test_a_copy_goes_on_where_it_began_though_the_other_has_gone(tmp_path: Path) -> None:
    source, shared = tmp_path / "source", tmp_path / "shared"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(4_000_000))
    shared.mkdir()
    shared.chmod(0o777)
    others_folder(shared / ".farline-partial")
    words = (f"{source}/", str(shared))
    running = start(tmp_path, "--bwlimit", "1000", *words)
    own = shared / ".farline-partial.0"
    until = time.monotonic() + 30
    while not any(path.stat().st_size > 200 for path in own.rglob("journal")):
        assert time.monotonic() < until, "no journal is written"
        time.sleep(0.05)
    running.kill()
    running.communicate(timeout=30)
    shutil.rmtree(shared / ".farline-partial")
    done = copy(tmp_path, "--json", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["copy"]["resumed_bytes"] > 0
    assert [path.name for path in shared.iterdir()] == ["large"]


def test_a_folder_with_what_others_put_in_stays_whole_and_stops_no_later_copy(
    tmp_path: Path,
) -> None:
    source, shared = tmp_path / "source", tmp_path / "shared"
    source.mkdir()
    (source / "x").write_text("a file")
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "x" / "sub").mkdir(parents=True)
    (shared / "x" / "mine").touch()
    (shared / "x" / "sub" / "theirs").touch()
    os.chown(shared / "x" / "sub", SOMEBODY, SOMEBODY)
    words = ("--force", "--overwrite", "different", f"{source}/", str(shared))
    done = copy(tmp_path, *words)
    assert done.returncode == 23 and "failed x: permission denied" in done.stderr
    assert (shared / "x" / "mine").exists() and (shared / "x" / "sub" / "theirs").exists()
    (source / "new").write_text("new")
    again = copy(tmp_path, *words)
    assert again.returncode == 23 and "1 copied" in again.stdout, again.stderr
    assert sorted(path.name for path in shared.iterdir()) == ["new", "x"]
