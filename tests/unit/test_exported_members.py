"""What each room offers: its `__all__` is sorted, exists, and hides no module by accident."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "farline"
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def test_the_rooms_are_found() -> None:
    assert {"campaign", "cli", "spec", "store", "tools"} <= set(ROOMS)


@pytest.mark.parametrize("name", ["farline", *(f"farline.{room}" for room in ROOMS)])
def test_exported_members_are_sorted_unique_and_there(name: str) -> None:
    module = importlib.import_module(name)
    exported = list(getattr(module, "__all__", []))
    # As ruff sorts them: constants first.
    assert exported == sorted(set(exported), key=lambda name: (not name.isupper(), name))
    for member in exported:
        assert hasattr(module, member), f"{name} offers {member} but has none"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_that_offers_something_says_so(room: str) -> None:
    module = importlib.import_module(f"farline.{room}")
    public = {
        member
        for member, value in vars(module).items()
        if not member.startswith("_")
        and getattr(value, "__module__", None) is not None
        and str(value.__module__).startswith(f"farline.{room}.")
    }
    assert public <= set(getattr(module, "__all__", [])), "imported but not in __all__"
