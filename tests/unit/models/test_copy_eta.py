"""How long a copy will still take: a cost per file and per byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.models.copy_eta import CopyEta

MIB = 1 << 20


def fed(per_file: float, per_byte: float, steps: list[tuple[int, int]]) -> CopyEta:
    eta, elapsed, files, size = CopyEta(), 0.0, 0, 0
    for more_files, more_bytes in steps:
        elapsed += per_file * more_files + per_byte * more_bytes
        files, size = files + more_files, size + more_bytes
        eta.add(elapsed, files, size)
    return eta


def test_nothing_seen_is_nothing_known() -> None:
    eta = CopyEta()
    assert eta.left_s(10, 10) is None
    eta.add(3.0, 0, 0)
    assert eta.left_s(10, 10) is None


@given(
    st.floats(1e-6, 1e-2), st.floats(1e-11, 1e-7),
    st.lists(st.tuples(st.integers(1, 999), st.integers(MIB, 999 * MIB)), min_size=4, max_size=30),
)  # fmt: skip
def test_both_costs_are_found_where_files_and_bytes_vary(
    per_file: float, per_byte: float, steps: list[tuple[int, int]]
) -> None:
    eta = fed(per_file, per_byte, [*steps, (1000, MIB), (1, 1000 * MIB)])
    left = eta.left_s(5000, 5000 * MIB)
    assert left == pytest.approx(5000 * per_file + 5000 * MIB * per_byte, rel=1e-3)


def test_small_files_behind_a_large_one_are_not_timed_by_the_rate_alone() -> None:
    eta = fed(0.001, 1e-9, [(1, 500 * MIB), (0, 500 * MIB), (200, MIB), (200, MIB)])
    # A rate alone would say 10 ms for 10 MiB in 10,000 files.
    assert eta.left_s(10_000, 10 * MIB) == pytest.approx(10.0, rel=0.05)


def test_files_of_one_size_are_timed_by_either() -> None:
    eta = fed(0.001, 1e-8, [(10, 10 * 1024)] * 20)
    assert eta.left_s(100, 100 * 1024) == pytest.approx(100 * (0.001 + 1024e-8), rel=1e-6)


def test_a_slower_path_is_followed() -> None:
    eta = fed(0.0, 1e-9, [(0, MIB)] * 50)
    before = eta.left_s(0, 1000 * MIB)
    slow = CopyEta()
    elapsed, size = 0.0, 0
    for number in range(400):
        elapsed += MIB * (1e-9 if number < 50 else 1e-8)
        size += MIB
        slow.add(elapsed, 0, size)
    after = slow.left_s(0, 1000 * MIB)
    assert before is not None and after is not None
    assert after > 9 * before


def test_standing_still_counts() -> None:
    eta = CopyEta()
    eta.add(1.0, 0, MIB)
    for second in range(2, 11):
        eta.add(float(second), 0, MIB)
    eta.add(11.0, 0, 2 * MIB)
    left = eta.left_s(0, MIB)
    assert left is not None and left > 4


def test_a_session_begun_anew_does_not_confuse_it() -> None:
    eta = fed(0.0, 1e-6, [(0, MIB)] * 10)
    before = eta.left_s(0, MIB)
    eta.add(0.1, 0, 0)
    eta.add(0.2, 0, MIB // 100)
    assert eta.left_s(0, MIB) == pytest.approx(before, rel=0.2)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**6), st.integers(0, 10**12))))
def test_whatever_comes_the_answer_is_no_negative_time(
    reports: list[tuple[float, int, int]],
) -> None:
    eta = CopyEta()
    for elapsed, files, size in reports:
        eta.add(elapsed, files, size)
    left = eta.left_s(7, 7 * MIB)
    assert left is None or left >= 0
