"""`farline store migrate`: says what is there, and writes it anew without losing a run."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from farline.cli.store import command
from farline.errors import VersionError
from farline.store import Store
from farline.store.migrate import migrate, survey
from farline.store.parquet_files import VERSION_KEY
from farline.store.upgrade import FORMAT_VERSION

DATA = Path(__file__).parents[2] / "data" / "store"
VERSIONS = range(FORMAT_VERSION + 1)


def old_store(tmp_path: Path, version: int) -> Store:
    """A copy of a store that a version wrote."""
    shutil.copytree(DATA / f"v{version}", tmp_path / "store")
    return Store(tmp_path / "store")


def everything(store: Store) -> tuple[list[dict[str, object]], list[object]]:
    """All runs, with the columns that their version knew, and all samples."""
    runs = store.runs()
    rows = runs.to_pylist()
    for row in rows:
        # Rows of version 1 and 2 did not have it: written anew they say `native`.
        assert row.pop("tool") in (None, "native")
    return rows, store.samples(runs["run_id"].to_pylist()).to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migrated_store_has_the_same_runs_in_the_present_version(
    tmp_path: Path, version: int
) -> None:
    store = old_store(tmp_path, version)
    before = everything(store)
    look = survey(store.layout)
    assert look.is_sound
    assert look.runs == {version: 3}
    assert everything(store) == before
    assert migrate(store.layout) == (0 if version == FORMAT_VERSION else 3)
    assert everything(store) == before
    assert survey(store.layout).runs == {FORMAT_VERSION: 3}
    assert survey(store.layout).old_files == 0
    assert migrate(store.layout) == 0


def test_a_check_names_what_is_damaged_and_what_is_newer_and_changes_nothing(
    tmp_path: Path,
) -> None:
    store = old_store(tmp_path, 0)
    first, second = sorted(store.layout.fresh.glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-20])
    table = pq.read_table(second)
    newer = {**(table.schema.metadata or {}), VERSION_KEY: str(FORMAT_VERSION + 1).encode()}
    pq.write_table(table.replace_schema_metadata(newer), second)
    files = {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}
    done = CliRunner().invoke(
        command, ["migrate", "--check", "--json", "--store", str(store.path)],
        standalone_mode=False,
    )  # fmt: skip
    assert done.return_value == 2
    document = json.loads(done.stdout)
    assert document["runs"] == {"0": 1}
    assert [first.name in line for line in document["damaged"]] == [True]
    assert [second.name in line for line in document["newer"]] == [True]
    assert {path: path.read_bytes() for path in files} == files
    with pytest.raises(VersionError):
        migrate(store.layout)


def test_samples_that_cannot_be_read_are_found_although_the_run_is_listed(tmp_path: Path) -> None:
    store = old_store(tmp_path, 2)
    (samples,) = store.layout.samples.glob("*.parquet")
    content = bytearray(samples.read_bytes())
    content[4:200] = bytes(196)
    samples.write_bytes(content)
    look = survey(store.layout)
    assert not look.is_sound
    assert len(look.damaged) == 1


SCRIPT = """
import os, signal, sys
from pathlib import Path
from farline.store import Store
from farline.store.migrate import migrate
store, left = Store(Path(sys.argv[1])), [int(sys.argv[2])]
def step(name):
    plain = getattr(os, name)
    def counted(*words, **more):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*words, **more)
    setattr(os, name, counted)
for name in ("rename", "replace", "link", "unlink", "fsync"):
    step(name)
migrate(store.layout)
"""


def test_a_migration_that_is_killed_anywhere_loses_nothing(tmp_path: Path) -> None:
    expected = everything(old_store(tmp_path, 0))
    ends = 0
    for steps in range(0, 60, 3):
        shutil.rmtree(tmp_path / "store")
        store = old_store(tmp_path, 0)
        done = subprocess.run([sys.executable, "-c", SCRIPT, str(store.path), str(steps)])
        assert everything(store) == expected, steps
        ends += done.returncode == 0
        assert done.returncode in (0, -signal.SIGKILL)
        migrate(store.layout)
        assert everything(store) == expected, steps
        if done.returncode == 0:
            break
    assert ends == 1
    assert not list(store.layout.temp.iterdir())


def test_the_command_tells_in_lines(tmp_path: Path) -> None:
    store = old_store(tmp_path, 0)

    def said(*words: str) -> str:
        arguments = ["migrate", "--store", str(store.path), *words]
        return CliRunner().invoke(command, arguments, standalone_mode=False).stdout

    assert said("--check").splitlines() == [
        "version 0: 3 runs",
        "farline store migrate would write 3 files anew",
        "all of it can be read",
    ]
    assert "3 runs written as this version does" in said()
    assert said("--check").splitlines() == [
        f"version {FORMAT_VERSION} (this one): 3 runs",
        "all of it can be read",
    ]
