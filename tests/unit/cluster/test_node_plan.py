"""What a user can rely on when a copy is cut into parts for several nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.cluster.look import capacity_text, shares
from farline.cluster.parts_queue import LONGEST_BUSY_S, MOST_FAILURES, MOST_TRIES, PartsQueue
from farline.cluster.plan import (
    CUT_BYTES,
    LEAST_BYTES,
    LEAST_FILES,
    MOST_NAMES,
    Bases,
    Listed,
    Part,
    parts_of,
)
from farline.errors import BusyError, TimeoutFailure, UsageError

BASES = Bases({}, "/data/")
GRAIN = 65_536


def sizes(parts: list[Part], path: str) -> list[tuple[int, int]]:
    """Where the pieces of a file begin and end."""
    return sorted(part.span for part in parts if path in part.names and part.span is not None)


@given(
    st.lists(st.integers(0, 1 << 34), max_size=60),
    st.integers(1, 16),
)
def test_every_byte_of_every_file_is_in_one_part(lengths: list[int], lanes: int) -> None:
    files = [Listed(f"d{number % 3}/f{number}", size) for number, size in enumerate(lengths)]
    parts = parts_of(files, BASES, lanes)
    assert [part.number for part in parts] == list(range(len(parts)))
    assert sum(part.size for part in parts) == sum(lengths)
    for one in files:
        whole = [part for part in parts if one.path in part.names and part.span is None]
        pieces = sizes(parts, one.path)
        if not one.size:
            assert not whole and not pieces
            continue
        assert bool(whole) != bool(pieces)
        assert len(whole) <= 1
        if not pieces:
            continue
        at = 0
        for offset, length in pieces:
            assert offset == at
            assert offset % CUT_BYTES == length % GRAIN == 0
            at += length
        assert one.size <= at < one.size + GRAIN


@given(st.integers(1, 40_000), st.integers(1, 16))
def test_many_small_files_are_shared_by_all_and_the_last_parts_are_short(
    count: int, lanes: int
) -> None:
    parts = parts_of([Listed(f"f{number}", 1000) for number in range(count)], BASES, lanes)
    assert all(len(part.names) <= MOST_NAMES for part in parts)
    most = max(len(part.names) for part in parts)
    assert most <= max(count // (2 * lanes) + 1, LEAST_FILES)
    assert len(parts) >= min(lanes, count // LEAST_FILES)


def test_one_large_file_keeps_all_nodes_at_work_to_the_end() -> None:
    parts = parts_of([Listed("large", 4 << 30)], BASES, 8)
    assert len(parts) >= 16
    assert max(part.size for part in parts) <= (4 << 30) // 16 + CUT_BYTES
    assert min(part.size for part in parts[-8:]) <= 2 * LEAST_BYTES


def test_a_path_is_found_at_the_source_that_it_comes_from() -> None:
    bases = Bases.of(["/data/run1", "/other/run2/", "rel/x"])
    assert bases.of_path("run1/a/b") == "/data"
    assert bases.of_path("a/b") == "/other/run2/"
    assert bases.of_path("x") == "rel"
    assert Bases.of(["x"]).of_path("x") == "."
    assert Bases.of(["/x"]).of_path("x/y") == "/"
    assert Bases.of(["/data/*.dat"]).of_path("a.dat") == "/data"
    assert Bases.of(["/a"]).of_path("b") is None
    with pytest.raises(UsageError, match="only one source may stand for what is in it"):
        Bases.of(["/a/", "/b/"])
    with pytest.raises(UsageError, match=r"write /data/\*, or name the folders one by one"):
        Bases.of(["/data/*/"])


def test_files_of_one_part_are_in_one_folder_at_the_source() -> None:
    bases = Bases.of(["/data/run1", "/other/run2"])
    files = [Listed(f"run{1 + number % 2}/f{number}", 10) for number in range(100)]
    parts = parts_of(files, bases, 2)
    for part in parts:
        first = {"/data": "run1/", "/other": "run2/"}[part.base]
        assert all(name.startswith(first) for name in part.names)
    assert sum(len(part.names) for part in parts) == 100


def part(number: int) -> Part:
    return Part(number, "/data", ("f",), 10)


def test_a_part_that_failed_waits_for_another_pair_before_all_others() -> None:
    queue = PartsQueue([part(0), part(1)], 2)
    first = queue.take(0)
    assert first == part(0)
    assert queue.failed(0, first, TimeoutFailure("silent")) == 1.0
    assert queue.take(0) == part(0)
    assert queue.take(0) == part(1)
    assert queue.take(0) is None
    assert not queue.is_over
    queue.done(1, part(0))
    queue.done(1, part(1))
    assert queue.is_over
    assert queue.error is None


def test_a_pair_is_given_up_after_failures_in_a_row_and_the_copy_with_the_last_pair() -> None:
    queue = PartsQueue([part(0), part(1)], 2)
    for lane in (0, 1):
        for failure in range(MOST_FAILURES):
            taken = queue.take(0)
            assert taken is not None
            waits = queue.failed(lane, taken, TimeoutFailure(f"lane {lane}"))
            assert (waits is None) == (failure == MOST_FAILURES - 1)
            if lane == 0:
                assert queue.error is None
    assert queue.error is not None
    assert queue.error.message == "lane 1"
    assert queue.is_over
    assert queue.take(0) is None


def test_what_succeeds_begins_the_count_of_failures_anew() -> None:
    queue = PartsQueue([part(number) for number in range(9)], 1)
    for _ in range(3):
        for _ in range(MOST_FAILURES - 1):
            taken = queue.take(0)
            assert taken is not None
            assert queue.failed(0, taken, TimeoutFailure("again")) is not None
        taken = queue.take(0)
        assert taken is not None
        queue.done(0, taken)
    assert queue.error is None


def test_a_part_that_nobody_can_carry_ends_the_copy() -> None:
    queue = PartsQueue([part(0), part(1)], 50)
    for lane in range(MOST_TRIES):
        taken = queue.take(0)
        assert taken == part(0)
        queue.failed(lane, taken, TimeoutFailure("no"))
    assert queue.error is not None
    assert queue.take(0) is None


def test_a_part_that_a_lost_node_still_holds_is_waited_for_and_is_nobodys_failure() -> None:
    now = [0.0]
    queue = PartsQueue([part(0), part(1)], 1, lambda: now[0])
    busy = BusyError("another copy of the same sources runs")
    for _ in range(20):
        taken = queue.take(0)
        assert taken is not None
        now[0] += 1
        if taken.number == 0:
            assert queue.failed(0, taken, busy) == 1.0
        else:
            queue.done(0, taken)
    assert queue.error is None
    now[0] += LONGEST_BUSY_S
    taken = queue.take(0)
    assert taken == part(0)
    queue.failed(0, taken, busy)
    assert queue.error is busy


def test_a_pair_that_comes_back_is_given_up_at_its_first_failure_and_no_part_is_blamed() -> None:
    queue = PartsQueue([part(0)], 1)
    for _ in range(2 * MOST_TRIES):
        queue.joined(7)
        assert queue.lanes == 2
        taken = queue.take(0)
        assert taken is not None
        assert queue.failed(7, taken, TimeoutFailure("cut")) is None
        assert queue.lanes == 1
    assert queue.error is None
    queue.joined(7)
    taken = queue.take(0)
    assert taken is not None
    queue.done(7, taken)
    assert queue.is_over


def test_a_slow_pair_begins_with_a_part_that_is_shorter_by_as_much() -> None:
    parts = [Part(number, "/data", ("f",), size) for number, size in enumerate((80, 40, 20, 8, 4))]
    queue = PartsQueue(parts, 2)
    assert queue.take(0, 0.1) == parts[3]
    assert queue.take(0) == parts[0]
    assert queue.take(0, 0.5) == parts[2]
    assert queue.take(0, 0.01) == parts[4], "what is there is taken, however short it should be"
    assert queue.take(0, 0.01) == parts[1]


def test_the_slower_interface_of_a_pair_bounds_it_and_is_shared_by_its_pairs() -> None:
    has = {"a": {"nic_bps": 100e9}, "b": {"nic_bps": 10e9}, "c": {"nic_bps": 100e9}, "d": {}}
    assert shares([("a", "c"), ("b", "d")], has) == [1.0, 0.1]
    assert shares([("a", "c"), ("b", "c")], has) == [1.0, 0.2]
    assert shares([("d", "x"), ("b", "c")], has) == [1.0, 1.0]
    assert shares([("d", "x")], {}) == [1.0]


def test_what_a_node_has_is_one_line() -> None:
    has = {"cpus": 8, "memory_bytes": 32 << 30, "nic_bps": 100_000_000_000, "free_bytes": 1 << 40}
    told = capacity_text("dtn1", has)
    assert told == "dtn1: 8 CPUs, 32.0 GiB of memory, interface 100 Gbit/s, 1.00 TiB free"
    assert capacity_text("dtn1", {"free_bytes": 1 << 30}) == "dtn1: 1.00 GiB free"
