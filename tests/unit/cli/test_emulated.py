"""`farline profile` without a host, up to where it needs a testbed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from farline.campaign.journal import Journal, last_unfinished, new_journal
from farline.campaign.path_table import PathPlace
from farline.campaign.plan import Plan
from farline.cli import emulated
from farline.cli.common import interruptible
from farline.cli.group import run
from farline.errors import UsageError
from farline.store import Store
from farline.testbeds import load, serving
from tests.support.driving import make


class Running:
    """A testbed that is up."""

    def __init__(self, topology: Any, name: str = "back-to-back") -> None:
        self.now, self.name = topology, name
        self.closed = False

    def topology(self) -> Any:
        return self.now

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def beds(monkeypatch: pytest.MonkeyPatch) -> dict[str, Running]:
    """Testbeds that are up, by name; those that are brought up come to stand there as `new`."""
    up: dict[str, Running] = {}

    @contextmanager
    def bring_up(topology: Any, name: str) -> Iterator[Running]:
        up["new"] = Running(topology, name)
        yield up["new"]

    monkeypatch.setattr("farline.testbeds.lookup.list_beds", lambda: list(up.values()))
    monkeypatch.setattr("farline.testbeds.Testbed.attach", up.__getitem__)
    monkeypatch.setattr("farline.testbeds.Testbed.up", bring_up)
    return up


def journal_of(topology: Any, testbed: str | None = None, **fixed: Any) -> Journal:
    values = {f"path.{key}": value for key, value in fixed.items()}
    plan = Plan(place=PathPlace(testbed=testbed), fixed=values)
    return new_journal(make(plan), "testbed", topology)


def test_a_running_testbed_is_used_only_if_it_is_named(beds: dict[str, Running]) -> None:
    beds["back-to-back"] = Running(load("back-to-back", rtt_s=0.5))
    assert emulated.planned_topology(Plan()) == load("back-to-back")
    named = Plan(place=PathPlace(testbed="back-to-back"))
    assert emulated.planned_topology(named) == load("back-to-back", rtt_s=0.5)
    with emulated._testbed(journal_of(load("back-to-back"))) as bed:
        assert bed.name.startswith("profile-")


def test_a_resumed_campaign_gets_the_testbed_that_it_was_begun_over(
    beds: dict[str, Running],
) -> None:
    begun = load("dumbbell", rtt_s=0.25)
    with emulated._testbed(journal_of(begun, "dumbbell")) as bed:
        assert bed.name == beds["new"].name and bed.topology() == begun


def test_a_testbed_that_became_another_is_refused_by_a_resume(beds: dict[str, Running]) -> None:
    begun = load("back-to-back", rtt_s=0.01)
    bed = beds["b"] = Running(load("back-to-back", rtt_s=0.01, loss=0.5), "b")
    with (
        pytest.raises(UsageError, match=r"'b' is up, but campaign .* was started over another one"),
        emulated._testbed(journal_of(begun, "b", rtt_s=0.1)),
    ):
        pass
    assert bed.closed
    with emulated._testbed(journal_of(begun, "b", rtt_s=0.1, loss=0.1)) as found:
        assert found.name == "b"


def test_the_named_link_is_the_one_that_a_new_testbed_has_set() -> None:
    place = PathPlace(testbed="dumbbell", link="router-right")
    topology = emulated.new_topology(Plan(place=place, fixed={"path.rtt_s": 0.5}))
    delays = {link["name"]: link["forward"]["delay_s"] for link in topology["links"]}
    before = {link["name"]: link["forward"]["delay_s"] for link in load("dumbbell")["links"]}
    assert delays == {**before, "router-right": 0.25}
    assert topology["main_link"] == "router-right"


def test_one_lane_can_be_named_and_all_are_set_unless_one_is() -> None:
    def lanes(link: str | None) -> list[float]:
        place = PathPlace(testbed="multi-nic", link=link)
        topology = emulated.new_topology(Plan(place=place, axes={"path.rtt_s": (0.1, 0.5)}))
        return [one["forward"]["delay_s"] for one in topology["links"]]

    assert lanes(None) == [0.25] * 4
    assert lanes("lane-3") == [0.00002, 0.00002, 0.25, 0.00002]


def test_the_whole_testbed_is_written_down(
    beds: dict[str, Running], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    beds["back-to-back"] = Running(load("back-to-back", rtt_s=0.5))
    monkeypatch.setattr(emulated, "run_over_testbed", lambda *_: 0)
    assert run(["profile", "--rtt", "1ms,5ms", "-t", "1", "--store", str(tmp_path)]) == 0
    journal = last_unfinished(Store(tmp_path))
    assert journal.topology == load("back-to-back", rtt_s="5ms")


def test_a_campaign_that_a_signal_ended_says_so_as_a_shell_does() -> None:
    assert serving.exit_code(-signal.SIGTERM) == 143
    assert [serving.exit_code(code) for code in (0, 2, 130)] == [0, 2, 130]


def test_who_hangs_up_asks_for_an_end_unless_hanging_up_is_ignored() -> None:
    # Whoever runs the tests may ignore it already, as under nohup.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with interruptible(quiet=True) as asked:
            os.kill(os.getpid(), signal.SIGHUP)
            assert asked.count == 1
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with interruptible(quiet=True) as asked:
            os.kill(os.getpid(), signal.SIGHUP)
            assert asked.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)
