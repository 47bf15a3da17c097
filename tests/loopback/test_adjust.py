"""Copies that are changed while they run: from a program, and from the command line beside them."""

from __future__ import annotations

import filecmp
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import farline as library
from farline.tools.events import Adjusted, Progress, Stages, Tuned
from tests.support.serving import FARLINE, Serving, environment, farline, serving

RATE_BPS = 80_000_000
BYTES = 20_000_000


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("there")


@pytest.fixture(scope="module")
def files(home: Path, there: Path) -> Iterator[Serving]:
    with serving(home, "--write", str(there), "--limit-streams", "6") as running:
        yield running


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that takes two seconds at the rate of these tests."""
    path = tmp_path_factory.mktemp("source") / "volume"
    path.write_bytes(os.urandom(BYTES))
    return path


def test_a_program_changes_its_copy_and_hears_what_came_of_it(
    files: Serving, there: Path, volume: Path, home: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    job = library.copy(
        volume, f"{files.tickets['write']}#api/", store=tmp_path / "store",
        streams=2, interval_s=0.1, total_rate_bps=RATE_BPS,
    )  # fmt: skip
    asked = False
    for event in job:
        if isinstance(event, Progress) and event.report["moved_bytes"] > 1_000_000 and not asked:
            asked = True
            job.set_streams(5)
            job.set_concurrency(3)
            job.set_rate(2 * RATE_BPS)
    job.wait()
    assert filecmp.cmp(volume, there / "api" / "volume", shallow=False)
    told = {event.change["knob"]: event.change for event in job if isinstance(event, Adjusted)}
    assert {knob: change["after"] for knob, change in told.items()} == {
        "streams": 5, "concurrency": 3, "total-rate": 2 * RATE_BPS,
    }  # fmt: skip
    assert job.record is not None
    assert len(job.record["adjustments"]) == 3
    stages = [event.report for event in job if isinstance(event, Stages)]
    assert stages[-1]["read_bytes"] == BYTES and stages[-1]["streams"] == 5
    assert job.stages is not None
    numbers = {stream["stream"] for stream in job.record["streams"]}
    assert numbers == {0, 1, 2, 3, 4, 5, 6}, "two, the messages, and three more"
    shown = farline(home, "show", "last", "--store", str(tmp_path / "store"))
    assert "s: 2 -> 5 streams" in shown.stdout, shown.stderr


def test_a_copy_is_adjusted_from_outside_and_its_socket_goes_with_it(
    files: Serving, there: Path, volume: Path, home: Path, tmp_path: Path
) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    words = [
        str(volume),
        f"{files.tickets['write']}#cli/",
        "--bwlimit",
        "8Mbit/s",
        "--streams",
        "2",
    ]
    copy = subprocess.Popen(
        [*FARLINE, "copy", *words, "--json"], env={**environment(home), **state},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    sockets = tmp_path / "state" / "farline" / "copies"
    while copy.poll() is None and not list(sockets.glob("*.sock")):
        pass
    (path,) = sockets.glob("*.sock")

    def adjust(*options: str) -> subprocess.CompletedProcess[str]:
        command = [*FARLINE, "adjust", *options]
        return subprocess.run(
            command, env={**environment(home), **state}, capture_output=True, text=True, check=False
        )

    done = adjust("last", "--streams", "4", "--rate", "9Mbit/s")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{path.stem}: 2 -> 4 streams", f"{path.stem}: 8Mbit/s -> 9Mbit/s"
    ]  # fmt: skip
    refused = adjust(path.stem, "--streams", "9", "--json")
    assert refused.returncode == 8
    assert "the server allows up to 6" in refused.stdout + refused.stderr
    assert adjust(path.stem[-6:], "--rate", "10Gbit/s").returncode == 0
    output, errors = copy.communicate()
    assert copy.returncode == 0, errors
    record = json.loads(output)
    assert record["run_id"] == path.stem
    knobs = [change["knob"] for change in record["adjustments"]]
    assert knobs == ["total-rate", "streams", "streams", "total-rate"]
    assert list(sockets.iterdir()) == []
    over = adjust(path.stem, "--streams", "1")
    assert over.returncode == 1 and "no running copy has this name" in over.stderr


def test_a_copy_that_is_to_be_tuned_tries_more_streams_by_itself(
    files: Serving, volume: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    job = library.copy(
        volume, f"{files.tickets['write']}#tuned/", store=tmp_path / "store", streams=2,
        total_rate_bps=4_000_000, tune="auto",
    )  # fmt: skip
    for event in job:
        if isinstance(event, Adjusted) and event.by_tuning:
            # That is all that is to be seen: nobody waits for the end of a slow copy.
            job.cancel()
    tuned = [event for event in job if isinstance(event, Tuned)]
    assert (tuned[0].before, tuned[0].streams, tuned[0].reason) == (2, 4, "probe")
    (change, *_) = [event for event in job if isinstance(event, Adjusted)]
    assert change.change["after"] == 4 and not change.change.get("refused")
