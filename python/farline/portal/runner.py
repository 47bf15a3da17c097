"""Does what `transfer_machine` says, again and again: starts processes, stops them, notes ends."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from farline.api.options import copy_spec_of
from farline.errors import FarlineError, UsageError
from farline.estimating.reservation import WIRE_SHARE
from farline.logs import Log
from farline.portal import transfer_machine as machine
from farline.portal.endpoints import Endpoints
from farline.portal.job_folder import JobFolder
from farline.portal.reservations import Reservation, Reservations
from farline.portal.settings import Settings
from farline.portal.transfer_machine import Begin, Seen, Settle, Stop
from farline.portal.transfers import Order, Transfer, Transfers

_LOG = Log(__name__)

LOOK_EACH_S = 0.3

Start = Callable[[JobFolder, int], subprocess.Popen[bytes]]


class Runner:
    """Drives the transfers of a service. Several may run over one state folder: none does harm."""

    def __init__(
        self,
        settings: Settings,
        transfers: Transfers,
        endpoints: Endpoints,
        reservations: Reservations,
        start: Start | None = None,
    ) -> None:
        """Nothing runs yet; `start` is another way to begin a process."""
        self._settings, self._transfers = settings, transfers
        self._endpoints, self._reservations = endpoints, reservations
        self._start = start or start_keeper
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._woken, self._is_closed = threading.Event(), False
        self._thread: threading.Thread | None = None

    def folder(self, name: str) -> JobFolder:
        """The folder of a transfer."""
        return JobFolder(self._settings.jobs / name)

    def run(self) -> None:
        """Looks after the transfers in a thread of its own, until closed."""
        self._thread = threading.Thread(target=self._loop, name="farline transfers", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Has it look at once: something was asked for."""
        self._woken.set()

    def close(self) -> None:
        """Looks no more. Copies go on without it."""
        self._is_closed = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        while not self._is_closed:
            self._woken.clear()
            try:
                self.look()
            except Exception as error:  # the copies go on, and the next look may fare better
                _LOG.error("transfers were not checked", reason=f"{error}")
            self._woken.wait(LOOK_EACH_S)

    def look(self) -> None:
        """Takes one step with each transfer that is open."""
        found = self._transfers.open()
        busy = sum(one.state == "running" for one in found)
        for one in found:
            try:
                busy += self._look_at(one, busy < self._settings.parallel)
            except (FarlineError, OSError) as error:
                # A full disk, say: the next look may fare better, and others are not held up.
                _LOG.error("a transfer was not checked", transfer=one.id, reason=f"{error}")

    def _look_at(self, one: Transfer, has_place: bool) -> bool:
        """Takes one step with a transfer; whether that took a place."""
        step = machine.next_step(self._seen(one, has_place))
        if step is not None:
            self._take(one, step)
        return isinstance(step, Begin) and one.state == "queued"

    def _seen(self, one: Transfer, has_place: bool) -> Seen:
        folder, kept = self.folder(one.id), self._reservation(one)
        return Seen(
            one.state, one.wanted, one.starts,
            is_alive=self._is_alive(one.id, folder),
            end=folder.end(one.attempt) if one.state == "running" else None,
            is_due=has_place and (kept is None or kept.phase == "active"),
            is_over=kept is not None and not kept.is_open,
        )  # fmt: skip

    def _reservation(self, one: Transfer) -> Reservation | None:
        name = one.order.reservation
        return None if name is None else self._reservations.get(name)

    def _is_alive(self, name: str, folder: JobFolder) -> bool:
        """Whether a process works on it; one that was just started may not hold the lock yet."""
        process = self._processes.get(name)
        if process is not None and process.poll() is None:
            return True
        self._processes.pop(name, None)
        return folder.is_alive()

    def _take(self, one: Transfer, step: Begin | Stop | Settle) -> None:
        folder = self.folder(one.id)
        match step:
            case Begin():
                self._begin(one, folder)
            case Stop():
                folder.ask_to_stop()
            case Settle(state, failure):
                folder.forget_order()
                end: dict[str, Any] = dict(folder.end(one.attempt) or {})
                if failure is not None or state in ("paused", "cancelled"):
                    end["error"] = failure
                self._transfers.settled(one, state, end)

    def _begin(self, one: Transfer, folder: JobFolder) -> None:
        try:
            order = self._order(one)
        except FarlineError as error:
            # The endpoint is gone, say: that does not pass by itself.
            self._transfers.settled(one, "failed", {"error": error.failure()})
            return
        if self._transfers.begun(one):
            folder.make()
            folder.give_order(order)
            self._processes[one.id] = self._start(folder, one.attempt)

    def _order(self, one: Transfer) -> dict[str, Any]:
        """What the process is to do, with the locations that only it and the database know."""
        order, store = one.order, self._settings.store_path
        locations = self._endpoints.locations(
            order.source.endpoint, order.source.path,
            order.destination.endpoint, order.destination.path,
        )  # fmt: skip
        return {
            "locations": locations,
            "spec": spec_of(order, self._reservation(one)),
            "store": None if store is None else str(store),
        }


def spec_of(order: Order, kept: Reservation | None = None) -> dict[str, Any]:
    """The options of a copy; within a reservation its rate is the most.

    Raises:
        SpecError: for an option or a value that is not allowed.
    """
    options = dict(order.options)
    if kept is not None:
        most = int(kept.rate_bps / WIRE_SHARE)
        asked = options.get("total_rate_bps")
        options["total_rate_bps"] = min(most, asked) if asked else most
    return copy_spec_of(options)


def start_keeper(folder: JobFolder, attempt: int) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that no signal for the service reaches it."""
    words = [sys.executable, "-m", "farline.portal.keeper", str(folder.path), str(attempt)]
    with folder.log.open("ab") as log:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def adjust(folder: JobFolder, **wishes: int | None) -> list[Any]:
    """Changes a running copy: what came of each wish, in force or refused.

    Raises:
        UsageError: when no session runs now; LimitError and others: as the copy answers.
    """
    from farline.copying.adjusting import request_of
    from farline.copying.control_socket import adjust as change

    session = folder.newest("session") or _first_session(folder)
    if session is None or not folder.is_alive():
        raise UsageError("the transfer is not running now: nothing can be changed")
    return list(change(session["run_id"], request_of(**wishes))[1])


def _first_session(folder: JobFolder) -> dict[str, Any] | None:
    """The newest session, wherever it stands among the events."""
    found = None
    with contextlib.suppress(FileNotFoundError), folder.events.open("rb") as lines:
        for line in lines:
            if line.startswith(b'{"event": "session", ') and line.endswith(b"}\n"):
                found = json.loads(line)["data"]
    return found
