"""What was done, by whom, to what, and how it came out. Rows are only added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from farline.portal.database import Database

MOST_ROWS = 1000


class Audit:
    """Writes and reads the rows; they hold no token, ticket or name of a file."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database, self._now = database, now

    def note(self, user: str, token: str, act: str, target: str, outcome: str = "ok") -> None:
        """Adds a row; `token` is the id of a token, `outcome` `ok` or the kind of a failure."""
        row = (self._now(), user, token, act, target, outcome)
        with self._database.write() as write:
            write.execute(
                "INSERT INTO audit(at_s, user, token, act, object, outcome)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )

    def newest(self, limit: int = 100, before: int | None = None) -> Sequence[dict[str, Any]]:
        """The newest rows first; `before` continues behind the row of that number."""
        rows = self._database.rows(
            "SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?",
            (before if before is not None else 2**62, min(limit, MOST_ROWS)),
        )
        return [dict(row) for row in rows]
