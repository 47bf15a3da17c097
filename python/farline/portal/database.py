"""The SQLite file of a service: its tables, its versions, its transactions.

One connection per thread, write-ahead log, every write in a transaction that takes the write lock
when it begins: what is read in it is what it decides on, whoever else is there. Any number of
processes may have the file open. Threads of one process wait for each other before they wait for
SQLite, whose waiters sleep and try again: of sixteen that wrote all the time one got no turn in
half a minute.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from farline.errors import BusyError, SystemFailure

VERSIONS: tuple[str, ...] = (
    """
    CREATE TABLE endpoints(name TEXT PRIMARY KEY, location TEXT NOT NULL, created_s REAL NOT NULL);
    CREATE TABLE tokens(
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, user TEXT NOT NULL, scopes TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE, created_s REAL NOT NULL, expires_s REAL NOT NULL,
        revoked_s REAL);
    CREATE TABLE reservations(
        id TEXT PRIMARY KEY, user TEXT NOT NULL, source TEXT NOT NULL, destination TEXT NOT NULL,
        rate_bps INTEGER NOT NULL, start_s REAL NOT NULL, end_s REAL NOT NULL,
        phase TEXT NOT NULL, held_until_s REAL NOT NULL, label TEXT NOT NULL,
        created_s REAL NOT NULL);
    CREATE TABLE bookings(
        reservation TEXT NOT NULL REFERENCES reservations(id), resource TEXT NOT NULL,
        PRIMARY KEY(reservation, resource)) WITHOUT ROWID;
    CREATE INDEX bookings_of ON bookings(resource);
    CREATE TABLE transfers(
        id TEXT PRIMARY KEY, user TEXT NOT NULL, label TEXT NOT NULL,
        source TEXT NOT NULL, destination TEXT NOT NULL, options TEXT NOT NULL,
        state TEXT NOT NULL, wanted TEXT NOT NULL, attempt INTEGER NOT NULL,
        starts INTEGER NOT NULL, reservation TEXT REFERENCES reservations(id),
        created_s REAL NOT NULL, begun_s REAL, ended_s REAL, result TEXT);
    CREATE INDEX transfers_by_state ON transfers(state, created_s);
    CREATE INDEX transfers_by_user ON transfers(user, created_s);
    CREATE TABLE answers(
        user TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, object TEXT NOT NULL,
        created_s REAL NOT NULL, PRIMARY KEY(user, key)) WITHOUT ROWID;
    CREATE TABLE audit(
        id INTEGER PRIMARY KEY AUTOINCREMENT, at_s REAL NOT NULL, user TEXT NOT NULL,
        token TEXT NOT NULL, act TEXT NOT NULL, object TEXT NOT NULL, outcome TEXT NOT NULL);
    """,
    """
    CREATE TABLE experiments(
        id TEXT PRIMARY KEY, user TEXT NOT NULL, lab TEXT, verb TEXT NOT NULL, name TEXT NOT NULL,
        created_s REAL NOT NULL);
    CREATE INDEX experiments_by_time ON experiments(created_s);
    CREATE TABLE predictions(
        user TEXT NOT NULL, lab TEXT NOT NULL, prediction TEXT NOT NULL, experiment TEXT,
        at_s REAL NOT NULL, PRIMARY KEY(user, lab)) WITHOUT ROWID;
    """,
    """
    CREATE TABLE logins(
        state TEXT PRIMARY KEY, nonce TEXT NOT NULL, verifier TEXT NOT NULL,
        return_to TEXT NOT NULL, created_s REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE networked(
        reservation TEXT PRIMARY KEY REFERENCES reservations(id), state TEXT NOT NULL,
        name TEXT NOT NULL) WITHOUT ROWID;
    """,
)
"""What brings the file from each version to the next; a file says its own in `user_version`."""

WAIT_S = 30.0
"""How long a write waits for others' writes."""

Row = sqlite3.Row


class Database:
    """The file; made with its tables if it is not there. Its folder is for its owner alone."""

    def __init__(self, path: Path) -> None:
        """Opens and upgrades it.

        Raises:
            SystemFailure: when it cannot be made or read, or a newer farline has made it.
        """
        self.path = path
        self._local, self._writing = threading.local(), threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600, exist_ok=True)
            self._upgrade()
        except (OSError, sqlite3.Error) as error:
            raise SystemFailure(f"{path}: {error}") from None

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a question."""
        return self._connection().execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row, if there is one."""
        found: Row | None = self._connection().execute(sql, values).fetchone()
        return found

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes beside; undone where an exception leaves it.

        Raises:
            BusyError: when other processes write for longer than it is waited for.
        """
        with self._writing:
            # To open the file takes its locks too.
            connection = self._connection()
            _begin(connection)
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def copy_to(self, target: Path) -> None:
        """Writes a whole copy, as of one moment, while others go on.

        Raises:
            SystemFailure: when it cannot be written.
        """
        try:
            target.touch(mode=0o600)
            with contextlib.closing(sqlite3.connect(target)) as copy:
                self._connection().backup(copy)
        except (OSError, sqlite3.Error) as error:
            raise SystemFailure(f"{target}: {error}") from None

    def close(self) -> None:
        """Closes this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = _connected(self.path)
        return found

    def _upgrade(self) -> None:
        with contextlib.closing(_connected(self.path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            (known,) = connection.execute("PRAGMA user_version").fetchone()
            if known > len(VERSIONS):
                raise SystemFailure(
                    f"{self.path}: made by a newer farline (version {known}, this one reads up to "
                    f"{len(VERSIONS)}); upgrade farline"
                )
            for number, script in enumerate(VERSIONS[known:], known + 1):
                for statement in filter(str.strip, script.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={number}")
            connection.execute("COMMIT")


def _begin(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        raise BusyError("the database is busy: try again in some seconds", 5.0) from None


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=WAIT_S, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = Row
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection
