"""What other paths add, against the formula written out for one path after the other."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.estimating.features import SCALE, features, prior
from farline.estimating.finished import Finished
from farline.estimating.like_paths import _SPREAD, level_of, like_paths
from farline.estimating.workload import Workload

LOAD = Workload(1e10, 100, 4, 1, 1, 0.04, 1e10, 2.0**25, None)

transfers = st.builds(
    lambda size, files, rate: Finished(replace(LOAD, total_bytes=size, files=files), 0.0, rate),
    st.floats(1e3, 1e15), st.integers(1, 10**6), st.floats(1e5, 1e11),
)  # fmt: skip


@given(st.lists(st.lists(transfers, min_size=1, max_size=5), max_size=5))
def test_a_path_weighs_as_much_as_its_nearest_transfers_are_like(
    paths: list[list[Finished]],
) -> None:
    total = weights = 0.0
    for done in paths:
        away = [sum(((features(one.workload) - features(LOAD)) / SCALE) ** 2) for one in done]
        near = [math.exp(-(one - min(away)) / 2) for one in away]
        beside = [one.log_rate - prior(features(one.workload)) for one in done]
        weight = math.exp(-min(away) / (2 * _SPREAD**2))
        level = sum(a * b for a, b in zip(near, beside, strict=True)) / sum(near)
        total, weights = total + weight * level, weights + weight
    level, weight = level_of(LOAD, like_paths(paths))
    assert level == pytest.approx(total / (weights + 1), rel=1e-9, abs=1e-12)
    assert weight == pytest.approx(weights, rel=1e-9)


def test_no_path_adds_nothing() -> None:
    assert level_of(LOAD, like_paths(())) == (0.0, 0.0)
