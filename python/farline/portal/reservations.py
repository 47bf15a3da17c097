"""Reservations: held, committed, kept by the clock, released; never more than a capacity.

What is free is looked up and what is taken is written in one transaction that has the write lock
from its beginning (`Database.write`): two who ask at once are asked one after the other. No network
hears of it: a back end does that.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from farline.errors import LimitError, SpecError
from farline.portal.booking import Booking, Resource, Window, free_of_all, next_window, steps
from farline.portal.capacities import resources_between
from farline.portal.database import Database, Row
from farline.portal.settings import FARTHEST_S, Settings

Phase = Literal["held", "reserved", "active", "finished", "released", "expired"]
OPEN: tuple[Phase, ...] = ("held", "reserved", "active")

_COUNTS = "(r.phase = 'reserved' OR (r.phase = 'held' AND r.held_until_s > :now))"
"""Whether a reservation takes something of its resources."""


class NoCapacityError(LimitError):
    """There is less than was asked for."""

    def __init__(self, message: str, available_bps: int, window: Window | None) -> None:
        """`window` is the first time at which it is free, if there is one."""
        super().__init__(message)
        self.available_bps, self.window = available_bps, window


class NoSuchReservationError(SpecError):
    """None has this name, or it is another user's."""


class WrongPhaseError(LimitError):
    """What was asked for is not possible any more."""


@dataclass(frozen=True)
class Reservation:
    """So much from one site to another, from when to when (POSIX seconds)."""

    id: str
    user: str
    source: str
    destination: str
    rate_bps: int
    start_s: float
    end_s: float
    phase: Phase
    """As the clock has it now."""
    held_until_s: float
    label: str
    created_s: float

    @property
    def is_open(self) -> bool:
        """Whether it still takes something, now or later."""
        return self.phase in OPEN


@dataclass(frozen=True)
class Wish:
    """What somebody wants to reserve."""

    source: str
    destination: str
    rate_bps: int
    start_s: float
    end_s: float
    label: str = ""


