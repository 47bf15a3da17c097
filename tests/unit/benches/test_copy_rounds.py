"""Rows of copy-vs-peers from runs whose figures are known; trees that are what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from _copy import trees
from _copy.ours import steady_bps
from _copy.paths import Cell
from _copy.rounds import Moved, contest, cpu, files_per_s
from _copy.trees import Tree
from _emulator.figures import Label

TREE = Tree(Path("/nowhere"), 1000, 10**9)
LABEL = Label("one", "case", "Gb/s")


def moved(seconds: float, cpu_s: float = 1.0) -> Moved:
    return Moved(seconds, cpu_s, 0.0, TREE)


def test_a_row_is_ours_over_the_best_peer_over_the_factor() -> None:
    found = [{"ours": moved(1.0), "slow": moved(4.0), "fast": moved(2.0)}] * 5
    row = contest(LABEL, found, "ours", ("slow", "fast"), 1.6)
    assert (row.ours, row.peer) == (8.0, 4.0)
    assert row.ratio == pytest.approx(2 / 1.6)
    assert row.reached and "fast" in row.note
    assert not contest(LABEL, found, "ours", ("slow", "fast"), 2.1).reached


def test_the_best_peer_is_the_best_of_most_rounds_not_of_a_lucky_one() -> None:
    rounds = [
        {"ours": moved(2.0), "steady": moved(2.0), "lucky": moved(1.0 if n == 0 else 4.0)}
        for n in range(5)
    ]
    row = contest(LABEL, rounds, "ours", ("steady", "lucky"), 1.0)
    assert row.ratio == pytest.approx(1.0)
    assert row.peer_measured == [4.0] * 5


def test_less_cpu_time_is_better() -> None:
    found = [{"ours": moved(1.0, 0.5), "peer": moved(1.0, 0.8), "hungry": moved(1.0, 2.0)}] * 5
    row = contest(LABEL, found, "ours", ("peer", "hungry"), 1.0, cpu, less_is_better=True)
    assert (row.ours, row.peer, row.ratio) == pytest.approx((0.5, 0.8, 1.6))


def test_files_per_second_of_trees_of_different_size_compare() -> None:
    few = Moved(10.0, 1.0, 0.0, Tree(Path("/nowhere"), 100, 10**6))
    row = contest(
        LABEL, [{"ours": moved(1.0), "peer": few}] * 5, "ours", ("peer",), 5.0, files_per_s
    )
    assert (row.ours, row.peer, row.ratio) == pytest.approx((1000.0, 10.0, 20.0))


def progress(rate: Callable[[float], float], total: int) -> list[dict[str, int]]:
    """Ten tellings a second of a copy whose rate is a function of time."""
    settled, told, step = 0.0, [], 0
    while settled < total:
        step += 1
        settled = min(total, settled + rate(step / 10) / 80)
        told.append({"elapsed_us": step * 100_000, "settled_bytes": int(settled)})
    return told


def test_the_steady_rate_leaves_out_the_start_and_the_end() -> None:
    slow_start = progress(lambda at: 8e9 if at > 2 else 8e8, 10**10)
    assert steady_bps(slow_start, 3.0) == pytest.approx(8e9, rel=1e-3)
    assert steady_bps(slow_start, 0.0) < 7.5e9


def test_a_copy_too_short_to_be_steady_has_no_steady_rate() -> None:
    with pytest.raises(ValueError, match="no second that is steady"):
        steady_bps(progress(lambda _: 8e9, 4 * 10**9), 3.0)


@pytest.mark.parametrize(("transport", "gbps"), [("tcp", 4.950), ("udt", 4.955), ("rbudp", 4.955)])
def test_payload_rates_of_jumbo_frames(transport: str, gbps: float) -> None:
    assert Cell(5, transport).payload_gbps == pytest.approx(gbps, abs=0.001)


def test_trees_are_what_they_say_and_are_made_once(tmp_path: Path) -> None:
    tree = trees.small_files(tmp_path / "small", 30, 100, folders=3)
    assert (tree.files, tree.bytes) == (30, 3000) == trees.count(tree.path)
    stamp = (tree.path / "d0000" / "f0000000").stat().st_mtime_ns
    assert trees.small_files(tmp_path / "small", 30, 100, folders=3) == tree
    assert (tree.path / "d0000" / "f0000000").stat().st_mtime_ns == stamp
    contents = {path.read_bytes() for path in tree.path.rglob("f*")}
    assert len(contents) > 5, "files are not all alike"
    mix = trees.mix(tmp_path / "mix", 40)
    assert trees.count(mix.path) == (40, mix.bytes)


def test_a_difference_is_named(tmp_path: Path) -> None:
    one = trees.small_files(tmp_path / "one", 10, 50).path
    other = trees.small_files(tmp_path / "other", 10, 50).path
    assert trees.difference(one, other) is None
    (other / "d0003" / "f0000003").write_bytes(b"x" * 50)
    assert trees.difference(one, other) == "d0003/f0000003 differs"
    (other / "d0003" / "f0000003").write_bytes(b"x")
    assert trees.difference(one, other) == "d0003/f0000003 differs"
    (other / "d0003" / "f0000003").unlink()
    assert trees.difference(one, other) == "d0003/f0000003 is missing"
    (other / "odd").touch()
    assert trees.difference(one, other) == "d0003/f0000003 is missing"
    (other / "d0003" / "f0000003").write_bytes((one / "d0003" / "f0000003").read_bytes())
    assert trees.difference(one, other) == "odd is not of the source"
