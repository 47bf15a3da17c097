"""What is free of a capacity over time, and when enough of it will be: arithmetic alone.

Bookings are half-open spans: one that ends at a moment and one that begins there do not meet.
Nothing here knows of databases, clocks, names or networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


class Booking(NamedTuple):
    """So much of a resource from `start_s` until `end_s` (POSIX seconds)."""

    start_s: float
    end_s: float
    rate_bps: int


class Window(NamedTuple):
    """A span of time."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class Resource:
    """Something that bookings share: a path, or what a site can give out or take in."""

    name: str
    capacity_bps: int
    bookings: Sequence[Booking] = ()


def free_bps(resource: Resource, start_s: float, end_s: float) -> int:
    """What is free all the time from `start_s` until `end_s`; 0 where it is overbooked."""
    return max(0, resource.capacity_bps - _most_booked(resource.bookings, start_s, end_s))


def free_of_all(resources: Iterable[Resource], start_s: float, end_s: float) -> int:
    """What is free of each of them at the same time; they are one or more."""
    return min(free_bps(one, start_s, end_s) for one in resources)


def next_window(
    resources: Sequence[Resource], rate_bps: int, duration_s: float, from_s: float, until_s: float
) -> Window | None:
    """The first span of `duration_s` at or after `from_s` in which `rate_bps` is free.

    It begins by `until_s`; None where none does. A span can only become free when a booking ends,
    so these moments are all that have to be tried.
    """
    if any(one.capacity_bps < rate_bps for one in resources):
        return None
    ends = {booking.end_s for one in resources for booking in one.bookings}
    for start_s in sorted({from_s, *(end for end in ends if from_s < end <= until_s)}):
        if free_of_all(resources, start_s, start_s + duration_s) >= rate_bps:
            return Window(start_s, start_s + duration_s)
    return None


def steps(
    resources: Sequence[Resource], start_s: float, end_s: float
) -> list[tuple[float, float, int]]:
    """What is free from `start_s` until `end_s`, as spans in which it does not change."""
    edges = {
        edge
        for one in resources
        for booking in one.bookings
        for edge in (booking.start_s, booking.end_s)
        if start_s < edge < end_s
    }
    marks = [start_s, *sorted(edges), end_s]
    spans = pairwise(marks)
    return [(begin, until, free_of_all(resources, begin, until)) for begin, until in spans]


def _most_booked(bookings: Iterable[Booking], start_s: float, end_s: float) -> int:
    """The largest sum of bookings at any moment of a span."""
    changes = []
    for one in bookings:
        if one.start_s < end_s and one.end_s > start_s:
            changes += [(max(one.start_s, start_s), one.rate_bps), (one.end_s, -one.rate_bps)]
    booked = most = 0
    # At the same moment ends come first: spans are half-open.
    for _at, change in sorted(changes):
        booked += change
        most = max(most, booked)
    return most
