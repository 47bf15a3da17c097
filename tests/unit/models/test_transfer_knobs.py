"""Pipelining, parallelism and concurrency by the published rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.models.transfer_knobs import (
    Chunk,
    best_pipelining,
    channels_for,
    chunks_of,
    size_class,
    textbook_knobs,
)

MB = 10**6
PATH = (1e10, 0.04)


@pytest.mark.parametrize(
    ("file_bytes", "pipelining", "parallelism", "concurrency", "best"),
    [(MB, 50, 1, 32, 49), (10 * MB, 5, 1, 5, 4), (50 * MB, 1, 2, 2, 0), (1000 * MB, 0, 2, 2, 0)],
)
def test_the_rule_has_its_reference_values(
    file_bytes: int, pipelining: int, parallelism: int, concurrency: int, best: int
) -> None:
    knobs = textbook_knobs(*PATH, file_bytes, 1000, 32 << 20)
    assert (knobs.pipelining, knobs.parallelism) == (pipelining, parallelism)
    assert knobs.concurrency == concurrency
    assert best_pipelining(*PATH, file_bytes) == best


def test_sizes_are_told_apart_by_what_the_link_carries_in_a_second() -> None:
    sizes = (62.5 * MB, 63 * MB, 250 * MB, 251 * MB, 2500 * MB, 2501 * MB)
    found = [size_class(size, 1e10) for size in sizes]
    assert found == ["small", "medium", "medium", "large", "large", "huge"]


def test_a_chunk_too_small_to_fill_the_path_joins_the_nearest() -> None:
    sizes = [MB] * 1000 + [3000 * MB] * 10 + [100 * MB]
    chunks = chunks_of(sizes, *PATH)
    assert [(chunk.size_class, chunk.files) for chunk in chunks] == [("small", 1000), ("huge", 11)]


@given(st.lists(st.integers(0, 10**11), min_size=1, max_size=40), st.integers(1, 64))
def test_chunks_lose_no_file_and_channels_no_channel(sizes: list[int], channels: int) -> None:
    chunks = chunks_of(sizes, *PATH)
    assert sum(chunk.files for chunk in chunks) == len(sizes)
    assert sum(chunk.size_bytes for chunk in chunks) == sum(sizes)
    given_out = channels_for(chunks, channels)
    assert sum(given_out) == channels
    if channels >= len(chunks):
        assert min(given_out) >= 1


def test_small_files_get_more_channels_for_their_bytes() -> None:
    chunks = (Chunk("small", 1000, 10**9), Chunk("huge", 1, 10**9))
    assert channels_for(chunks, 8) == (6, 2)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(SpecError, match="rtt_s"):
        textbook_knobs(1e10, 0, MB, 10, MB)
    with pytest.raises(SpecError, match="files"):
        textbook_knobs(1e10, 0.04, MB, 0, MB)
    with pytest.raises(SpecError, match="channels"):
        channels_for((), 4)
