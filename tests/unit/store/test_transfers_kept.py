"""Logs that were taken in: each counts once, in its latest form, and a kill leaves nothing half."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farline.errors import SpecError, SystemFailure, UsageError, VersionError
from farline.store import Store
from farline.store.disk import locked
from farline.store.log_file import HEAD_BYTES
from farline.store.parquet_files import Footer, read_footer
from farline.store.transfers import Selection, open_transfers, transfer_schema
from tests.support.transfers import transfers_table
from tests.unit.store.test_crash import ROOT, KilledError, kill_after

__all__ = ["kill_after"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def log(tmp_path: Path, content: str, name: str = "gridftp.log") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def rows_of(path: Path) -> list[pa.Table]:
    """A reader so simple that it needs no tests: every line is a rate, `-` one that failed."""
    lines = path.read_text().split()
    return [
        transfers_table([{"rate_bps": float(line)} if line != "-" else {"complete": False}])
        for line in lines
    ]


def take_in(store: Store, path: Path, reader: str = "lines 1") -> str:
    return store.append_transfers(rows_of(path), path, reader=reader).look.outcome


def rates(store: Store) -> list[float]:
    with open_transfers(store=store) as opened:
        found = opened.rows(Selection(where={"complete": (True,)}))["rate_bps"].to_pylist()
    return sorted(found)


def test_a_log_is_kept_with_what_it_was(store: Store, tmp_path: Path) -> None:
    path = log(tmp_path, "1e9\n2e9\n-\n")
    kept = store.append_transfers(rows_of(path), path, reader="lines 1", counts=lambda: {"bad": 7})
    assert kept.look.outcome == "new"
    assert store.transfer_logs() == (kept.log,)
    assert (kept.log.rows, kept.log.failed, kept.log.counts) == (3, 1, {"bad": 7})
    assert (kept.log.log.name, kept.log.log.size_bytes) == ("gridftp.log", 10)
    assert (kept.log.reader, rates(store)) == ("lines 1", [1e9, 2e9])
    assert pq.read_schema(store.layout.transfers / kept.log.file).names == transfer_schema().names


def test_the_same_log_counts_once_whatever_it_is_called(store: Store, tmp_path: Path) -> None:
    assert take_in(store, log(tmp_path, "1e9\n")) == "new"

    def unread() -> Iterator[pa.Table]:
        raise AssertionError("a log that is there is not read again")
        yield

    renamed = log(tmp_path, "1e9\n", "gridftp.log.1")
    again = store.append_transfers(unread(), renamed, reader="lines 1")
    assert again.look.outcome == "same"
    assert again.log.log.name == "gridftp.log"
    assert rates(store) == [1e9]


def test_a_grown_log_replaces_its_earlier_self(store: Store, tmp_path: Path) -> None:
    for size, outcome in ((1, "new"), (2, "grown"), (40_000, "grown"), (40_001, "grown")):
        path = log(tmp_path, "".join(f"{number}\n" for number in range(1, size + 1)))
        table = pa.concat_tables(rows_of(path)) if size < 3 else transfers_table([])
        kept = store.append_transfers([table], path, reader="lines 1")
        assert kept.look.outcome == outcome
        assert [one.file for one in store.transfer_logs()] == [kept.log.file]
    assert path.stat().st_size > HEAD_BYTES
    assert len(list(store.layout.transfers.iterdir())) == 1


def test_another_log_of_the_same_name_is_kept_beside(store: Store, tmp_path: Path) -> None:
    take_in(store, log(tmp_path, "1e9\n"))
    path = log(tmp_path, "2e9\n")
    look = store.look_at_log(path, reader="lines 1")
    assert (look.outcome, [k.log.name for k in look.beside]) == ("new", ["gridftp.log"])
    assert take_in(store, path) == "new"
    assert rates(store) == [1e9, 2e9]


def test_a_log_cut_and_renamed_is_kept_beside_and_said(store: Store, tmp_path: Path) -> None:
    content = "".join(f"{number}\n" for number in range(20_000))
    whole = store.append_transfers([], log(tmp_path, content), reader="lines 1")
    cut = store.look_at_log(log(tmp_path, content[:-100], "cut.log"), reader="lines 1")
    assert (cut.outcome, cut.beside) == ("new", (whole.log,))
    other = store.look_at_log(log(tmp_path, "1\n", "other.log"), reader="lines 1")
    assert other.beside == ()


def test_a_log_that_lost_its_end_is_not_taken_for_what_it_was(store: Store, tmp_path: Path) -> None:
    take_in(store, log(tmp_path, "1e9\n2e9\n"))
    assert take_in(store, log(tmp_path, "1e9\n2e9\n3e9\n")) == "grown"
    assert take_in(store, log(tmp_path, "1e9\n9e9\n")) == "new"
    assert rates(store) == [1e9, 1e9, 2e9, 3e9, 9e9]


def test_a_log_that_is_as_it_was_before_it_grew_is_not_lost(store: Store, tmp_path: Path) -> None:
    for content in ("1e9\n", "1e9\n2e9\n"):
        take_in(store, log(tmp_path, content))
    again = store.append_transfers(rows_of(log(tmp_path, "1e9\n")), log(tmp_path, "1e9\n"),
                                   reader="lines 1")  # fmt: skip
    assert (again.look.outcome, len(again.look.beside)) == ("new", 1)
    assert again.log in store.transfer_logs()
    assert rates(store) == [1e9, 1e9, 2e9]


def test_readers_may_take_turns_and_nothing_is_lost(store: Store, tmp_path: Path) -> None:
    path = log(tmp_path, "1e9\n")
    with open_transfers(store=store):
        # Nothing can be deleted meanwhile, so all that was replaced lies there beside.
        for reader in ("a 1", "b 1", "a 1", "b 1", "a 1"):
            take_in(store, path, reader)
            assert [one.reader for one in store.transfer_logs()] == [reader]
            assert rates(store) == [1e9]
    for reader in ("b 1", "a 1", "b 1"):
        assert take_in(store, path, reader) == "reread"
        assert rates(store) == [1e9]
        assert len(list(store.layout.transfers.iterdir())) == 1


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_log_that_was_packed_is_the_same_log(
    store: Store, tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    text = "".join(f"{number}\n" for number in range(1, 40_000))
    store.append_transfers([], log(tmp_path, text[:-50]), reader="lines 1")
    packed = tmp_path / "gridftp.log.packed"
    packed.write_bytes(pack(text[:-50].encode()))
    assert store.look_at_log(packed, reader="lines 1").outcome == "same"
    packed.write_bytes(pack(text.encode()))
    assert store.look_at_log(packed, reader="lines 1").outcome == "grown"
    # What is damaged inside is recognised by its own bytes.
    packed.write_bytes(pack(text.encode())[:-20])
    look = store.look_at_log(packed, reader="lines 1")
    assert (look.outcome, look.log.size_bytes) == ("new", packed.stat().st_size)


def test_a_kept_log_is_read_once_however_often_it_is_looked_up(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counting(path: Path) -> Footer:
        read.append(path)
        return read_footer(path)

    monkeypatch.setattr("farline.store.kept_logs.read_footer", counting)
    for number in range(1, 11):
        take_in(store, log(tmp_path, f"{number}e9\n", f"{number}.log"))
    assert len(store.transfer_logs()) == 10
    assert len(read) == len(set(read)) == 10


def test_another_version_of_the_reader_replaces_the_rows(store: Store, tmp_path: Path) -> None:
    path = log(tmp_path, "1e9\n")
    take_in(store, path)
    assert take_in(store, path, "lines 2") == "reread"
    assert take_in(store, path, "lines 2") == "same"
    assert [one.reader for one in store.transfer_logs()] == ["lines 2"]
    assert rates(store) == [1e9]


def test_forgetting_takes_a_name_or_a_digest_and_only_one_log(store: Store, tmp_path: Path) -> None:
    take_in(store, log(tmp_path, "1e9\n"))
    take_in(store, log(tmp_path, "2e9\n"))
    take_in(store, log(tmp_path, "3e9\n", "other.log"))
    with pytest.raises(UsageError, match=r"2 logs are called 'gridftp\.log'; give"):
        store.forget_transfers("gridftp.log")
    with pytest.raises(UsageError, match="no log 'nothing'"):
        store.forget_transfers("nothing")
    assert store.forget_transfers("other.log").log.name == "other.log"
    first = store.transfer_logs()[0]
    assert store.forget_transfers(first.log.digest[:12]) == first
    assert rates(store) == [2e9]


def test_nothing_is_deleted_while_somebody_reads(store: Store, tmp_path: Path) -> None:
    take_in(store, log(tmp_path, "1e9\n"))
    with open_transfers(store=store) as opened:
        with pytest.raises(SystemFailure, match="another process is reading"):
            store.forget_transfers("gridftp.log")
        assert take_in(store, log(tmp_path, "1e9\n2e9\n")) == "grown"
        assert len(list(store.layout.transfers.iterdir())) == 2
        assert opened.counts().rows == 1
    assert rates(store) == [1e9, 2e9]
    # The replaced file must not come back when its replacement is forgotten.
    store.forget_transfers("gridftp.log")
    assert (rates(store), list(store.layout.transfers.iterdir())) == ([], [])


@pytest.mark.parametrize("changes", range(5))
def test_killed_anywhere_a_log_counts_once_old_or_new(
    store: Store, tmp_path: Path, changes: int, monkeypatch: pytest.MonkeyPatch, kill_after: object
) -> None:
    path = log(tmp_path, "1e9\n")
    take_in(store, path)
    path = log(tmp_path, "1e9\n2e9\n")
    tables = rows_of(path)
    assert callable(kill_after)
    kill_after(changes)
    finished = False
    with contextlib.suppress(KilledError):
        store.append_transfers(tables, path, reader="lines 1")
        finished = True
    monkeypatch.undo()
    found = rates(store)
    assert found in ([1e9], [1e9, 2e9])
    assert not finished or found == [1e9, 2e9]
    assert take_in(store, path) in ("grown", "same")
    assert (rates(store), store.damaged()) == ([1e9, 2e9], ())


SLOW_READER = """
import sys
from pathlib import Path
import pyarrow as pa
from farline.store import Store
from tests.support.transfers import transfers_table
thousand = transfers_table([{"rate_bps": 1e9}] * 1000)
def tables():
    while True:
        print("row", flush=True)
        yield pa.concat_tables([thousand] * 300)
