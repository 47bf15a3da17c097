"""The transfers of a service: asked for once, wanted or not, and what came of them."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from farline.errors import LimitError, SpecError
from farline.portal.database import Database, Row
from farline.portal.settings import Settings
from farline.portal.transfer_machine import ENDED, State, Wanted

KEY_S = 7 * 86_400.0
"""How long a key that makes a request unique is remembered."""


class NoSuchTransferError(SpecError):
    """None has this name, or it is another user's."""


class WrongStateError(LimitError):
    """What was asked for is not possible any more."""


class KeyReusedError(LimitError):
    """The same key was used for another request."""


@dataclass(frozen=True)
class Place:
    """A path below an endpoint."""

    endpoint: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.endpoint}:{self.path}"


@dataclass(frozen=True)
class Order:
    """What somebody wants copied."""

    source: Place
    destination: Place
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of a copy, as `farline.api.options.copy_spec_of` takes them."""
    reservation: str | None = None


@dataclass(frozen=True)
class Transfer:
    """A transfer as it is now; times are POSIX seconds."""

    id: str
    user: str
    order: Order
    state: State
    wanted: Wanted
    attempt: int
    starts: int
    created_s: float
    begun_s: float | None
    ended_s: float | None
    result: Mapping[str, Any]
    """What the last attempt came to: `exit_code`, `error`, `verdict`, `report`, `run`."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in ENDED

    @property
    def failure(self) -> Mapping[str, Any] | None:
        """Why it is not complete."""
        return self.result.get("error")


