"""What is done next with a transfer, and that it always comes to an end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.portal.transfer_machine import (
    ENDED,
    MOST_STARTS,
    Begin,
    Seen,
    Settle,
    Stop,
    next_step,
)

GOOD, STOPPED = {"exit_code": 0}, {"exit_code": 130, "stopped": True}
BAD = {"exit_code": 23, "error": {"kind": "partial", "message": "1 names"}, "stopped": False}

CASES = {
    "a queued one begins when its time has come": (Seen("queued", "run", 0), Begin()),
    "one waits while no place is free": (Seen("queued", "run", 0, is_due=False), None),
    "one that runs is left alone": (Seen("running", "run", 1, is_alive=True), None),
    "one that runs is stopped to pause": (Seen("running", "pause", 1, is_alive=True), Stop()),
    "one that runs is stopped to cancel": (Seen("running", "cancel", 1, is_alive=True), Stop()),
    "its end counts": (Seen("running", "run", 1, end=GOOD), Settle("succeeded")),
    "a copy that was complete is one, whatever was wanted": (
        Seen("running", "cancel", 1, end=GOOD), Settle("succeeded")),
    "what failed says why": (
        Seen("running", "run", 1, end=BAD), Settle("failed", BAD["error"])),  # type: ignore[arg-type]
    "one that was stopped to pause is paused": (
        Seen("running", "pause", 1, end=STOPPED), Settle("paused")),
    "one that was stopped to cancel is cancelled": (
        Seen("running", "cancel", 1, end=STOPPED), Settle("cancelled")),
    "one that was resumed before it had stopped waits again": (
        Seen("running", "run", 1, end=STOPPED), Settle("queued")),
    "one whose process was killed begins again": (Seen("running", "run", 1), Begin()),
    "even when no place is free: it has one": (Seen("running", "run", 1, is_due=False), Begin()),
    "a queued one is cancelled at once": (Seen("queued", "cancel", 0), Settle("cancelled")),
    "a paused one can be cancelled": (Seen("paused", "cancel", 1), Settle("cancelled")),
    "a paused one stays": (Seen("paused", "pause", 1), None),
}  # fmt: skip


@pytest.mark.parametrize("seen, step", CASES.values(), ids=CASES)
def test_next_step(seen: Seen, step: object) -> None:
    assert next_step(seen) == step


def test_a_process_that_always_dies_is_given_up_with_the_place_of_its_log() -> None:
    step = next_step(Seen("running", "run", MOST_STARTS))
    assert isinstance(step, Settle) and step.state == "failed"
    assert step.failure is not None and "keeper.log" in step.failure["message"]


@pytest.mark.parametrize("seen", [
    Seen("queued", "run", 0, is_over=True), Seen("running", "run", 1, end=STOPPED, is_over=True),
])  # fmt: skip
def test_when_its_reservation_ends_it_is_paused_and_says_so(seen: Seen) -> None:
    step = next_step(seen)
    assert isinstance(step, Settle) and step.state == "paused"
    assert step.failure is not None and "reservation ended" in step.failure["message"]
    assert next_step(replace(seen, end=None, is_alive=True, state="running")) == Stop()


@given(
    st.sampled_from(["queued", "running", "paused", "succeeded", "failed", "cancelled"]),
    st.sampled_from(["run", "pause", "cancel"]), st.integers(0, 9), st.booleans(),
    st.sampled_from([None, GOOD, BAD, STOPPED]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_nothing_begins_beside_a_living_process_or_after_an_end(
    state: str, wanted: str, starts: int, alive: bool, end: object, due: bool, over: bool
) -> None:
    seen = Seen(state, wanted, starts, alive, end, due, over)  # type: ignore[arg-type]
    step = next_step(seen)
    if isinstance(step, Begin):
        assert not alive and wanted == "run" and state not in ENDED and starts < MOST_STARTS
        assert end is None or state == "queued"
    if state in ENDED:
        assert step is None
