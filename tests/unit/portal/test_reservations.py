"""Reservations: phases by the clock, and never more than there is, whoever asks at once."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farline.errors import LimitError, SpecError
from farline.portal.booking import Booking, Resource, free_bps
from farline.portal.database import Database
from farline.portal.exports import FORMATS, export
from farline.portal.reservations import (
    NoCapacityError,
    NoSuchReservationError,
    Reservation,
    Reservations,
    Wish,
    WrongPhaseError,
)
from farline.portal.settings import HOLD_S, Settings
from tests.support.portals import NOW_S, Clock, made_sites

G = 10**9
HOUR = 3600.0
TRIES = 10_000 if os.environ.get("FARLINE_LONG") == "1" else 200


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def make(clock: Clock) -> Iterator[Callable[..., Reservations]]:
    """Makes the reservations of a service; all over one file, in memory where that is possible."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:

        def made(**more: int) -> Reservations:
            settings = Settings(Path(folder), infrastructure=made_sites(), now=clock, **more)  # type: ignore[arg-type]
            return Reservations(Database(settings.database), settings)

        yield made


def wish(rate_bps: int, start_h: float = 1, hours: float = 2, to: str = "BNL") -> Wish:
    """From ANL, in some hours."""
    start_s = NOW_S + start_h * HOUR
    return Wish("ANL", to, rate_bps, start_s, start_s + hours * HOUR)


def test_a_reservation_goes_through_its_phases(
    make: Callable[..., Reservations], clock: Clock
) -> None:
    kept = make()
    one = kept.hold("ada", wish(6 * G))
    assert (one.phase, one.held_until_s) == ("held", NOW_S + HOLD_S)
    assert kept.commit(one.id).phase == "reserved"
    assert kept.commit(one.id).phase == "reserved"
    for at_h, phase in ((1.0, "active"), (2.99, "active"), (3.0, "finished")):
        clock.at_s = NOW_S + at_h * HOUR
        assert kept.get(one.id).phase == phase
    with pytest.raises(WrongPhaseError, match="is finished"):
        kept.commit(one.id)
    assert kept.release(one.id).phase == "finished"


def test_a_hold_that_nobody_commits_ends_and_gives_back(
    make: Callable[..., Reservations], clock: Clock
) -> None:
    kept = make()
    one = kept.hold("ada", wish(10 * G))
    with pytest.raises(NoCapacityError):
        kept.hold("bob", wish(1))
    clock.at_s += HOLD_S
    assert kept.get(one.id).phase == "expired"
    with pytest.raises(WrongPhaseError, match="is expired"):
        kept.commit(one.id)
    assert kept.hold("bob", wish(10 * G)).phase == "held"


def test_what_is_not_free_is_refused_with_what_is_and_when(
    make: Callable[..., Reservations],
) -> None:
    kept = make()
    one = kept.hold("ada", wish(6 * G))
    with pytest.raises(NoCapacityError, match="4000000000 bit/s are free then") as refused:
        kept.hold("bob", wish(5 * G, start_h=2))
    assert refused.value.available_bps == 4 * G
    assert refused.value.window == (NOW_S + 3 * HOUR, NOW_S + 5 * HOUR)
    kept.release(one.id)
    assert kept.hold("bob", wish(5 * G, start_h=2)).rate_bps == 5 * G


def test_the_hosts_of_a_site_are_shared_by_its_paths(make: Callable[..., Reservations]) -> None:
    kept = make()
    kept.hold("ada", wish(3 * G, to="ORNL"))
    with pytest.raises(NoCapacityError) as refused:
        kept.hold("ada", Wish("BNL", "ORNL", 2 * G, NOW_S + HOUR, NOW_S + 2 * HOUR))
    assert refused.value.available_bps == G, "ORNL's hosts take in 4 Gbit/s"
    capacity_bps, spans = kept.availability("BNL", "ORNL", NOW_S, NOW_S + 4 * HOUR)
    assert capacity_bps == 4 * G
    assert [free for _, _, free in spans] == [4 * G, G, 4 * G]


def test_directions_are_apart(make: Callable[..., Reservations]) -> None:
    kept = make()
    kept.hold("ada", wish(10 * G))
    back = Wish("BNL", "ANL", 10 * G, NOW_S + HOUR, NOW_S + 2 * HOUR)
    assert kept.hold("ada", back).phase == "held"


@pytest.mark.parametrize("bad", [
    wish(0), wish(G, start_h=-1), wish(G, hours=0), wish(G, start_h=9000), wish(G, to="MARS"),
])  # fmt: skip
def test_what_cannot_be_is_refused(make: Callable[..., Reservations], bad: Wish) -> None:
    with pytest.raises(SpecError):
        make().hold("ada", bad)


def test_more_than_there_will_ever_be_has_no_window(make: Callable[..., Reservations]) -> None:
    with pytest.raises(NoCapacityError, match="at no time within a year") as refused:
        make().hold("ada", wish(11 * G))
    assert refused.value.window is None


def test_a_user_has_only_so_many(make: Callable[..., Reservations]) -> None:
    kept = make(most_reservations=2)
    first = kept.hold("ada", wish(1))
    kept.hold("ada", wish(1))
    with pytest.raises(LimitError, match="the most that are allowed"):
        kept.hold("ada", wish(1))
    kept.release(first.id)
    kept.hold("ada", wish(1))
    kept.hold("bob", wish(1))
    with pytest.raises(NoSuchReservationError):
        kept.get("nothing")


@pytest.mark.timeout(900)
def test_whoever_asks_at_once_never_gets_more_than_there_is(
    make: Callable[..., Reservations],
) -> None:
    """Threads with connections of their own, and two services over one file."""
    services = [make(most_reservations=10**6), make(most_reservations=10**6)]

    def ask(number: int) -> None:
        draw = random.Random(number)
        kept = services[number % 2]
        try:
            one = kept.hold(f"user{number % 7}", wish(
                draw.randrange(G, 4 * G), draw.uniform(0, 6), draw.uniform(0.2, 3),
                draw.choice(("BNL", "ORNL")),
            ))  # fmt: skip
        except NoCapacityError:
            return
        if draw.random() < 0.3:
            kept.release(one.id)
        elif draw.random() < 0.5:
            kept.commit(one.id)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(TRIES)))
    found = [one for one in services[0].newest(limit=10**6) if one.is_open]
    assert len(found) > 10
    for site, capacity_bps in (("BNL", 10 * G), ("ORNL", 4 * G)):
        taken = [_booking(one) for one in found if one.destination == site]
        for one in taken:
            # Overbooked would be less than nothing: counted against twice the capacity.
            free = free_bps(Resource(site, 2 * capacity_bps, taken), one.start_s, one.end_s)
            assert free >= capacity_bps


def _booking(one: Reservation) -> Booking:
    return Booking(one.start_s, one.end_s, one.rate_bps)


def test_exports_have_the_rate_the_times_and_the_ends(make: Callable[..., Reservations]) -> None:
    one = make().hold("ada", wish(1_500_000_001))
    oscars, nsi, sense = (export(one, name) for name in ("oscars", "nsi", "sense"))
    assert set(FORMATS) == {"oscars", "nsi", "sense"}
    assert oscars["begin"] == NOW_S + HOUR and oscars["pipes"][0]["mbps"] == 1501
    assert nsi["criteria"]["schedule"]["startTime"] == "2026-11-25T10:46:40Z"
    assert nsi["criteria"]["p2ps"]["capacity"] == 1501
    terminals = sense["data"]["connections"][0]["terminals"]
    assert [one["uri"] for one in terminals] == ["ANL", "BNL"]
