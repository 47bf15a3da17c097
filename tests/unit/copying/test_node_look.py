"""What a node answers that is asked what it sees, and that it leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from farline.copying.node_look import PREFIX, NodeLook, capacity, nearest_folder

NAME = f"{PREFIX}{'0' * 32}"


def test_what_one_node_makes_is_seen_and_goes_at_its_end(tmp_path: Path) -> None:
    look = NodeLook()
    made = look.answer({"make": f"{tmp_path}/not/there/yet", "name": NAME})["made"]
    assert made == f"{tmp_path}/{NAME}"
    assert NodeLook().answer({"see": [made, f"{made}x"]}) == {"seen": [True, False]}
    look.close()
    assert list(tmp_path.iterdir()) == []


def test_only_a_name_of_its_own_is_made_and_nothing_is_replaced(tmp_path: Path) -> None:
    look = NodeLook()
    assert look.answer({"make": str(tmp_path), "name": "../x"}) == {"made": None}
    (tmp_path / NAME).write_text("mine")
    assert look.answer({"make": str(tmp_path), "name": NAME}) == {"made": None}
    look.close()
    assert (tmp_path / NAME).read_text() == "mine"
    assert look.answer({"make": 3, "see": "x"}) == {}


def test_a_node_tells_what_it_has(tmp_path: Path) -> None:
    has = capacity(f"{tmp_path}/later")
    assert has["cpus"] >= 1
    assert has["free_bytes"] > 0
    assert nearest_folder(f"{tmp_path}/a/b") == tmp_path
