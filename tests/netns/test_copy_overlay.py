"""Copies into an overlay, as containers have: folders of a lower layer cannot be moved there."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import FARLINE, environment


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Path]:
    """The upper end of an overlay, whose lower layer has a folder `x` with files."""
    place = tmp_path / "layers"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", str(place)], check=True)
    layers = [place / name for name in ("lower", "upper", "work", "merged")]
    for layer in layers:
        layer.mkdir()
    lower, upper, work, merged = layers
    (lower / "x" / "inside").mkdir(parents=True)
    (lower / "x" / "inside" / "file").write_text("old")
    words = f"lowerdir={lower},upperdir={upper},workdir={work}"
    mounted = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", words, str(merged)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    try:
        if mounted.returncode:
            pytest.skip(f"no overlay can be mounted: {mounted.stderr.strip()}")
        yield merged
    finally:
        subprocess.run(["umount", "-q", str(merged)], check=False)
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_of_a_lower_layer_makes_way(tmp_path: Path, overlay: Path, kind: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    if kind == "file":
        (source / "x").write_text("new")
    else:
        (source / "x").symlink_to("elsewhere")
    done = subprocess.run(
        [*FARLINE, "copy", "--no-store", "--no-progress", "--force", "--overwrite", "always",
         f"{source}/", f"{overlay}/"],
        env=environment(tmp_path), text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [path.name for path in overlay.iterdir()] == ["x"]
    if kind == "file":
        assert (overlay / "x").read_text() == "new"
    else:
        assert (overlay / "x").readlink() == Path("elsewhere")
