"""A folder is not copied into itself, by whatever name it is called."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farline.copying import CopyRequest
from farline.copying.into_itself import check_not_into_itself
from farline.copying.job import CopyJob
from farline.errors import UsageError

Refused = Callable[..., str | None]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`src/sub/deep`, `src/file`, `other`, and `link`, which leads to `src/sub`."""
    (tmp_path / "src" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "file").write_text("content")
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("src/sub")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(*places: str, listed: bool = False, **copy: Any) -> str | None:
    *sources, destination = places
    try:
        check_not_into_itself(sources, destination, copy, listed)
    except UsageError as error:
        return error.message
    return None


@pytest.mark.parametrize(
    "places",
    [
        ("src", "src/sub"), ("src", "src/sub/"), ("src", "src/new"), ("src/", "src/sub"),
        ("src", "src"), ("src", "link"), ("src", "link/new"), ("src", "other/../src/sub"),
        ("src/sub/..", "src/sub/deep"), ("./src/.", "src/sub"), (".", "src/new"),
        ("other", "src", "src/sub"), ("link/", "src/sub/deep"),
    ],
)  # fmt: skip
def test_a_destination_inside_a_source_is_refused(tree: Path, places: tuple[str, ...]) -> None:
    said = refusal(*places)
    assert said is not None and "inside the source, so the copy would contain itself" in said


@pytest.mark.parametrize(
    "places",
    [
        ("src", "other"), ("src", "new"), ("src/sub", "src/new"), ("src/sub/deep", "."),
        ("link", "src/sub/deep"), ("src/file", "src/sub"), ("src/file", "src/copy"),
        ("none", "src/sub"), ("src", "none/new"), ("src-2", "src/sub"), ("other", "src/sub"),
    ],
)  # fmt: skip
def test_a_destination_beside_the_sources_is_fine(tree: Path, places: tuple[str, ...]) -> None:
    (tree / "src-2").mkdir()
    assert refusal(*places) is None


@pytest.mark.parametrize(
    ("places", "what"),
    [
        (("src/file", "src"), "file"), (("src/file", "src/file"), "file"),
        (("src/file", "link/../file"), "file"), (("src/file", "src/./file"), "file"),
        (("src", "."), "folder"), (("src/", "src/"), "folder"), (("src/sub/", "link"), "folder"),
    ],
)  # fmt: skip
def test_what_is_its_own_copy_is_refused(tree: Path, places: tuple[str, ...], what: str) -> None:
    said = refusal(*places)
    assert said is not None and f"source and destination are the same {what}" in said


def test_another_name_of_a_file_is_not_the_file_itself(tree: Path) -> None:
    os.link(tree / "src" / "file", tree / "src" / "twin")
    assert refusal("src/file", "src/twin") is None
    assert refusal("src/file", "src") is not None


def test_links_count_where_they_are_followed(tree: Path) -> None:
    (tree / "to-src").symlink_to("src")
    assert refusal("to-src", "src/sub") is None
    assert refusal("to-src", "src/sub", links="follow") is not None
    assert refusal("to-src/", "src/sub") is not None


def test_a_destination_that_is_left_out_may_be_inside(tree: Path) -> None:
    """As people make backups with rsync: --exclude backup . backup."""
    assert refusal("src", "src/sub", filters=["- sub"]) is None
    assert refusal("src", "src/sub/deep", filters=["- /src/sub/"]) is None
    assert refusal("src/", "src/sub", filters=["- /sub"]) is None
    assert refusal("src", "src/sub", filters=["- /sub"]) is not None
    said = refusal("src", "src/sub")
    assert said is not None and said.endswith("or leave it out with --exclude '/src/sub'")
    assert refusal("src", "src/sub", filters=["- /src/sub"]) is None
    assert refusal("src", "src/sub", listed=True) is None
    assert refusal("src", "src/sub", recursive=False) is None


def test_nothing_deletes_its_own_source(tree: Path) -> None:
    for danger in ({"delete": 3}, {"force": True}):
        said = refusal("src/sub/", "src", **danger)
        assert said is not None and "the source is inside the destination" in said
    assert refusal("src/sub/", "src") is None


def test_a_deletion_that_asks_first_is_refused_as_well(tree: Path) -> None:
    request = CopyRequest.between("src/sub/", "src", keep=False)
    with pytest.raises(UsageError, match="the source is inside the destination"):
        CopyJob(replace(request, confirm_deletion=True))


def test_nothing_is_made_before_the_refusal(tree: Path) -> None:
    before = sorted(map(str, tree.rglob("*")))
    with pytest.raises(UsageError, match="would contain itself"):
        CopyJob(CopyRequest.between("src", "src/new", keep=False))
    assert sorted(map(str, tree.rglob("*"))) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_bind_mount_is_the_folder_that_it_shows(tree: Path) -> None:
    """In a mount namespace of its own, which ends with the process."""
    script = """
import sys
from tests.unit.copying.test_into_itself import refusal
print(refusal("src", "whole/new"), refusal("src", "part/new"), refusal("part", "src"), sep="\\n")
"""
    (tree / "whole").mkdir()
    (tree / "part").mkdir()
    mounts = "mount --bind src whole && mount --bind src/sub part"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{mounts} && exec "$0" -c "$1"', sys.executable, script],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    whole, part, back = done.stdout.splitlines()
    assert "would contain itself" in whole and "would contain itself" in part
    assert back == "None"
