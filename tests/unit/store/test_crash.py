"""Killed at any moment, or written by many at once, the store loses and doubles nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from farline.store import Store, left_out
from farline.store.disk import locked, remove_stale
from farline.store.entry import RunBundle
from tests.support.records import make_record, make_samples

ROOT = Path(__file__).parents[3]

WRITER = """
import sys
from pathlib import Path
from farline.store import RunBundle, Store
from tests.support.records import make_record, make_samples
store, first = Store(Path(sys.argv[1])), int(sys.argv[2])
for number in range(first, first + int(sys.argv[3])):
    print(store.append(RunBundle(make_record(number), make_samples(3))), flush=True)
"""


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


def numbers(store: Store) -> list[int]:
    return [int(run_id[4:]) for run_id in store.runs()["run_id"].to_pylist()]


def sample_counts(store: Store, count: int) -> dict[str, int]:
    rows = store.samples([make_record(n)["run_id"] for n in range(count)])["run_id"].to_pylist()
    return {name: rows.count(name) for name in set(rows)}


@pytest.mark.parametrize("changes", range(4))
def test_an_append_killed_anywhere_is_there_or_not(
    tmp_path: Path, kill_after: Callable[[int], None], changes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.append(RunBundle(make_record(0), make_samples(2)))
    kill_after(changes)
    try:
        store.append(RunBundle(make_record(1), make_samples(2)))
        finished = True
    except KilledError:
        finished = False
    monkeypatch.undo()
    found = numbers(store)
    assert found in ([0], [0, 1])
    assert not finished or found == [0, 1]
    assert store.damaged() == ()


@pytest.mark.parametrize("changes", range(16))
def test_a_merge_killed_anywhere_loses_and_doubles_nothing(
    tmp_path: Path, kill_after: Callable[[int], None], changes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for number in range(5):
        store.append(RunBundle(make_record(number), make_samples(2)))
        if number == 1:
            store.compact()
    wanted = {make_record(number)["run_id"]: 4 for number in range(5)}
    kill_after(changes)
    with contextlib.suppress(KilledError):
        store.compact()
    monkeypatch.undo()
    assert numbers(store) == list(range(5))
    assert sample_counts(store, 5) == wanted
    store.compact(everything=True)
    assert numbers(store) == list(range(5))
    assert sample_counts(store, 5) == wanted
    assert list(store.layout.fresh.iterdir()) == []
    assert len(list(store.layout.samples.iterdir())) == len(list(store.layout.runs.iterdir())) == 1


def test_a_killed_process_leaves_what_it_had_finished(tmp_path: Path) -> None:
    with writer(tmp_path, 0, 10_000) as process:
        assert process.stdout is not None
        finished = [process.stdout.readline().strip() for _ in range(20)]
        process.kill()
        finished += process.stdout.read().split()
    store = Store(tmp_path)
    found = store.runs()["run_id"].to_pylist()
    assert set(finished) <= set(found)
    # The one that was being written when the kill came may be there too.
    assert len(found) <= len(finished) + 1
    assert store.damaged() == ()


def test_several_writers_a_merger_and_a_reader_at_once(tmp_path: Path) -> None:
    store, count, seen = Store(tmp_path), 40, 0
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(writer(tmp_path, 1000 * index, count)) for index in range(3)]
        while any(process.poll() is None for process in writers):
            found = numbers(store)
            assert len(found) == len(set(found)) >= seen
            seen = len(found)
            store.compact()
    assert [process.returncode for process in writers] == [0, 0, 0]
    wanted = [1000 * index + number for index in range(3) for number in range(count)]
    assert numbers(store) == wanted
    store.compact(everything=True)
    assert numbers(store) == wanted


def test_files_stay_while_a_reader_has_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(4):
        store.append(RunBundle(make_record(number), make_samples(2)))
    with store.read() as reader:
        done = store.compact()
        assert (done.merged_runs, done.removed_files) == (4, 0)
        assert reader.runs().num_rows == 4
        assert reader.samples().num_rows == 16
    assert numbers(store) == [0, 1, 2, 3]
    assert store.compact().removed_files == 4
    assert numbers(store) == [0, 1, 2, 3]


def test_one_merger_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append(RunBundle(make_record(0), {}))
    store.append(RunBundle(make_record(1), {}))
    with locked(store.layout.merge_lock, exclusive=True):
        assert store.compact().busy
    assert store.compact().merged_runs == 2


def test_runs_are_rewritten_only_with_as_many_others(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(12):
        store.append(RunBundle(make_record(number), {}))
        if number in (7, 9):
            store.compact()
    # 8 runs and 2 runs stay apart; the last two join the two, not the eight.
    assert store.compact().merged_runs == 4
    assert len(list(store.layout.runs.iterdir())) == 2
    assert store.compact(everything=True).merged_runs == 12


def test_a_damaged_file_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(3):
        store.append(RunBundle(make_record(number), make_samples(1)))
    bad = store.layout.fresh / f"{make_record(1)['run_id']}.parquet"
    bad.write_bytes(bad.read_bytes()[:100])
    assert numbers(store) == [0, 2]
    (line,) = store.damaged()
    assert bad.name in line and "damaged" in line
    store.compact()
    assert numbers(store) == [0, 2]
    assert bad.exists()


def test_damage_inside_a_segment_is_one_line_and_the_others_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(3):
        store.append(RunBundle(make_record(number), make_samples(1)))
    store.compact()
    (segment,) = store.layout.runs.iterdir()
    content = bytearray(segment.read_bytes())
    content[4:2000] = bytes(1996)
    segment.write_bytes(content)
    store.append(RunBundle(make_record(3), make_samples(1)))
    left_out.forget()
    assert numbers(store) == [3]
    (line,) = left_out.noted()
    assert segment.name in line and "damaged" in line and "\n" not in line
    assert segment.read_bytes() == content


def test_temporary_files_go_when_their_writer_is_long_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old, young = store.layout.temp / "a.1.x.tmp", store.layout.temp / "b.2.y.tmp"
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    assert store.runs().num_rows == 0
    assert remove_stale(store.layout.temp) == 1
    assert (old.exists(), young.exists()) == (False, True)


def test_tidying_waits_until_it_is_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.store.store.TIDY_FILES", 3)
    store = Store(tmp_path)
    merged = []
    for number in range(4):
        store.append(RunBundle(make_record(number), {}))
        merged.append(store.tidy().merged_runs)
    assert merged == [0, 0, 3, 0]


def writer(store: Path, first: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store), str(first), str(count)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )
