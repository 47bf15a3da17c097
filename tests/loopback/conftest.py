"""A server for the tests of a file, and what they do with farline's commands alike."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from farline.store import RunFilter, Store
from tests.support.serving import FARLINE, Serving, environment, farline, serving

SCHEMA = Path(__file__).parents[2] / "schemas" / "run-record.schema.json"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server and its clients keep what they remember."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Serving]:
    """A server for all tests of a file."""
    with serving(home) as running:
        yield running


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts farline commands, their output kept; they end with their test."""
    with ExitStack() as stack:

        def begin(home: Path, *arguments: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [*FARLINE, *arguments], env=environment(home), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield begin


def record_of(home: Path, ticket: str, *arguments: str) -> dict[str, Any]:
    """The record that `farline probe --json` prints, held to the schema."""
    done = farline(home, "probe", ticket, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(record)
    return record


def results_of(folder: Path, ticket: str, plan: str, *options: str) -> dict[str, Any]:
    """Results of a campaign in which nothing fails; its store is `store` in the folder."""
    path = folder / "plan.toml"
    path.write_text(plan)
    words = ["profile", ticket, str(path), "--json", "--store", str(folder / "store")]
    done = farline(folder, *words, *options)
    assert done.returncode == 0, done.stderr
    # Behind it may stand where the report is.
    results: dict[str, Any] = json.loads(done.stdout[: done.stdout.rindex("}") + 1])
    assert results["stopped"] == "finished"
    assert all(row["mean_bps"] > 0 and row["failed"] == 0 for row in results["settings"])
    return results


def rows_of(store: Path, **wanted: Any) -> list[dict[str, Any]]:
    """Runs that a store has, in the order in which they were done."""
    rows: list[dict[str, Any]] = Store(store, create=False).runs(RunFilter(**wanted)).to_pylist()
    return rows
