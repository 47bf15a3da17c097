"""A receipt is kept whole, in its order, and costs its writer a rename."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from farline.errors import SpecError, SystemFailure, VersionError
from farline.store import Store, receipts
from farline.store.receipts import COLUMNS, keep_receipt, receipt
from farline.store.upgrade import FORMAT_VERSION
from tests.support.kept_copies import make_copy_record, receipt_line, write_receipt

RUN_ID = make_copy_record(1)["run_id"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


def rows(store: Store, run_id: str = RUN_ID, failed: bool = False) -> list[dict[str, Any]]:
    batches = receipt(store.layout, run_id, failed=failed)
    assert batches is not None
    return [row for batch in batches for row in batch.to_pylist()]


def full(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line.get(name) for name in COLUMNS}


LINES = [
    receipt_line(1),
    receipt_line(2, status="failed", reason="was changed while it was read", blake3=None),
    receipt_line(3, path="b\\\\ck\\xff 'quoted' \"…\"", resumed_bytes=7),
    {"path": "empty", "kind": "folder", "status": "copied", "bytes": 0},
    receipt_line(2**63, kind="hard-link"),
    receipt_line(4, blake3=None, xxh3_tree="0f" * 16),
    receipt_line(5, blake3=None, hash="none"),
]


def test_a_receipt_comes_back_in_its_order(store: Store, tmp_path: Path) -> None:
    lines = write_receipt(tmp_path / "lines", LINES)
    keep_receipt(store.layout, RUN_ID, lines)
    assert not lines.exists()
    assert rows(store) == [full(line) for line in LINES]
    assert [path.name for path in store.layout.receipts.iterdir()] == [f"{RUN_ID}.parquet"]
    assert rows(store) == [full(line) for line in LINES]
    assert rows(store, failed=True) == [full(LINES[1])]


def test_a_receipt_of_a_version_that_knew_blake3_alone_is_read(
    store: Store, tmp_path: Path
) -> None:
    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", LINES[:5]))
    rows(store)
    (path,) = store.layout.receipts.iterdir()
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["xxh3_tree", "hash"]), path)
    assert rows(store) == [full(line) for line in LINES[:5]]


def test_the_users_own_file_stays(store: Store, tmp_path: Path) -> None:
    lines = write_receipt(tmp_path / "lines", LINES)
    keep_receipt(store.layout, RUN_ID, lines, move=False)
    assert lines.exists()
    assert len(rows(store)) == len(LINES)


def test_a_receipt_on_another_file_system_is_copied(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write_receipt(tmp_path / "lines", LINES)
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path == lines:
            raise OSError(18, "Invalid cross-device link")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    keep_receipt(store.layout, RUN_ID, lines)
    assert not lines.exists()
    assert len(rows(store)) == len(LINES)


def test_a_large_receipt_is_parquet_at_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "LARGE_BYTES", 100)
    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", LINES))
    (path,) = store.layout.receipts.iterdir()
    assert pq.read_metadata(path).metadata[b"farline.format"] == str(FORMAT_VERSION).encode()
    assert pq.read_table(path).column_names == list(COLUMNS)


def test_many_lines_keep_their_order(store: Store, tmp_path: Path) -> None:
    count = 120_000
    keep_receipt(
        store.layout, RUN_ID, write_receipt(tmp_path / "l", map(receipt_line, range(count)))
    )
    batches = receipt(store.layout, RUN_ID)
    assert batches is not None
    found = [value for batch in batches for value in batch.column("bytes").to_pylist()]
    assert found == list(range(count))


def test_a_merge_turns_what_is_still_lines(store: Store, tmp_path: Path) -> None:
    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", LINES))
    store.compact()
    assert [path.suffix for path in store.layout.receipts.iterdir()] == [".parquet"]
    assert list(store.layout.temp.iterdir()) == []


def test_two_readers_turn_the_same_receipt(store: Store, tmp_path: Path) -> None:
    lines = [receipt_line(number) for number in range(2000)]
    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", lines))
    found: list[int] = []
    readers = [threading.Thread(target=lambda: found.append(len(rows(store)))) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert found == [2000] * 4


def test_a_kill_before_the_lines_went_loses_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(_path: Path, missing_ok: bool = False) -> None:
        raise KilledError

    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", LINES))
    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KilledError):
        rows(store)
    monkeypatch.undo()
    assert len(rows(store)) == len(LINES)
    store.compact()
    assert len(list(store.layout.receipts.iterdir())) == 1
    assert len(rows(store)) == len(LINES)


def test_a_store_that_may_not_be_written_is_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", LINES))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert rows(store) == [full(line) for line in LINES]
    assert [path.suffix for path in store.layout.receipts.iterdir()] == [".jsonl"]


def test_no_receipt_is_said(store: Store) -> None:
    assert receipt(store.layout, RUN_ID) is None


def test_an_empty_receipt_has_no_rows(store: Store, tmp_path: Path) -> None:
    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", []))
    assert rows(store) == []


def test_damaged_lines_are_named_and_stay(store: Store, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text('{"path":"a","kind":"file","status":"copied","bytes":1}\n{"path":\n')
    keep_receipt(store.layout, RUN_ID, lines)
    with pytest.raises(SystemFailure, match="reading a receipt") as refusal:
        rows(store)
    assert "\n" not in refusal.value.message
    store.compact()
    assert [path.suffix for path in store.layout.receipts.iterdir()] == [".jsonl"]


def test_a_receipt_of_a_newer_version_is_refused(store: Store, tmp_path: Path) -> None:
    keep_receipt(store.layout, RUN_ID, write_receipt(tmp_path / "lines", LINES))
    rows(store)
    (path,) = store.layout.receipts.iterdir()
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.add_key_value_metadata({"farline.format": str(FORMAT_VERSION + 1)})
    with pytest.raises(VersionError):
        receipt(store.layout, RUN_ID)


def test_a_name_that_is_no_run_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="run_id"):
        keep_receipt(store.layout, "../x", write_receipt(tmp_path / "lines", []))