class Reservations:
    """The reservations of a service."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings

    def hold(self, user: str, wish: Wish) -> Reservation:
        """Holds what is wished for; unless committed it ends after `hold_s`.

        Raises:
            NoCapacityError: when it is not free; SpecError for times and sites that cannot be.
            LimitError: when the user has too many.
        """
        now = self._settings.now()
        _check_times(wish, now)
        capacities = resources_between(self._settings.infrastructure, wish.source, wish.destination)
        name = uuid.uuid4().hex[:12]
        with self._database.write() as write:
            self._check_count(write, user, now)
            resources = _resources(write, capacities, now, wish.start_s, None)
            _check_free(resources, wish)
            write.execute(
                "INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, 'held', ?, ?, ?)",
                (name, user, wish.source, wish.destination, wish.rate_bps, wish.start_s,
                 wish.end_s, now + self._settings.hold_s, wish.label, now),
            )  # fmt: skip
            write.executemany(
                "INSERT INTO bookings VALUES (?, ?)", [(name, one) for one in capacities]
            )
        return self.get(name)

    def commit(self, name: str) -> Reservation:
        """Makes a held one stay; one that was committed before stays as it is.

        Raises:
            WrongPhaseError: when it has expired, ended or was released.
        """
        now = self._settings.now()
        with self._database.write() as write:
            write.execute(
                "UPDATE reservations SET phase = 'reserved' WHERE id = ? AND phase = 'held'"
                " AND held_until_s > ? AND end_s > ?",
                (name, now, now),
            )
        found = self.get(name)
        if found.phase in ("expired", "released", "finished"):
            raise WrongPhaseError(
                f"reservation {name} is {found.phase}: hold a new one (a hold lasts "
                f"{self._settings.hold_s:.0f} s)"
            )
        return found

    def release(self, name: str) -> Reservation:
        """Gives back what is left of it; harmless when it has ended."""
        with self._database.write() as write:
            if _of_row(_one(write, name), self._settings.now()).is_open:
                write.execute("UPDATE reservations SET phase = 'released' WHERE id = ?", (name,))
        return self.get(name)

    def get(self, name: str) -> Reservation:
        """One by its name.

        Raises:
            NoSuchReservationError: when there is none.
        """
        row = self._database.row("SELECT * FROM reservations WHERE id = ?", (name,))
        if row is None:
            raise NoSuchReservationError(f"reservation {name[:40]!r}: there is no such reservation")
        return _of_row(row, self._settings.now())

    def newest(self, user: str | None = None, limit: int = 200) -> Sequence[Reservation]:
        """Those of a user, or of all; the newest first."""
        rows = self._database.rows(
            "SELECT * FROM reservations WHERE ? IS NULL OR user = ? ORDER BY created_s DESC, id"
            " LIMIT ?",
            (user, user, limit),
        )
        return [_of_row(row, self._settings.now()) for row in rows]

    def availability(
        self, source: str, destination: str, start_s: float, end_s: float
    ) -> tuple[int, list[tuple[float, float, int]]]:
        """The capacity between two sites, and spans with what is free in each.

        Raises:
            SpecError: for unknown sites, or times that cannot be.
        """
        now = self._settings.now()
        if not start_s < end_s <= now + 2 * FARTHEST_S:
            raise SpecError("end: it must be after start, and at most two years from now")
        capacities = resources_between(self._settings.infrastructure, source, destination)
        with self._database.write() as read:
            resources = _resources(read, capacities, now, start_s, end_s)
        return min(capacities.values()), steps(resources, start_s, end_s)

    def _check_count(self, write: sqlite3.Connection, user: str, now: float) -> None:
        """Refuses the one too many."""
        (count,) = write.execute(
            "SELECT count(*) FROM reservations r WHERE user = :user AND end_s > :now"
            f" AND {_COUNTS}",
            {"user": user, "now": now},
        ).fetchone()
        if count >= self._settings.most_reservations:
            raise LimitError(
                f"you have {count} reservations, the most that are allowed; release one first"
            )


def _resources(
    read: sqlite3.Connection,
    capacities: Mapping[str, int],
    now: float,
    start_s: float,
    end_s: float | None,
) -> list[Resource]:
    """Resources with the bookings that end after `start_s` and begin before `end_s`."""
    found = []
    for name, capacity_bps in capacities.items():
        rows = read.execute(
            "SELECT r.start_s, r.end_s, r.rate_bps FROM bookings b JOIN reservations r"
            f" ON r.id = b.reservation WHERE b.resource = :name AND r.end_s > :start AND {_COUNTS}"
            " AND r.start_s < :end",
            {"name": name, "now": now, "start": start_s, "end": end_s or float("inf")},
        )
        found.append(Resource(name, capacity_bps, [Booking(*row) for row in rows]))
    return found


def _check_free(resources: Sequence[Resource], wish: Wish) -> None:
    free = free_of_all(resources, wish.start_s, wish.end_s)
    if free >= wish.rate_bps:
        return
    window = next_window(
        resources, wish.rate_bps, wish.end_s - wish.start_s, wish.start_s, wish.start_s + FARTHEST_S
    )
    more = "" if window else "; at no time within a year is that much free"
    raise NoCapacityError(
        f"{wish.source} to {wish.destination}: {wish.rate_bps} bit/s requested, {free} bit/s are "
        f"free then{more}",
        free,
        window,
    )


def _check_times(wish: Wish, now: float) -> None:
    if wish.rate_bps < 1:
        raise SpecError("rate_bps: it must be above 0")
    if wish.start_s < now - 60:
        raise SpecError("start: it is past")
    if wish.end_s <= max(wish.start_s, now):
        raise SpecError("end: it must be after start, and after now")
    if wish.end_s > now + FARTHEST_S:
        raise SpecError("end: it is more than a year from now")


def _one(read: sqlite3.Connection, name: str) -> Row:
    row: Row | None = read.execute("SELECT * FROM reservations WHERE id = ?", (name,)).fetchone()
    if row is None:
        raise NoSuchReservationError(f"reservation {name[:40]!r}: there is no such reservation")
    return row


def _of_row(row: Row, now: float) -> Reservation:
    values = dict(row)
    return Reservation(**{**values, "phase": _phase(values, now)})


def _phase(row: Mapping[str, float | str], now: float) -> str:
    """The phase that is kept, moved on by the clock."""
    if row["phase"] == "held" and float(row["held_until_s"]) <= now:
        return "expired"
    if row["phase"] != "reserved" or now < float(row["start_s"]):
        return str(row["phase"])
    return "active" if now < float(row["end_s"]) else "finished"
