"""The release checklist, and what is announced to go."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from farline.spec.deprecations import (
    DEPRECATIONS,
    Deprecation,
    FarlineDeprecationWarning,
    warn_once,
)
from scripts import dist, release

ROOT = Path(__file__).parents[2]
OLD = Deprecation("--old", "--new", since="0.3.0", removed_in="1.0.0")


def test_nothing_is_kept_that_this_version_was_to_remove() -> None:
    assert release.due(DEPRECATIONS, dist.version()) == []


@pytest.mark.parametrize(
    ("wanted", "is_due"), [("0.9.9", False), ("1.0.0-rc1", True), ("1.0.0", True), ("1.2.0", True)]
)
def test_what_goes_with_a_version_is_due_with_its_candidates(wanted: str, is_due: bool) -> None:
    assert release.due([OLD], wanted) == ([OLD] if is_due else [])


def test_a_user_is_told_once_what_to_write_instead_and_until_when() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_once(OLD)
        warn_once(OLD)
    (one,) = told
    assert one.category is FarlineDeprecationWarning
    assert str(one.message) == (
        "--old is deprecated since farline 0.3.0 and goes in 1.0.0: use --new"
    )


def test_versions_sort_with_candidates_before_what_they_are_for() -> None:
    texts = ["0.2.0", "0.10.0", "1.0.0-rc1", "1.0.0-rc2", "1.0.0", "1.0.1"]
    assert sorted(reversed(texts), key=release.order) == texts


def test_there_is_one_place_for_the_version() -> None:
    assert list(release.one_place("")) == []


def test_every_protocol_version_has_its_frames_and_a_commit_to_build() -> None:
    assert not [one for one in release.old_versions("") if not one.startswith("make old-peers")]


def test_the_checklist_says_what_is_missing_and_changes_nothing() -> None:
    before = (ROOT / "Cargo.toml").read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "scripts.release", "99.0.0-rc1"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'write version = "99.0.0-rc1" below [workspace.package] in Cargo.toml' in done.stdout
    assert "## [99.0.0-rc1] YYYY-MM-DD" in done.stdout
    assert "by hand  git tag" in done.stdout
    assert (ROOT / "Cargo.toml").read_bytes() == before


def test_an_earlier_version_is_refused() -> None:
    (line,) = release.version("0.0.1")
    assert line.startswith("0.0.1 is earlier than ")
