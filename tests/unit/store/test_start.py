"""What asking a store of runs has to import: the time of a short command is its imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.store import Store
from farline.store.entry import RunBundle
from tests.support.records import make_record, make_samples
from tests.unit.cli.test_group import imported_after

BINDINGS = {"pandas", "ibis", "duckdb", "scipy", "matplotlib"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a segment, a fresh run and a spooled one, all of a campaign."""
    store = Store(tmp_path_factory.mktemp("start") / "store")
    for number in (0, 1):
        store.append(RunBundle(make_record(number), make_samples(3), campaign="night"))
    store.compact()
    store.append(RunBundle(make_record(2), make_samples(3), campaign="night"))
    store.spool(RunBundle(make_record(3), make_samples(3), campaign="night"))
    return store.path


@pytest.mark.parametrize(
    "words",
    [
        ["runs"],
        ["runs", "--campaigns"],
        ["runs", "--campaign", "night", "--where", "streams=1,none", "--since", "2h", "-n", "1"],
        ["show", "last"],
        ["show", "last", "--samples", "--json"],
    ],
    ids=" ".join,
)
def test_runs_are_listed_and_shown_without_an_engine(kept: Path, words: list[str]) -> None:
    assert imported_after(*words, "--store", str(kept)) & BINDINGS == set()
