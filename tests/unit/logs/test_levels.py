"""Which levels are wanted of which rooms."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.errors import UsageError
from farline.logs.levels import LEVELS, PYTHON_ROOMS, RUST_ROOMS, Levels, parse_levels

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("word", LEVELS)
def test_a_word_is_the_level_of_all_rooms(word: str) -> None:
    assert parse_levels(word, "x") == Levels(word, {})


def test_rooms_have_levels_of_their_own_and_the_others_warn_or_what_is_said() -> None:
    rooms = {"session": "debug", "mover": "trace"}
    assert parse_levels("session=debug,mover=trace", "x") == Levels("warn", rooms)
    assert parse_levels(" info , session=debug, mover=trace,", "x") == Levels("info", rooms)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("loud", "FARLINE_LOG: unknown level 'loud'; allowed: off, error, warn"),
        ("mover=loud", "FARLINE_LOG: unknown level 'loud'"),
        ("removers=debug", "FARLINE_LOG: unknown room 'removers'; allowed:"),
    ],
)
def test_what_is_neither_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_levels(text, "FARLINE_LOG")
    assert refused.value.message.startswith(reason)


def test_every_room_can_be_named() -> None:
    crates = {folder.name for folder in (ROOT / "crates").iterdir() if folder.is_dir()}
    assert set(RUST_ROOMS) == crates - {"carried", "features", "py", "sim"}
    assert {"cli", "store", "tools", "testbeds", "campaign"} <= set(PYTHON_ROOMS)
