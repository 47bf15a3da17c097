"""What is free: against a slow and obvious count, moment by moment."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from farline.portal.booking import Booking, Resource, free_bps, free_of_all, next_window, steps

TIMES = st.integers(0, 30)
CAPACITY = 10


@st.composite
def bookings(draw: st.DrawFn) -> list[Booking]:
    """Bookings over a short time, that may overbook."""
    spans = draw(st.lists(st.tuples(TIMES, st.integers(1, 10), st.integers(1, 6)), max_size=8))
    return [Booking(start, start + length, rate) for start, length, rate in spans]


def slowly_free(resource: Resource, start: int, end: int) -> int:
    """The same, asked of every moment; times are whole numbers here."""
    return min(
        max(0, resource.capacity_bps - sum(
            one.rate_bps for one in resource.bookings if one.start_s <= at < one.end_s
        ))
        for at in range(start, end)
    )  # fmt: skip


@given(bookings(), TIMES, st.integers(1, 12))
def test_free_is_what_every_moment_has_left(found: list[Booking], start: int, length: int) -> None:
    resource = Resource("path", CAPACITY, found)
    assert free_bps(resource, start, start + length) == slowly_free(resource, start, start + length)


@given(bookings(), bookings(), st.integers(1, 12), st.integers(1, 12), TIMES)
def test_the_next_window_is_free_and_none_before_it_is(
    one: list[Booking], other: list[Booking], rate: int, length: int, start: int
) -> None:
    resources = [Resource("path", CAPACITY, one), Resource("site", CAPACITY + 1, other)]
    found = next_window(resources, rate, length, start, start + 100)
    if found is None:
        assert rate > CAPACITY
        return
    assert free_of_all(resources, *found) >= rate
    earlier = range(start, int(found.start_s))
    assert all(free_of_all(resources, at, at + length) < rate for at in earlier)


@given(bookings(), TIMES, st.integers(1, 20))
def test_steps_cover_the_span_without_gaps(found: list[Booking], start: int, length: int) -> None:
    resource = Resource("path", CAPACITY, found)
    spans = steps([resource], start, start + length)
    assert spans[0][0] == start and spans[-1][1] == start + length
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    for begin, end, free in spans:
        assert free == slowly_free(resource, int(begin), int(end))


def test_bookings_that_only_touch_do_not_add_up() -> None:
    resource = Resource("path", CAPACITY, [Booking(0, 5, 8), Booking(5, 9, 8)])
    assert free_bps(resource, 0, 9) == 2
