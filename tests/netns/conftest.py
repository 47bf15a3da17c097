"""Programs on the hosts of testbeds, which the fixture `testbed` makes and removes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Benches are programs, not a package: what they share with these tests is found beside them.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

from farline.testbeds import Host, needs
from farline.testbeds.fixture import SKIP_REASON

FARLINE = Path(sys.executable).with_name("farline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips where there can be no hosts."""
    here = Path(__file__).parent
    if needs.missing() is None:
        return
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=SKIP_REASON))


Ending = Callable[["subprocess.Popen[str]"], "subprocess.Popen[str]"]
Sleeper = Callable[[Host], "subprocess.Popen[str]"]


@pytest.fixture
def ending() -> Iterator[Ending]:
    """Takes programs that end with their test, whatever became of it."""
    with ExitStack() as stack:

        def take(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield take


@pytest.fixture
def sleeper(ending: Ending) -> Sleeper:
    """Starts a program that does nothing for long, and is inside the host when this returns."""

    def begin(host: Host) -> subprocess.Popen[str]:
        script = "echo inside; exec sleep 600"
        process = ending(host.popen(["sh", "-c", script], stdout=subprocess.PIPE))
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        return process

    return begin


@dataclass
class Served:
    """A running `farline serve` and the ticket it printed."""

    process: subprocess.Popen[str]
    ticket: str


def start(host: Host, *command: str | Path) -> subprocess.Popen[str]:
    """A program inside a host, its output kept."""
    return host.popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def serve(tmp_path: Path, ending: Ending) -> Iterator[Callable[..., Served]]:
    """Starts `farline serve` on a host; stops all that were started."""
    started: list[subprocess.Popen[str]] = []

    def begin(host: Host, *options: str) -> Served:
        state = tmp_path / "state"
        place = ("--listen", host.address, "--state-dir", state)
        process = ending(start(host, FARLINE, "serve", *place, *options))
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            words = [word for word in line.split() if word.startswith("farline://")]
            if words:
                return Served(process, words[0])
        raise AssertionError(f"no ticket printed: {process.stderr.read()}")  # type: ignore[union-attr]

    yield begin
    for process in started:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=15)


def probe(host: Host, ticket: str, *options: str) -> dict[str, Any]:
    """Record of one `farline probe` that must succeed."""
    done = host.run([FARLINE, "probe", ticket, "--no-store", "--json", *options], timeout=60)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record
