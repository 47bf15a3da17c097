"""Reservations on a network: a program of the operator's hears of each that stays and of its end.

    PROGRAM reserve|release < {"reservation": .., "oscars": .., "nsi": .., "sense": ..}

It ends with 0 when it is done; the first line that `reserve` prints is what the network calls it.
Any other end is a refusal, with the last line on standard error as the reason. Both acts may come
twice for one reservation, and mean the same then. What is under way is written down before the
program is asked: a service that is killed meanwhile gives back, when it is there again, what nobody
has any more.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farline.errors import BusyError, LimitError, SystemFailure
from farline.logs import Log
from farline.portal.database import Database
from farline.portal.documents import reservation_document
from farline.portal.exports import FORMATS, export
from farline.portal.reservations import NoSuchReservationError, Reservation, Reservations

_LOG = Log(__name__)

WAIT_S = 60.0
"""How long the program may take."""

TURN_S = 5.0
"""How long somebody waits while the program is asked for others."""

SWEEP_S = 5.0
"""How often is looked for what has to be given back."""

MOST_CHARACTERS = 200
"""Of a name, or of a reason."""


class NetworkRefusedError(LimitError):
    """The network does not reserve it."""


class Network:
    """What of the reservations a network knows of."""

    def __init__(
        self, database: Database, reservations: Reservations, program: Sequence[str] | None
    ) -> None:
        """`program` is the command line before the act; None where no network is asked."""
        self._database, self._reservations = database, reservations
        self._program = None if program is None else tuple(program)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        # One act at a time: a release never overtakes the reservation that it is of.
        self._asking = threading.Lock()

    @property
    def is_asked(self) -> bool:
        """Whether there is a network behind reservations."""
        return self._program is not None

    def reserve(self, one: Reservation) -> None:
        """Reserves it on the network, if it is not.

        Raises:
            NetworkRefusedError: when the network does not; SystemFailure when it cannot be asked.
            BusyError: while it is asked about others for long.
        """
        if self._program is None:
            return
        with self._turn():
            if self._state(one.id) == "reserved":
                return
            self._note(one.id, "asking", "")
            try:
                name = self._run("reserve", one)
            except NetworkRefusedError:
                self._forget(one.id)
                raise
            self._note(one.id, "reserved", name)

    def release(self, one: Reservation) -> None:
        """Gives it back, if the network has it or may have it. What fails is tried again later."""
        if self._program is None or self._state(one.id) is None:
            return
        try:
            with self._turn():
                self._note(one.id, "releasing", self.name_of(one.id) or "")
                self._run("release", one)
                self._forget(one.id)
        except (BusyError, NetworkRefusedError, SystemFailure) as error:
            _LOG.error("a reservation was not given back yet", id=one.id, reason=error.message)

    def name_of(self, name: str) -> str | None:
        """What the network calls a reservation; None where it has none."""
        row = self._database.row(
            "SELECT name FROM networked WHERE reservation = ? AND state = 'reserved'", (name,)
        )
        return None if row is None else str(row["name"])

    def sweep(self) -> None:
        """Gives back what the network has or may have, and nobody here has any more."""
        if self._program is None:
            return
        for row in self._database.rows("SELECT reservation, state FROM networked"):
            try:
                one = self._reservations.get(row["reservation"])
            except NoSuchReservationError:
                continue
            if one.phase == "finished":
                # It ends there by itself.
                self._forget(one.id)
            elif row["state"] == "releasing" or not one.is_open:
                self.release(one)

    def run(self) -> None:
        """Sweeps in a thread of its own, until closed."""
        if self._program is not None:
            self._thread = threading.Thread(target=self._loop, name="farline network", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Sweeps no more."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        while not self._closed.is_set():
            try:
                self.sweep()
            except Exception as error:  # the next sweep may fare better
                _LOG.error("reservations of the network were not checked", reason=f"{error}")
            self._closed.wait(SWEEP_S)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The program's next act. Who asks meanwhile waits a little: each takes a thread."""
        if not self._asking.acquire(timeout=TURN_S):
            raise BusyError("the network is busy with other reservations: try again soon")
        try:
            yield
        finally:
            self._asking.release()

    def _run(self, act: str, one: Reservation) -> str:
        program = self._program or ()
        document: dict[str, Any] = {name: export(one, name) for name in FORMATS}
        document["reservation"] = reservation_document(one).model_dump(mode="json")
        said = Path(program[0]).name
        try:
            done = subprocess.run(
                [*program, act], input=json.dumps(document), capture_output=True, text=True,
                timeout=WAIT_S, errors="replace", start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SystemFailure(
                f"the network's {said} {act} did not end within {WAIT_S:.0f} s"
            ) from None
        except OSError as error:
            raise SystemFailure(f"the network's {said}: {error.strerror}") from None
        if done.returncode:
            raise NetworkRefusedError(f"the network refused: {_line(done.stderr, -1) or said}")
        return _line(done.stdout, 0)

    def _state(self, name: str) -> str | None:
        row = self._database.row("SELECT state FROM networked WHERE reservation = ?", (name,))
        return None if row is None else str(row["state"])

    def _note(self, name: str, state: str, called: str) -> None:
        with self._database.write() as write:
            write.execute(
                "INSERT INTO networked VALUES (?, ?, ?) ON CONFLICT(reservation)"
                " DO UPDATE SET state = excluded.state, name = excluded.name",
                (name, state, called),
            )

    def _forget(self, name: str) -> None:
        with self._database.write() as write:
            write.execute("DELETE FROM networked WHERE reservation = ?", (name,))


def _line(text: str, place: int) -> str:
    """The first or the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return "".join(one if one.isprintable() else " " for one in lines[place])[:MOST_CHARACTERS]