Store(Path(sys.argv[1])).append_transfers(tables(), Path(sys.argv[2]), reader="endless 1")
"""


def test_kill_9_in_the_middle_of_a_log_leaves_nothing_of_it(store: Store, tmp_path: Path) -> None:
    path = log(tmp_path, "whatever\n")
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_READER, str(store.path), str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == b"row\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert (list(store.layout.transfers.iterdir()), store.transfer_logs()) == ([], ())
    assert take_in(store, log(tmp_path, "1e9\n")) == "new"
    assert rates(store) == [1e9]


def test_a_reader_that_fails_leaves_nothing(store: Store, tmp_path: Path) -> None:
    def failing() -> Iterable[pa.Table]:
        yield transfers_table([{"rate_bps": 1e9}])
        raise SpecError("line 2: no")

    with pytest.raises(SpecError, match="line 2: no"):
        store.append_transfers(failing(), log(tmp_path, "x"), reader="lines 1")
    assert list(store.layout.transfers.iterdir()) == list(store.layout.temp.iterdir()) == []


def test_tables_with_other_columns_are_refused(store: Store, tmp_path: Path) -> None:
    path = log(tmp_path, "x")
    table = transfers_table([{"rate_bps": 1e9}])
    for wrong, words in (
        (table.drop_columns(["tool"]), "columns tool are missing or too many"),
        (table.append_column("user", table["tool"]), "columns user are missing"),
        (table.set_column(5, "rate_bps", pa.array(["fast"])), "transfers: .*fast"),
    ):
        with pytest.raises(SpecError, match=words):
            store.append_transfers([wrong], path, reader="lines 1")
    with pytest.raises(SpecError, match="reader: '' is not one line"):
        store.append_transfers([table], path, reader="")
    with pytest.raises(SystemFailure, match=r"absent\.log: No such file"):
        store.append_transfers([table], tmp_path / "absent.log", reader="lines 1")


def test_a_damaged_file_is_named_and_the_rest_counts(store: Store, tmp_path: Path) -> None:
    take_in(store, log(tmp_path, "1e9\n"))
    bad = store.layout.transfers / "bad.parquet"
    bad.write_bytes(b"PAR1 not really")
    with open_transfers(store=store) as opened:
        assert opened.counts().rows == 1
        (line,) = opened.damaged
    assert "bad.parquet" in line
    assert store.damaged() == (line,)


def test_a_log_of_a_newer_format_is_left_out_and_none_is_taken_in_beside_it(
    store: Store, tmp_path: Path
) -> None:
    take_in(store, log(tmp_path, "1e9\n"))
    (path,) = store.layout.transfers.iterdir()
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, b"farline.format": b"99"} if table.schema.metadata else {}
    metadata |= {b"farline.format": b"99", b"farline.log": json.dumps({}).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    assert store.transfer_logs() == ()
    (line,) = store.damaged()
    assert "format 99 is newer" in line
    with pytest.raises(VersionError, match="format 99 is newer"):
        take_in(store, log(tmp_path, "2e9\n"))


def test_a_store_from_before_there_were_logs_has_none(store: Store, tmp_path: Path) -> None:
    store.layout.transfers.rmdir()
    assert store.transfer_logs() == ()
    assert rates(store) == []
    assert take_in(store, log(tmp_path, "1e9\n")) == "new"


def test_logs_are_taken_in_one_at_a_time(store: Store, tmp_path: Path) -> None:
    path = log(tmp_path, "1e9\n")

    def looking() -> Iterator[pa.Table]:
        with locked(store.layout.transfers_lock, exclusive=True, wait=False) as got:
            assert not got
        yield from rows_of(path)

    store.append_transfers(looking(), path, reader="lines 1")
    assert rates(store) == [1e9]
