"""The portal's database: every earlier version becomes the present one, and nothing is lost."""

from __future__ import annotations

import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farline.errors import BusyError, SystemFailure
from farline.portal.database import VERSIONS, Database


def make(path: Path, version: int) -> None:
    """The file as a farline of that version left it, with a row in each of its first tables."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        for script in VERSIONS[:version]:
            file.executescript(script)
        file.execute("INSERT INTO endpoints VALUES ('scratch', '/scratch', 1.0)")
        file.execute(
            "INSERT INTO tokens VALUES ('t', 'bearer', 'ada', 'see', x'00', 1.0, 2.0, NULL)"
        )
        file.execute(
            "INSERT INTO audit(at_s, user, token, act, object, outcome)"
            " VALUES (1.0, 'ada', 't', 'see', 'x', 'done')"
        )
        file.execute(f"PRAGMA user_version={version}")
        file.commit()


def tables(path: Path) -> dict[str, str]:
    """Tables and indexes, with what made them."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        rows = file.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {name: " ".join(sql.split()) for name, sql in rows}


@pytest.mark.parametrize("version", range(1, len(VERSIONS) + 1))
def test_every_earlier_version_becomes_the_present_one_with_all_its_rows(
    tmp_path: Path, version: int
) -> None:
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    make(old, version)
    Database(new).close()
    for _ in range(2):
        # The second opening finds nothing to do.
        database = Database(old)
        with database.write() as write:
            assert write.execute("SELECT location FROM endpoints").fetchone()[0] == "/scratch"
            assert write.execute("SELECT user FROM tokens").fetchone()[0] == "ada"
            assert write.execute("SELECT act FROM audit").fetchone()[0] == "see"
            assert write.execute("PRAGMA user_version").fetchone()[0] == len(VERSIONS)
        database.close()
    assert tables(old) == tables(new)


def test_a_newer_database_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "portal.sqlite"
    make(path, len(VERSIONS))
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version={len(VERSIONS) + 1}")
        file.commit()
    before = tables(path)
    with pytest.raises(SystemFailure, match="made by a newer farline"):
        Database(path)
    assert tables(path) == before


def test_who_waits_in_vain_for_another_process_is_asked_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.portal.database.WAIT_S", 0.01)
    database = Database(tmp_path / "portal.sqlite")
    with contextlib.closing(sqlite3.connect(tmp_path / "portal.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError, match="try again"), database.write():
            pass
        other.execute("ROLLBACK")
    with database.write() as write:
        assert write.execute("SELECT count(*) FROM audit").fetchone()[0] == 0
    database.close()


def test_threads_that_write_all_the_time_all_get_their_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is left to SQLite's own waiting, which has no order and ends here at once."""
    monkeypatch.setattr("farline.portal.database.WAIT_S", 0.0)
    database = Database(tmp_path / "portal.sqlite")

    def add(number: int) -> None:
        with database.write() as write:
            write.execute("INSERT INTO endpoints VALUES (?, '', 0)", (str(number),))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(add, range(320)))
    assert len(database.rows("SELECT name FROM endpoints")) == 320
