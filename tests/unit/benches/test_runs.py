"""Runs with stamps: an invalid one is tried again, and what stays invalid is not hidden."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from _emulator.runs import RETRIES, overrun, seen, valid_run, valid_runs
from farline.testbeds import Testbed


class Bed:
    """A bed that only stamps, as told."""

    def __init__(self, *valid: bool) -> None:
        """Whether each stamp in turn is valid; the last one goes on."""
        self.valid = list(valid)
        self.marks = 0

    def mark(self) -> int:
        """Begins an interval."""
        self.marks += 1
        return self.marks

    def stamp(self, mark: int) -> dict[str, Any]:
        """The next stamp."""
        is_valid = self.valid.pop(0) if len(self.valid) > 1 else self.valid[0]
        return {"valid": is_valid, "reasons": [] if is_valid else ["late"], "mark": mark}


def bed(*valid: bool) -> Testbed:
    """The same, as a testbed."""
    return cast(Testbed, Bed(*valid))


class Counter:
    """Numbers from 1, one per call."""

    def __init__(self) -> None:
        """None yet."""
        self.calls = 0

    def __call__(self) -> int:
        """The next."""
        self.calls += 1
        return self.calls


def test_the_first_valid_run_is_taken() -> None:
    count = Counter()
    done = valid_run(bed(False, False, True), count)
    assert (done.value, done.stamp["valid"], count.calls) == (3, True, 3)


def test_the_stamp_leaves_out_what_comes_before_a_run_has_settled() -> None:
    def until_marked_again() -> None:
        end = time.monotonic() + 30
        while settling.marks < 2 and time.monotonic() < end:
            time.sleep(0.001)

    settling = Bed(True)
    done = valid_run(cast(Testbed, settling), until_marked_again, settle_s=0.01)
    assert done.stamp["mark"] == 2
    assert valid_run(bed(True), Counter()).stamp["mark"] == 1
    assert valid_run(bed(True), Counter(), settle_s=60).stamp["mark"] == 1, "it ended before"


def test_a_run_that_never_becomes_valid_is_reported_as_invalid() -> None:
    count = Counter()
    done = valid_run(bed(False), count)
    assert count.calls == RETRIES + 1
    assert not done.stamp["valid"]


def test_what_a_host_failed_at_is_tried_again_too(capsys: pytest.CaptureFixture[str]) -> None:
    done = valid_run(bed(True), Counter(), lambda value: overrun(2 - value))
    assert done.value == 2
    assert "the receiver's buffer overflowed 1 times" in capsys.readouterr().err


def test_every_run_brings_its_stamp_into_the_row() -> None:
    values = seen(valid_runs(bed(True), Counter(), 3), float)
    assert values.values == [1.0, 2.0, 3.0]
    assert len(values.stamps) == 3
