"""What callers may do with transfers: REST and pages ask here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from farline.errors import BusyError, UsageError
from farline.portal.access import Caller
from farline.portal.audit import Audit
from farline.portal.documents import Adjust, TransferDocument, TransferWish, transfer_document
from farline.portal.endpoints import Endpoints
from farline.portal.event_feed import MOST_LISTENERS, Feeds
from farline.portal.problems import NotFoundError
from farline.portal.reservation_desk import ReservationDesk
from farline.portal.runner import Runner, adjust, spec_of
from farline.portal.transfer_machine import State, Wanted
from farline.portal.transfers import NoSuchTransferError, Order, Place, Transfer, Transfers


class TransferDesk:
    """What callers may do with transfers."""

    def __init__(
        self,
        transfers: Transfers,
        endpoints: Endpoints,
        reservations: ReservationDesk,
        runner: Runner,
        audit: Audit,
    ) -> None:
        self._transfers, self._endpoints, self._runner = transfers, endpoints, runner
        self._reservations, self._audit = reservations, audit

    def create(self, caller: Caller, order: Order, key: str | None) -> tuple[Transfer, bool]:
        """Puts one into the queue, once for every key; what cannot be is refused at once."""
        self._endpoints.locations(
            order.source.endpoint, order.source.path,
            order.destination.endpoint, order.destination.path,
        )  # fmt: skip
        spec_of(order)
        if order.reservation is not None:
            kept = self._reservations.own(caller, order.reservation)
            if not kept.is_open:
                raise UsageError(f"reservation {kept.id} is {kept.phase}; use one that is open")
        found, is_new = self._transfers.create(caller.user, order, key)
        if is_new:
            self._note(caller, "create", found)
            self._runner.wake()
        return found, is_new

    def want(self, caller: Caller, name: str, wanted: Wanted) -> Transfer:
        """Pauses, resumes or cancels."""
        one = self.own(caller, name)
        kept = one.order.reservation
        alone = kept is not None and not self._reservations.own(caller, kept).is_open
        found = self._transfers.want(name, wanted, alone=alone)
        self._note(caller, {"run": "resume"}.get(wanted, wanted), found)
        self._runner.wake()
        return found

    def adjust(self, caller: Caller, name: str, asked: Adjust) -> list[Any]:
        """Changes one that runs."""
        found = self.own(caller, name)
        changes = adjust(self._runner.folder(name), **asked.model_dump())
        self._transfers.keep_options(name, _in_force(asked, changes))
        self._note(caller, "adjust", found)
        return changes

    def own(self, caller: Caller, name: str) -> Transfer:
        """One that the caller may see: to others it is as if it were not there."""
        found = self._transfers.get(name)
        if not caller.sees(found.user):
            raise NoSuchTransferError(f"transfer {name[:40]!r}: there is no such transfer")
        return found

    def seen(
        self, caller: Caller, state: State | None = None, limit: int = 100, offset: int = 0
    ) -> list[Transfer]:
        """Those that the caller may see; the newest first."""
        user = None if caller.may("operate") else caller.user
        return list(self._transfers.newest(user, state, limit, offset))

    def counts(self, caller: Caller) -> dict[str, int]:
        """How many of these are in each state."""
        return self._transfers.counts(None if caller.may("operate") else caller.user)

    def document(self, one: Transfer) -> TransferDocument:
        """The document, with how far it is."""
        return transfer_document(one, self.progress(one))

    def progress(self, one: Transfer) -> dict[str, Any] | None:
        """How far it was when it last said so."""
        return None if one.begun_s is None else self._runner.folder(one.id).newest("progress")

    def has_receipt(self, one: Transfer) -> bool:
        """Whether there is a file with a line per name."""
        return self._runner.folder(one.id).receipt.exists()

    def receipt(self, caller: Caller, name: str) -> Any:
        """The file with a line per name."""
        path = self._runner.folder(self.own(caller, name).id).receipt
        if not path.exists():
            raise NotFoundError(f"transfer {name}: there is no receipt yet")
        return path

    def events(self, feeds: Feeds, caller: Caller, name: str, offset: int) -> Any:
        """Server-sent events from an offset on."""
        if feeds.listeners >= MOST_LISTENERS:
            raise BusyError(
                f"{MOST_LISTENERS} listeners are open, the most allowed: try again later", 30.0
            )
        path = self._runner.folder(self.own(caller, name).id).events
        return feeds.events(path, offset, self._end_of(name))

    def _end_of(self, name: str) -> Callable[[], bool]:
        return lambda: self._transfers.get(name).has_ended

    def _note(self, caller: Caller, act: str, one: Transfer) -> None:
        self._audit.note(caller.user, caller.token_id, f"transfer.{act}", one.id)


def _in_force(asked: Adjust, changes: list[Any]) -> dict[str, Any]:
    """The options that hold from now on, after a pause too; None is without limit."""
    refused = {change["knob"] for change in changes if change.get("refused")}
    knobs = {
        "streams": ("streams", asked.streams),
        "concurrency": ("concurrency", asked.concurrency),
        "total-rate": ("total_rate_bps", asked.rate_bps),
    }
    return {
        name: value or None
        for knob, (name, value) in knobs.items()
        if value is not None and knob not in refused
    }


def order_of(asked: TransferWish) -> Order:
    """What was asked for."""
    return Order(
        Place(asked.source.endpoint, asked.source.path),
        Place(asked.destination.endpoint, asked.destination.path),
        asked.label, asked.options.model_dump(exclude_none=True), asked.reservation,
    )  # fmt: skip
