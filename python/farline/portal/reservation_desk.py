"""What callers may do with reservations: REST and pages ask here."""

from __future__ import annotations

from farline.portal.access import Caller
from farline.portal.audit import Audit
from farline.portal.documents import (
    Availability,
    FreeSpan,
    ReservationDocument,
    ReservationWish,
    reservation_document,
    when,
)
from farline.portal.estimates import Estimates
from farline.portal.network import Network, NetworkRefusedError
from farline.portal.reservations import (
    NoSuchReservationError,
    Reservation,
    Reservations,
    Wish,
    WrongPhaseError,
)


class ReservationDesk:
    """What callers may do with reservations."""

    def __init__(
        self,
        reservations: Reservations,
        network: Network,
        estimates: Estimates,
        audit: Audit,
    ) -> None:
        self._reservations, self._network = reservations, network
        self._estimates, self._audit = estimates, audit

    @property
    def reserves_network(self) -> bool:
        """Whether what is committed here is reserved on a network as well."""
        return self._network.is_asked

    def hold(self, caller: Caller, wish: Wish) -> Reservation:
        """Holds what is wished for; endpoints become their sites."""
        route = self._estimates.route(wish.source, wish.destination)
        sited = Wish(
            route.source_site, route.destination_site, wish.rate_bps, wish.start_s, wish.end_s,
            wish.label,
        )  # fmt: skip
        found = self._reservations.hold(caller.user, sited)
        self._note(caller, "hold", found)
        return found

    def commit(self, caller: Caller, name: str) -> Reservation:
        """Makes a held one stay, on the network first where there is one."""
        before = self.own(caller, name)
        if before.phase == "held":
            try:
                self._network.reserve(before)
            except NetworkRefusedError:
                self._note(caller, "refused", before)
                raise
        try:
            found = self._reservations.commit(name)
        except WrongPhaseError:
            # It expired while the network was asked.
            self._network.release(before)
            raise
        self._note(caller, "commit", found)
        return found

    def release(self, caller: Caller, name: str) -> Reservation:
        """Gives it back."""
        before = self.own(caller, name)
        found = self._reservations.release(name)
        if before.is_open:
            self._network.release(found)
            self._note(caller, "release", found)
        return found

    def document(self, one: Reservation) -> ReservationDocument:
        """A reservation as it is answered, with what the network calls it."""
        return reservation_document(one, self._network.name_of(one.id))

    def own(self, caller: Caller, name: str) -> Reservation:
        """One that the caller may see: to others it is as if it were not there."""
        found = self._reservations.get(name)
        if not caller.sees(found.user):
            raise NoSuchReservationError(f"reservation {name[:40]!r}: there is no such reservation")
        return found

    def seen(self, caller: Caller) -> list[Reservation]:
        """Those that the caller may see; the newest first."""
        user = None if caller.may("operate") else caller.user
        return list(self._reservations.newest(user))

    def availability(
        self, source: str, destination: str, start_s: float, end_s: float
    ) -> Availability:
        """What is free between two ends."""
        route = self._estimates.route(source, destination)
        capacity_bps, spans = self._reservations.availability(
            route.source_site, route.destination_site, start_s, end_s
        )
        return Availability(
            source=route.source_site, destination=route.destination_site,
            capacity_bps=capacity_bps,
            spans=[
                FreeSpan(start=when(begin), end=when(end), available_bps=free)
                for begin, end, free in spans
            ],
        )  # fmt: skip

    def _note(self, caller: Caller, act: str, one: Reservation) -> None:
        self._audit.note(caller.user, caller.token_id, f"reservation.{act}", one.id)


def wish_of(asked: ReservationWish) -> Wish:
    """What was asked for."""
    return Wish(
        asked.source, asked.destination, asked.rate_bps, asked.start.timestamp(),
        asked.end.timestamp(), asked.label,
    )  # fmt: skip
