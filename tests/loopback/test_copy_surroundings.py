"""Copies where something that others have is missing: standard files, a home folder."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.serving import FARLINE, environment, farline


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with two files."""
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("run1.h5", "run1_final.h5"):
        (folder / name).write_text(name)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("which", ["2>&-", ">&-", "-q >&-", "-v <&- >&- 2>&-"])
def test_a_copy_needs_no_standard_files(tmp_path: Path, source: Path, which: str) -> None:
    target = tmp_path / "target"
    words = shlex.join([*FARLINE, "copy", "--no-store", f"{source}/", str(target)])
    done = subprocess.run(
        ["sh", "-c", f"{words} {which}"], env=environment(tmp_path), text=True,
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert names(target) == names(source)
    assert all((target / name).read_text() == name for name in names(source))


@pytest.mark.parametrize("keeps", [False, True])
def test_a_copy_needs_no_home_folder(tmp_path: Path, source: Path, keeps: bool) -> None:
    target = tmp_path / "target"
    words = [f"{source}/", str(target), "--no-progress", *([] if keeps else ["--no-store"])]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.homeless", "copy", *words], env=os.environ,
        text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert names(target) == names(source)
    said = "farline: the run is not kept: store: this user has no home folder; set HOME or "
    assert done.stderr.startswith(said) if keeps else done.stderr == ""


def test_a_source_that_two_patterns_find_is_taken_once(tmp_path: Path, source: Path) -> None:
    found = [*sorted(source.glob("run*.h5")), *source.glob("*_final.h5")]
    words = [*map(str, found), str(tmp_path / "target")]
    done = farline(tmp_path, "copy", "--no-store", *words)
    assert done.returncode == 0, done.stderr
    assert "2 copied" in done.stdout
    assert names(tmp_path / "target") == names(source)


@pytest.mark.parametrize("zeros", [False, True])
def test_a_list_of_names_has_any_name(tmp_path: Path, source: Path, zeros: bool) -> None:
    listing = os.fsdecode(os.fsencode(tmp_path) + b"/list\xff")
    Path(listing).write_text("run1.h5\0" if zeros else "run1.h5\n")
    words = ["--files-from", listing, *(["--from0"] if zeros else []), f"{source}/"]
    done = farline(tmp_path, "copy", "--no-store", *words, str(tmp_path / "target"))
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "target") == ["run1.h5"]
