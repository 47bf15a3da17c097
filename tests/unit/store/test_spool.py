"""A run kept in haste is a run like any other, whatever happens to its file."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.spec._types import MOVER_SAMPLE_COLUMNS
from farline.store import Store
from farline.store.entry import RunBundle
from farline.store.spool import MOST_VALUES
from farline.store.upgrade import FORMAT_VERSION
from tests.support.draws import draws
from tests.support.kept_copies import make_copy_record, make_mover_samples
from tests.support.paths import make_link_samples, make_path
from tests.support.records import make_record, make_samples

ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


def both(tmp_path: Path) -> tuple[Store, Store]:
    """The same runs appended and spooled."""
    appended, spooled = Store(tmp_path / "appended"), Store(tmp_path / "spooled")
    for keep in (appended.append, spooled.spool):
        path = {**make_copy_record(1), "path": make_path()}
        links, mover = make_link_samples(2), make_mover_samples()
        keep(RunBundle(path, make_samples(3), None, {"setting": "a"}, links, mover))
        keep(RunBundle(make_record(2), make_samples(2), campaign="c"))
    return appended, spooled


def seen(store: Store) -> list[Any]:
    ids = store.runs()["run_id"].to_pylist()
    parts = (store.runs(), store.samples(ids), store.link_samples(ids), store.mover_samples(ids))
    return [part.to_pylist() for part in parts]


def test_a_spooled_run_reads_as_an_appended_one(tmp_path: Path) -> None:
    appended, spooled = both(tmp_path)
    assert seen(spooled) == seen(appended)
    assert list(spooled.layout.fresh.iterdir()) == []
    assert spooled.find("last") == appended.find("last")
    assert spooled.may_hold("campaign", "c")


def test_a_merge_takes_spooled_runs_along(tmp_path: Path) -> None:
    appended, spooled = both(tmp_path)
    before = seen(appended)
    spooled.append(RunBundle(make_record(3), make_samples(1)))
    assert spooled.compact().merged_runs == 3
    assert list(spooled.layout.spool.iterdir()) == []
    appended.append(RunBundle(make_record(3), make_samples(1)))
    assert seen(spooled) == seen(appended) != before
    assert len(list((spooled.path / "mover").iterdir())) == 1


def test_samples_of_files_are_read_with_their_columns(store: Store) -> None:
    run_id = store.append(
        RunBundle(make_copy_record(1), make_samples(1), mover=make_mover_samples())
    )
    store.append(RunBundle(make_record(2), make_samples(1)))
    found = store.mover_samples([run_id])
    assert found.column_names == ["run_id", *MOVER_SAMPLE_COLUMNS]
    assert found["file_bytes"].to_pylist() == [12_500_000] * 6
    assert found["held_rate_bps"].null_count == 6
    store.compact()
    assert store.mover_samples([run_id]).to_pylist() == found.to_pylist()
    assert store.mover_samples([make_record(2)["run_id"]]).num_rows == 0


def test_the_same_run_is_kept_once(store: Store) -> None:
    store.spool(RunBundle(make_record(1), {}))
    for keep in (store.spool, store.append):
        with pytest.raises(SpecError, match="already in the store"):
            keep(RunBundle(make_record(1), {}))


def test_columns_need_no_numpy(store: Store) -> None:
    values = array("q", [0, 5, -1])
    columns = {"end": array("q", [0, 0, 0]), "bytes": memoryview(values)}
    run_id = store.spool(RunBundle(make_record(1), columns))
    assert store.samples([run_id])["bytes"].to_pylist() == [0, 5, None]


def test_columns_of_different_lengths_are_refused(store: Store) -> None:
    with pytest.raises(SpecError, match=r"different lengths \[1, 2\]"):
        store.spool(
            RunBundle(make_record(1), {"end": array("q", [0]), "bytes": array("q", [0, 1])})
        )
    assert store.runs().num_rows == 0


def test_many_samples_go_the_usual_way(store: Store) -> None:
    column = memoryview(array("q", range(MOST_VALUES + 1)))
    run_id = store.spool(
        RunBundle(make_copy_record(1), {"bytes": column}, mover=make_mover_samples())
    )
    assert [path.stem for path in store.layout.fresh.iterdir()] == [run_id]
    assert list(store.layout.spool.iterdir()) == []
    assert store.samples([run_id]).num_rows == MOST_VALUES + 1
    assert store.mover_samples([run_id]).num_rows == 6


@given(
    st.dictionaries(
        st.sampled_from(["bytes", "rtt_us", "lost_packets", "packets"]),
        st.lists(st.integers(-1, 2**63 - 1), min_size=4, max_size=4),
    )
)
@draws(25)
def test_any_samples_come_back(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, list[int]]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    arrays = {name: np.array(values, dtype=np.int64) for name, values in columns.items()}
    one, other = Store(folder / "one"), Store(folder / "other")
    run_id = one.spool(RunBundle(make_record(1), arrays))
    other.append(RunBundle(make_record(1), arrays))
    assert one.samples([run_id]).to_pylist() == other.samples([run_id]).to_pylist()


def test_a_spooled_run_costs_no_heavy_import(tmp_path: Path) -> None:
    program = (
        "import sys, json; from array import array; from pathlib import Path\n"
        "from farline.store.quick import spool\n"
        "from farline.store import RunBundle\n"
        "from farline.store.layout import Layout\n"
        "from farline.store.receipts import keep_receipt\n"
        "store = Path(sys.argv[1])\n"
        "run_id = spool(store, RunBundle(json.loads(sys.argv[2]), {'bytes': array('q', [1])}))\n"
        "lines = Path(sys.argv[1]) / 'lines'; lines.write_text('')\n"
        "keep_receipt(Layout(store), run_id, lines)\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'ibis', 'pandas', 'farline.store.store'}\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
    )
    record = json.dumps(make_copy_record(1))
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), record],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.split() == []
    assert Store(tmp_path).runs().num_rows == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]\n", b'{"format":"x"}\n', b'{"format":3}\n'])
def test_a_damaged_file_is_named_and_costs_nothing_else(store: Store, damage: bytes) -> None:
    store.spool(RunBundle(make_record(1), {}))
    (store.layout.spool / "broken.jsonl").write_bytes(damage)
    assert store.runs().num_rows == 1
    (line,) = store.damaged()
    assert "broken.jsonl: damaged" in line


def test_a_run_of_a_newer_version_is_left_out_by_name(store: Store) -> None:
    store.spool(RunBundle(make_record(1), {}))
    document = {"format": FORMAT_VERSION + 1, "entry": {}, "kinds": {}}
    (store.layout.spool / "newer.jsonl").write_text(json.dumps(document))
    assert store.runs().num_rows == 1
    (line,) = store.damaged()
    assert "newer.jsonl" in line and "use a newer version" in line


def test_a_store_of_an_older_version_takes_spooled_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("spool", "receipts", "mover", "fresh-mover"):
        (tmp_path / name).rmdir()
    old = Store(tmp_path, create=False)
    assert old.runs().num_rows == 0
    assert old.tidy().merged_runs == 0
    run_id = old.spool(RunBundle(make_copy_record(1), {}, mover=make_mover_samples()))
    assert store.mover_samples([run_id]).num_rows == 6


class KilledError(BaseException):
    """Stands for SIGKILL: nothing after it touches the disk, clean-up included."""


@pytest.fixture
def kill_after(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Lets so many changes of the disk through, and none after them."""
    left = [0]

    def limited(change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            if left[0] <= 0:
                raise KilledError
            left[0] -= 1
            return change(*arguments, **named)

        return counted

    def arm(changes: int) -> None:
        left[0] = changes
        monkeypatch.setattr(Path, "rename", limited(Path.rename))
        monkeypatch.setattr(Path, "unlink", limited(Path.unlink))
        monkeypatch.setattr(os, "fsync", limited(os.fsync))

    yield arm


@pytest.mark.parametrize("changes", range(0, 22, 3))
def test_a_merge_killed_anywhere_loses_and_doubles_nothing(
    store: Store, kill_after: Callable[[int], None], changes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        store.spool(
            RunBundle(make_copy_record(number), make_samples(2), mover=make_mover_samples(2))
        )
        if number == 1:
            store.compact()
    before = seen(store)
    kill_after(changes)
    with contextlib.suppress(KilledError):
        store.append(RunBundle(make_record(3), {}))
        store.compact(everything=True)
    monkeypatch.undo()
    ids = [make_record(number)["run_id"] for number in range(3)]
    assert store.mover_samples(ids).to_pylist() == before[3]
    assert store.samples(ids).to_pylist() == before[1]
    with contextlib.suppress(SpecError):
        store.append(RunBundle(make_record(3), {}))
    store.compact(everything=True)
    assert store.runs()["run_id"].to_pylist() == [make_record(n)["run_id"] for n in range(4)]
    assert store.mover_samples(ids).to_pylist() == before[3]
    assert list(store.layout.spool.iterdir()) == []


def test_readers_beside_a_merge_see_every_run_once(store: Store) -> None:
    for number in range(20):
        store.spool(RunBundle(make_record(number), make_samples(1)))
    counts: list[int] = []

    def ask() -> None:
        counts.extend(store.runs().num_rows for _ in range(5))

    readers = [threading.Thread(target=ask) for _ in range(2)]
    for reader in readers:
        reader.start()
    store.compact(everything=True)
    for reader in readers:
        reader.join()
    assert counts == [20] * 10
