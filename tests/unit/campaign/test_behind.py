"""A run is kept while the next one is under way, and nothing is lost on the way."""

from __future__ import annotations

import threading

import pytest

from farline.campaign.behind import Behind
from farline.errors import SystemFailure
from farline.store.entry import RunBundle


class Shelf:
    """A store that waits for a word before it keeps, and refuses what is called `bad`."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.may_keep = threading.Event()

    def append(self, run: RunBundle) -> None:
        assert self.may_keep.wait(10)
        if run.record["run_id"] == "bad":
            raise SystemFailure("disk full")
        self.kept.append(run.record["run_id"])


def test_the_campaign_goes_on_while_the_disk_works() -> None:
    shelf = Shelf()
    with Behind(shelf) as behind:
        behind.append(RunBundle({"run_id": "a"}, {}))
        assert shelf.kept == []
        shelf.may_keep.set()
        behind.append(RunBundle({"run_id": "b"}, {}))
        assert shelf.kept[0] == "a"
    assert shelf.kept == ["a", "b"]


def test_a_refusal_is_raised_at_the_next_run() -> None:
    shelf = Shelf()
    shelf.may_keep.set()
    with pytest.raises(SystemFailure, match="disk full"), Behind(shelf) as behind:
        behind.append(RunBundle({"run_id": "bad"}, {}))
        behind.append(RunBundle({"run_id": "never"}, {}))
    assert shelf.kept == []


def test_a_refusal_of_the_last_run_is_raised_at_the_end() -> None:
    shelf = Shelf()
    shelf.may_keep.set()
    with pytest.raises(SystemFailure, match="disk full"), Behind(shelf) as behind:
        behind.append(RunBundle({"run_id": "bad"}, {}))


def test_what_ended_the_campaign_is_what_is_raised() -> None:
    shelf = Shelf()
    shelf.may_keep.set()
    with pytest.raises(KeyboardInterrupt), Behind(shelf) as behind:
        behind.append(RunBundle({"run_id": "a"}, {}))
        behind.append(RunBundle({"run_id": "bad"}, {}))
        raise KeyboardInterrupt
    assert shelf.kept == ["a"]
