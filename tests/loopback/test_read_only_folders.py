"""Copies of folders that their owner may not write to: an archive that was made read-only."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attributes import access_list, attributes
from tests.support.limited import NEEDS_ROOT, copy, start

pytestmark = NEEDS_ROOT
SLOW = ("--bwlimit", "1000")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Path]:
    """A folder with files and a folder, all read-only."""
    folder = tmp_path / "archive"
    (folder / "2026").mkdir(parents=True)
    for name in ("index", "2026/data"):
        (folder / name).write_text(name)
    lock(folder)
    yield folder
    for path in (tmp_path, *tmp_path.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)


def lock(folder: Path) -> None:
    for path in (*folder.glob("20*"), folder):
        path.chmod(0o555)


def add(folder: Path) -> None:
    """A file more, at the top and below."""
    for part in (folder, folder / "2026"):
        part.chmod(0o755)
        (part / "more").write_text("more")
    lock(folder)


def modes(folder: Path) -> list[int]:
    return [path.stat().st_mode & 0o7777 for path in (folder, folder / "2026")]


def test_a_read_only_folder_is_copied_again_and_stays_read_only(
    tmp_path: Path, archive: Path
) -> None:
    target = tmp_path / "target"
    words = (f"{archive}/", str(target))
    first = copy(tmp_path, *words)
    assert first.returncode == 0, first.stderr
    for changed in (False, True):
        if changed:
            add(archive)
        tried = copy(tmp_path, "-n", "--json", *words)
        assert tried.returncode == 0, tried.stderr
        report = json.loads(tried.stdout)["copy"]
        assert report["copied"]["files"] == (2 if changed else 0)
        assert report["failed"]["files"] == 0
        done = copy(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        assert modes(target) == [0o555, 0o555]
        assert not (target / ".farline-partial").exists()
    assert (target / "more").read_text() == (target / "2026" / "more").read_text() == "more"
    assert target.stat().st_mtime_ns == archive.stat().st_mtime_ns


def test_a_folder_that_its_owner_locked_himself_stays_locked(tmp_path: Path, archive: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    for part in (archive, archive / "2026"):
        part.chmod(0o755)
    target.chmod(0o555)
    for words in ((f"{archive}/",), (str(archive / "index"),), (str(archive),)):
        done = copy(tmp_path, *words, f"{target}/")
        assert done.returncode != 0
        assert "ermission denied" in done.stderr and len(done.stderr.splitlines()) == 1
        assert target.stat().st_mode & 0o777 == 0o555 and not list(target.iterdir())


def test_a_read_only_folder_is_as_it_was_after_a_copy_that_fails(
    tmp_path: Path, archive: Path
) -> None:
    target = tmp_path / "target"
    words = (f"{archive}/", str(target))
    assert copy(tmp_path, *words).returncode == 0
    add(archive)
    done = copy(tmp_path, "--max-delete", "1", "--delete", *words)
    assert done.returncode == 0, done.stderr
    target.chmod(0o755)
    (target / "more").unlink()
    (target / "more" / "inside").mkdir(parents=True)
    target.chmod(0o555)
    done = copy(tmp_path, *words)
    assert done.returncode == 23, done.stderr
    assert modes(target) == [0o555, 0o555]


def test_read_only_folders_that_the_source_has_not_are_deleted(
    tmp_path: Path, archive: Path
) -> None:
    target = tmp_path / "target"
    words = (f"{archive}/", str(target))
    assert copy(tmp_path, *words).returncode == 0
    target.chmod(0o755)
    shutil.copytree(archive, target / "old")
    target.chmod(0o555)
    assert modes(target / "old") == [0o555, 0o555]
    done = copy(tmp_path, "--delete", "--max-delete", "4", *words)
    assert done.returncode == 0, done.stderr
    assert not (target / "old").exists()
    assert modes(target) == [0o555, 0o555]


def test_what_a_folder_that_stays_forbids_is_not_deleted(tmp_path: Path, archive: Path) -> None:
    target = tmp_path / "target"
    for part in (archive, archive / "2026"):
        part.chmod(0o755)
    shutil.copytree(archive, target)
    (target / "2026" / "old").touch()
    (target / "2026").chmod(0o555)
    words = ("--no-modes", "--delete", "--max-delete", "4", f"{archive}/", str(target))
    done = copy(tmp_path, *words)
    assert done.returncode == 23 and "2026/old was not deleted: permission denied" in done.stderr
    assert (target / "2026" / "old").exists()
    assert modes(target)[1] == 0o555


def test_a_read_only_folder_makes_way_under_force(tmp_path: Path, archive: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "x").write_text("a file")
    shutil.copytree(archive, target / "x")
    words = ("--force", "--overwrite", "always", f"{source}/", f"{target}/")
    done = copy(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert (target / "x").read_text() == "a file"
    assert sorted(path.name for path in target.iterdir()) == ["x"]


def wait_until_open(target: Path) -> None:
    until = time.monotonic() + 30
    while modes(target)[0] != 0o755:
        assert time.monotonic() < until, "nothing opens the folder"
        time.sleep(0.01)


@pytest.fixture
def slow(tmp_path: Path, archive: Path) -> tuple[Path, Path]:
    """A second archive that takes two seconds to copy, and a target like both."""
    other, target = tmp_path / "other", tmp_path / "target"
    (other / "2027").mkdir(parents=True)
    (other / "2027" / "large").write_bytes(os.urandom(2_000_000))
    lock(other)
    shutil.copytree(archive, target)
    return other, target


def test_the_last_of_two_copies_closes_a_read_only_folder(
    tmp_path: Path, archive: Path, slow: tuple[Path, Path]
) -> None:
    other, target = slow
    add(archive)
    running = start(tmp_path, *SLOW, f"{other}/", str(target))
    wait_until_open(target)
    done = copy(tmp_path, f"{archive}/", str(target))
    assert done.returncode == 0, done.stderr
    assert running.poll() is None and modes(target)[0] == 0o755
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 0, said
    assert modes(target) == [0o555, 0o555]
    assert not (target / ".farline-partial").exists()
    assert (target / "more").exists() and (target / "2027" / "large").exists()


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGKILL])
def test_a_read_only_folder_is_closed_by_the_copy_that_goes_on(
    tmp_path: Path, slow: tuple[Path, Path], word: signal.Signals
) -> None:
    other, target = slow
    running = start(tmp_path, *SLOW, f"{other}/", str(target))
    wait_until_open(target)
    time.sleep(0.3)
    running.send_signal(word)
    running.communicate(timeout=60)
    if word == signal.SIGINT:
        assert modes(target)[0] == 0o555
    done = copy(tmp_path, f"{other}/", str(target))
    assert done.returncode == 0, done.stderr
    assert modes(target) == [0o555, 0o555]
    assert not (target / ".farline-partial").exists()


def test_the_copy_that_makes_a_read_only_folder_leaves_it_open_to_another(
    tmp_path: Path, archive: Path, slow: tuple[Path, Path]
) -> None:
    other, target = slow
    remove(target)
    first = start(tmp_path, "--bwlimit", "3000", f"{archive}/", str(target))
    second = start(tmp_path, *SLOW, f"{other}/", str(target))
    for running in (first, second):
        said, _ = running.communicate(timeout=60)
        assert running.returncode == 0, said
    assert modes(target) == [0o555, 0o555]
    assert sorted(path.name for path in target.iterdir()) == ["2026", "2027", "index"]


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGKILL])
def test_a_read_only_folder_whose_making_was_stopped_is_closed_in_the_end(
    tmp_path: Path, slow: tuple[Path, Path], word: signal.Signals
) -> None:
    other, target = slow
    remove(target)
    running = start(tmp_path, *SLOW, f"{other}/", str(target))
    until = time.monotonic() + 30
    while not (target / ".farline-partial").exists():
        assert time.monotonic() < until, "nothing is made"
        time.sleep(0.01)
    time.sleep(0.3)
    running.send_signal(word)
    running.communicate(timeout=60)
    done = copy(tmp_path, f"{other}/", str(target))
    assert done.returncode == 0, done.stderr
    assert target.stat().st_mode & 0o777 == 0o555


def test_a_copy_that_was_given_up_keeps_no_folder_open(
    tmp_path: Path, archive: Path, slow: tuple[Path, Path]
) -> None:
    other, target = slow
    running = start(tmp_path, *SLOW, f"{other}/", str(target))
    wait_until_open(target)
    time.sleep(0.3)
    running.kill()
    running.communicate(timeout=60)
    add(archive)
    done = copy(tmp_path, f"{archive}/", str(target))
    assert done.returncode == 0, done.stderr
    assert modes(target) == [0o555, 0o555] and (target / "more").exists()


def test_copies_that_end_together_close_the_folder(
    tmp_path: Path, archive: Path, slow: tuple[Path, Path]
) -> None:
    other, target = slow
    (other / "2027").chmod(0o755)
    (other / "2027" / "large").write_text("small")
    lock(other)
    for _ in range(8):
        both = [start(tmp_path, f"{source}/", str(target)) for source in (archive, other)]
        for running in both:
            said, _ = running.communicate(timeout=60)
            assert running.returncode == 0, said
        assert modes(target)[0] == 0o555
        assert not (target / ".farline-partial").exists()


def remove(folder: Path) -> None:
    for path in (folder, *folder.glob("20*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_attributes_of_what_is_read_only_are_copied_with_its_list(
    tmp_path: Path, archive: Path
) -> None:
    names = (archive, archive / "2026", archive / "2026/data")
    for path in names:
        os.setxattr(path, "user.project", b"north")
        os.setxattr(path, "system.posix_acl_access", access_list(5))
    target = tmp_path / "target"
    for again in (False, True):
        done = copy(tmp_path, "-X", f"{archive}/", str(target))
        assert done.returncode == 0, (again, done.stderr)
        assert not again or " updated" not in done.stdout, done.stdout
        for path in names:
            there = target / path.relative_to(archive)
            assert attributes(there) == attributes(path), (again, path)
            assert there.stat().st_mode == path.stat().st_mode, (again, path)
