"""`/v1/reservations` and what is free: held, committed, released, exported."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import AwareDatetime

from farline.portal.access import Caller
from farline.portal.documents import (
    Availability,
    Name,
    ReservationDocument,
    ReservationWish,
)
from farline.portal.exports import export
from farline.portal.guard import Guard
from farline.portal.reservation_desk import ReservationDesk, wish_of
from farline.portal.routes.answers import problems


def routes(guard: Guard, desk: ReservationDesk) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/v1", tags=["reservations"])
    see, move = guard.needs("see"), guard.needs("move")

    @router.get("/reservations", responses=problems())
    def list_reservations(caller: Caller = see) -> list[ReservationDocument]:
        """Your reservations, the newest first; with `operate` those of all."""
        return [desk.document(one) for one in desk.seen(caller)]

    @router.post("/reservations", status_code=201, responses=problems(409))
    def hold(
        asked: ReservationWish, response: Response, caller: Caller = move
    ) -> ReservationDocument:
        """Holds a rate for a time; commit it within 15 minutes, or it ends by itself."""
        found = desk.hold(caller, wish_of(asked))
        response.headers["Location"] = f"/v1/reservations/{found.id}"
        return desk.document(found)

    @router.get("/reservations/{name}", responses=problems(404))
    def show(
        name: str,
        format: Literal["farline", "oscars", "nsi", "sense"] = "farline",
        caller: Caller = see,
    ) -> ReservationDocument | dict[str, Any]:
        """A reservation; or the document that another system takes to reserve it on a network."""
        found = desk.own(caller, name)
        return desk.document(found) if format == "farline" else export(found, format)

    @router.post("/reservations/{name}/commit", responses=problems(404, 409))
    def commit(name: str, caller: Caller = move) -> ReservationDocument:
        """Makes a held reservation stay, and reserves it on the network where there is a back end.

        Harmless when done twice.
        """
        return desk.document(desk.commit(caller, name))

    @router.delete("/reservations/{name}", responses=problems(404))
    def release(name: str, caller: Caller = move) -> ReservationDocument:
        """Gives back what is left of it. It stays to be seen, as released."""
        return desk.document(desk.release(caller, name))

    @router.get("/paths/{source}/{destination}/availability", responses=problems(404))
    def availability(
        source: Name, destination: Name, start: AwareDatetime, end: AwareDatetime,
        caller: Caller = see,
    ) -> Availability:  # fmt: skip
        """What is free between two sites, in spans within which it does not change."""
        return desk.availability(source, destination, start.timestamp(), end.timestamp())

    return router
