"""Where values stand on an axis."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.plots.axes import choose_scale, parameter_axis, shown_ticks


@pytest.mark.parametrize(
    ("name", "values", "scale"),
    [
        ("tcp.send_buffer_bytes", [131_072, 1_048_576, 4_194_304], "log2"),
        ("block_bytes", [65_536, 131_072], "log2"),
        ("streams", [1, 2, 4, 8, 16], "log2"),
        ("streams", [1, 2, 3, 4], "linear"),
        ("streams", [1, 2, 3, 4, 6, 8], "linear"),
        ("streams", [1, 4], "log2"),
        ("rate_bps", [10**9, 10**10, 10**11], "log10"),
        ("rate_bps", [0, 10**9, 10**10], "linear"),
        ("duration_s", [5.0], "linear"),
        ("tcp.send_buffer_bytes", [None, 131_072, 1_048_576], "category"),
        ("tcp.congestion_control", ["bbr", "cubic"], "category"),
        ("tcp.no_delay", [False, True], "category"),
    ],
)
def test_a_scale_fits_its_grid(name: str, values: list[Any], scale: str) -> None:
    assert choose_scale(name, values) == scale


def test_buffers_stand_at_their_logarithm_to_base_two_as_in_papers_1() -> None:
    axis = parameter_axis("udp.send_buffer_bytes", [2**17, 2**20, 2**19, 2**17])
    assert axis.positions == (17.0, 19.0, 20.0)
    assert axis.texts == ("128 KiB", "512 KiB", "1 MiB")
    assert axis.label == "UDP send buffer"
    assert axis.position(2**19) == 19.0


def test_blocks_are_multiples_of_the_payload_as_in_papers_1() -> None:
    blocks = [8956, 8956 * 4, 8956 * 10, 8956 * 20]
    axis = parameter_axis("block_bytes", blocks, payload_bytes=8956)
    assert axis.texts == ("1", "4", "10", "20")
    assert axis.label == "Block size (multiples of the payload, 8956 B)"


def test_blocks_that_are_no_multiples_keep_their_size() -> None:
    axis = parameter_axis("block_bytes", [65_536, 131_072], payload_bytes=1448)
    assert axis.texts == ("64 KiB", "128 KiB")


def test_what_was_left_open_comes_first_and_takes_a_place_of_its_own() -> None:
    axis = parameter_axis("tcp.send_buffer_bytes", [1_048_576, None, 65_536])
    assert axis.texts == ("auto", "64 KiB", "1 MiB")
    assert axis.positions == (0.0, 1.0, 2.0)
    assert axis.ordered
    assert not parameter_axis("tcp.congestion_control", ["bbr", "cubic"]).ordered


def test_one_value_has_room_around_it() -> None:
    low, high = parameter_axis("streams", [4]).limits
    assert low < 4 < high


@given(st.integers(1, 60), st.integers(2, 12))
def test_ticks_fit_their_room_and_keep_both_ends(count: int, room: int) -> None:
    axis = parameter_axis("streams", range(1, count + 1))
    shown = shown_ticks(axis, room)
    assert shown[0] == 0 and shown[-1] == count - 1
    assert shown == sorted(set(shown))
    assert len(shown) <= max(room, 2) + 1


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=20, unique=True))
def test_places_keep_the_order_of_values(values: list[int]) -> None:
    axis = parameter_axis("block_bytes", values)
    assert list(axis.values) == sorted(values)
    assert list(axis.positions) == sorted(axis.positions)
