"""On which node each file is: once, where it was, and hardly ever elsewhere with a node more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.cluster.placement import Entry, check_once, place, ranked, without_parents
from farline.cluster.placement_file import PlacementFile
from farline.errors import UsageError

NODES = st.lists(st.from_regex(r"[a-z]{1,8}[0-9]{0,3}", fullmatch=True), min_size=1, unique=True)
PATHS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), unique=True, max_size=60)
MANY = [f"run-{number % 7}/part-{number}.h5" for number in range(4000)]


def entries(paths: list[str], size: int = 1) -> list[Entry]:
    """Files of one size."""
    return [Entry(path, size) for path in paths]


@given(PATHS, NODES, st.booleans())
def test_every_file_is_on_one_node_whatever_their_order(
    paths: list[str], nodes: list[str], is_even: bool
) -> None:
    loads = dict[str, int]() if is_even else None
    placed = place(entries(paths), nodes, {}, {}, loads)
    assert list(placed) == paths
    assert set(placed.values()) <= set(nodes)
    again = place(entries(paths), nodes[::-1], {}, {}, loads)
    assert again == placed


@given(PATHS, NODES, st.data())
def test_a_node_more_takes_names_and_moves_none_between_others(
    paths: list[str], nodes: list[str], data: st.DataObject
) -> None:
    new = data.draw(
        st.from_regex(r"new[0-9]{1,3}", fullmatch=True).filter(lambda n: n not in nodes)
    )
    before = place(entries(paths), nodes, {}, {})
    after = place(entries(paths), [*nodes, new], {}, {})
    assert all(after[path] in (before[path], new) for path in paths)


def test_a_node_more_takes_about_its_share() -> None:
    nodes = [f"dtn{number}" for number in range(1, 9)]
    before = place(entries(MANY), nodes, {}, {})
    after = place(entries(MANY), [*nodes, "dtn9"], {}, {})
    moved = sum(before[path] != after[path] for path in MANY)
    assert 0.8 / 9 < moved / len(MANY) < 1.2 / 9
    counts = Counter(before.values())
    assert max(counts.values()) < 1.2 * len(MANY) / 8


@given(PATHS, NODES, st.data())
def test_what_is_on_a_node_stays_there(
    paths: list[str], nodes: list[str], data: st.DataObject
) -> None:
    at = st.sampled_from(nodes)
    there = {path: [data.draw(at)] for path in paths if data.draw(st.booleans())}
    known = {path: data.draw(at) for path in paths if data.draw(st.booleans())}
    for loads in (None, {node: 10**6 for node in nodes[:1]}):
        placed = place(entries(paths), nodes, there, known, loads)
        for path in paths:
            if path in there:
                assert placed[path] == there[path][0]
            elif path in known:
                assert placed[path] == known[path]


def test_a_file_that_is_known_on_a_node_that_is_away_is_placed_nowhere_else() -> None:
    assert place([Entry("a", 1)], ["n1", "n2"], {}, {"a": "n9"}) == {"a": "n9"}


def test_new_files_even_out_bytes_only_where_an_earlier_copy_says_what_nodes_have() -> None:
    nodes = ["n1", "n2"]
    fresh = entries(MANY[:200], size=100)
    alone = place(fresh, nodes, {}, {})
    assert all(alone[path] == ranked(path, nodes)[0] for path in MANY[:200])
    evened = Counter(place(fresh, nodes, {}, {}, {"n1": 10_000}).values())
    assert evened == {"n1": 50, "n2": 150}


def test_a_new_file_is_on_one_of_its_first_two_nodes() -> None:
    nodes = [f"n{number}" for number in range(8)]
    heavy = {node: 10**9 for node in nodes if node != "n3"}
    placed = place(entries(MANY[:100]), nodes, {}, {}, heavy)
    assert all(placed[path] in ranked(path, nodes)[:2] for path in MANY[:100])


def test_a_file_on_several_nodes_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"on several nodes: a/x \(n1 and n2\); with --own-disks"):
        place([Entry("a/x", 1)], ["n1", "n2"], {"a/x": ["n1", "n2"]}, {})
    with pytest.raises(UsageError, match="and 2 more names"):
        check_once({str(number): ["n1", "n2"] for number in range(5)})
    # A folder is wherever its files are.
    folder = [Entry("a", 0, is_folder=True)]
    assert place(folder, ["n1", "n2"], {"a": ["n2", "n1"]}, {}) == {"a": "n2"}


def test_only_folders_without_anything_in_them_are_placed_by_themselves() -> None:
    found = [Entry("a", 0, True), Entry("a/b", 0, True), Entry("a/b/x", 1), Entry("ab", 0, True)]
    assert [one.path for one in without_parents(found)] == ["a/b/x", "ab"]


def test_a_placement_is_kept_by_node_and_a_name_is_on_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = PlacementFile("testbed:nodes", "/archive/")
    assert file.nodes() == []
    assert file.read("n1") == {}
    file.add({"n1": {"a": 1, "b": 2}, "n/2": {"c": 3}})
    assert PlacementFile("testbed:nodes", "/archive").read("n1") == {"a": 1, "b": 2}
    file.add({"n/2": {"b": 5}})
    assert file.read("n1") == {"a": 1}
    assert file.read("n/2") == {"c": 3, "b": 5}
    assert file.nodes() == ["n/2", "n1"]
    assert PlacementFile("", "/archive").nodes() == []
    file.forget("n1", ["a", "never"])
    assert file.read("n1") == {}
    assert file.read("n/2") == {"c": 3, "b": 5}
    PlacementFile("", "/never").forget("n1", ["a"])
    assert not PlacementFile("", "/never").folder.exists()


def test_a_placement_that_is_damaged_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = PlacementFile("", "/archive")
    file.add({"n1": {"a": 1}})
    (file.folder / "n1.jsonl").write_text('{"schema": 1, "node": "n1"}\n{"path"\n')
    assert file.read("n1") == {}
    file.add({"n1": {"b": 1}})
    assert file.read("n1") == {"b": 1}
