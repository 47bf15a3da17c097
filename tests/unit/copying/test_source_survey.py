"""Whether sources are many small files, by a glance."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.copying.source_survey import MANY_FILES, SMALL_BYTES, are_many_and_small


def _fill(folder: Path, count: int, size: int) -> Path:
    for number in range(count):
        below = folder / f"{number % 8}"
        below.mkdir(parents=True, exist_ok=True)
        with (below / f"{number}").open("wb") as file:
            file.truncate(size)
    return folder


@pytest.mark.parametrize(
    ("count", "size", "is_so"),
    [
        (MANY_FILES, 10_000, True),
        (MANY_FILES - 1, 10_000, False),
        (MANY_FILES, SMALL_BYTES, False),
    ],
)
def test_many_and_small_takes_both(tmp_path: Path, count: int, size: int, is_so: bool) -> None:
    folder = _fill(tmp_path / "data", count, size)
    assert are_many_and_small([str(folder)], 10) == is_so


def test_what_cannot_be_read_is_left_to_the_copy(tmp_path: Path) -> None:
    folder = _fill(tmp_path / "data", MANY_FILES, 1)
    assert are_many_and_small([str(tmp_path / "missing"), str(folder)], 10)
    assert not are_many_and_small([str(tmp_path / "missing")], 10)


def test_it_looks_no_longer_than_it_may(tmp_path: Path) -> None:
    assert not are_many_and_small([str(_fill(tmp_path / "data", MANY_FILES, 1))], 0)