class Transfers:
    """The table."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings

    def create(self, user: str, order: Order, key: str | None = None) -> tuple[Transfer, bool]:
        """Puts a transfer into the queue; gives it, and whether it is new.

        Who repeats a request with its `key` gets the transfer of the first.

        Raises:
            KeyReusedError: when the key was used for another request.
            LimitError: when the user has too many that have not ended.
        """
        digest = hashlib.sha256(json.dumps(asdict(order), sort_keys=True).encode()).hexdigest()
        name, now = uuid.uuid4().hex[:12], self._settings.now()
        with self._database.write() as write:
            if key is not None:
                write.execute("DELETE FROM answers WHERE created_s < ?", (now - KEY_S,))
                known = write.execute(
                    "SELECT * FROM answers WHERE user = ? AND key = ?", (user, key)
                ).fetchone()
                if known is not None:
                    return self._repeated(known, digest), False
            self._check_count(write, user)
            write.execute(
                "INSERT INTO transfers VALUES (?, ?, ?, ?, ?, ?, 'queued', 'run', 1, 0, ?, ?,"
                " NULL, NULL, NULL)",
                (name, user, order.label, json.dumps(asdict(order.source)),
                 json.dumps(asdict(order.destination)), json.dumps(order.options),
                 order.reservation, now),
            )  # fmt: skip
            if key is not None:
                write.execute(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?)", (user, key, digest, name, now)
                )
        return self.get(name), True

    def _repeated(self, known: Row, digest: str) -> Transfer:
        if known["digest"] != digest:
            raise KeyReusedError(
                "Idempotency-Key: it was used for another request; use a new key for each request"
            )
        return self.get(known["object"])

    def _check_count(self, write: Any, user: str) -> None:
        (count,) = write.execute(
            "SELECT count(*) FROM transfers WHERE user = ?"
            " AND state NOT IN ('succeeded', 'failed', 'cancelled')",
            (user,),
        ).fetchone()
        if count >= self._settings.most_waiting:
            raise LimitError(f"you have {count} transfers that have not ended, the most allowed")

    def get(self, name: str) -> Transfer:
        """One by its name.

        Raises:
            NoSuchTransferError: when there is none.
        """
        row = self._database.row("SELECT * FROM transfers WHERE id = ?", (name,))
        if row is None:
            raise NoSuchTransferError(f"transfer {name[:40]!r}: there is no such transfer")
        return _of_row(row)

    def newest(
        self, user: str | None = None, state: str | None = None, limit: int = 100, offset: int = 0
    ) -> Sequence[Transfer]:
        """Those of a user or of all, in a state or in any; the newest first."""
        rows = self._database.rows(
            "SELECT * FROM transfers WHERE (:user IS NULL OR user = :user)"
            " AND (:state IS NULL OR state = :state) ORDER BY created_s DESC, id"
            " LIMIT :limit OFFSET :offset",
            {"user": user, "state": state, "limit": limit, "offset": offset},  # type: ignore[arg-type]
        )
        return [_of_row(row) for row in rows]

    def counts(self, user: str | None = None) -> dict[str, int]:
        """How many are in each state."""
        rows = self._database.rows(
            "SELECT state, count(*) FROM transfers WHERE ? IS NULL OR user = ? GROUP BY state",
            (user, user),
        )
        return {row[0]: row[1] for row in rows}

    def open(self) -> Sequence[Transfer]:
        """Those that something may have to be done for, the oldest first."""
        rows = self._database.rows(
            "SELECT * FROM transfers WHERE state IN ('queued', 'running')"
            " OR (state = 'paused' AND wanted = 'cancel') ORDER BY created_s, id"
        )
        return [_of_row(row) for row in rows]

    def want(self, name: str, wanted: Wanted, *, alone: bool = False) -> Transfer:
        """Pauses, resumes or cancels; what is so already stays as it is.

        `alone` resumes it without its reservation.

        Raises:
            WrongStateError: when it has ended.
        """
        with self._database.write() as write:
            one = _of_row(_one(write, name))
            if wanted == "run" and one.state in ("paused", "failed"):
                write.execute(
                    "UPDATE transfers SET state = 'queued', wanted = 'run', starts = 0,"
                    " attempt = attempt + 1, ended_s = NULL,"
                    " reservation = CASE WHEN ? THEN NULL ELSE reservation END WHERE id = ?",
                    (alone, name),
                )
            elif not one.has_ended:
                write.execute("UPDATE transfers SET wanted = ? WHERE id = ?", (wanted, name))
            elif {"run": "succeeded", "cancel": "cancelled"}.get(wanted) != one.state:
                word = {"run": "resumed", "pause": "paused", "cancel": "cancelled"}[wanted]
                raise WrongStateError(f"transfer {name} has {_ENDS[one.state]}: cannot be {word}")
        return self.get(name)

    def keep_options(self, name: str, changed: Mapping[str, Any]) -> None:
        """Has later attempts begin with changed options; None takes one away."""
        with self._database.write() as write:
            options = {**_of_row(_one(write, name)).order.options, **changed}
            kept = {key: value for key, value in options.items() if value is not None}
            write.execute("UPDATE transfers SET options = ? WHERE id = ?", (json.dumps(kept), name))

    def begun(self, one: Transfer) -> bool:
        """Notes that a process is started for its attempt; whether that is still wanted."""
        with self._database.write() as write:
            done = write.execute(
                "UPDATE transfers SET state = 'running', starts = starts + 1,"
                " begun_s = coalesce(begun_s, ?) WHERE id = ? AND attempt = ? AND wanted = 'run'"
                " AND state IN ('queued', 'running')",
                (self._settings.now(), one.id, one.attempt),
            )
        return done.rowcount == 1

    def settled(self, one: Transfer, state: State, result: Mapping[str, Any]) -> None:
        """Notes what its attempt came to; of an attempt that is over already, nothing."""
        ended_s = self._settings.now() if state in ENDED else None
        again = state == "queued"
        with self._database.write() as write:
            write.execute(
                "UPDATE transfers SET state = ?, ended_s = ?, result = ?,"
                " attempt = attempt + ?, starts = starts * ? WHERE id = ? AND attempt = ?"
                " AND state IN ('queued', 'running', 'paused')",
                (state, ended_s, json.dumps(result), again, not again, one.id, one.attempt),
            )


_ENDS = {"succeeded": "succeeded", "failed": "failed", "cancelled": "been cancelled"}


def _one(read: Any, name: str) -> Row:
    row: Row | None = read.execute("SELECT * FROM transfers WHERE id = ?", (name,)).fetchone()
    if row is None:
        raise NoSuchTransferError(f"transfer {name[:40]!r}: there is no such transfer")
    return row


def _of_row(row: Row) -> Transfer:
    order = Order(
        Place(**json.loads(row["source"])), Place(**json.loads(row["destination"])), row["label"],
        json.loads(row["options"]), row["reservation"],
    )  # fmt: skip
    return Transfer(
        row["id"], row["user"], order, row["state"], row["wanted"], row["attempt"], row["starts"],
        row["created_s"], row["begun_s"], row["ended_s"], json.loads(row["result"] or "{}"),
    )  # fmt: skip
