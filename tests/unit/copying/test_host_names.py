"""Whose failure it is, in the names of the hosts."""

from __future__ import annotations

import pytest

from farline.copying.host_names import HostNames
from farline.errors import ProtocolError, SystemFailure

OVER_SSH, HERE, ORDERED = HostNames("u@dtn"), HostNames(""), HostNames("b", "a")


@pytest.mark.parametrize(
    ("names", "said", "shown"),
    [
        (OVER_SSH, "the other end: destination /x: Read-only", "u@dtn: destination /x: Read-only"),
        (OVER_SSH, "the other end: stream 2: destination /x: full", "u@dtn: destination /x: full"),
        (OVER_SSH, "stream 1: destination x: full", "destination x: full"),
        (OVER_SSH, "source x: is not there", "source x: is not there"),
        (HERE, "the other end: stream 2: destination /x: Read-only", "destination /x: Read-only"),
        (HERE, "source /x: is not there", "source /x: is not there"),
        (ORDERED, "the other end: destination /x: full", "b: destination /x: full"),
        (ORDERED, "source /x: is not there", "a: source /x: is not there"),
        (HostNames(), "the other end: destination /x: full", "the other end: destination /x: full"),
    ],
)
def test_a_refusal_of_a_kernel_names_the_host_that_it_is_of(
    names: HostNames, said: str, shown: str
) -> None:
    assert names.error(SystemFailure(said)).message == shown
    record = {"status": "failed", "error": {"kind": "system", "message": said}}
    assert names.record(record)["error"]["message"] == shown  # type: ignore[arg-type, index]


def test_what_is_no_refusal_of_a_kernel_keeps_its_words() -> None:
    cut = ProtocolError("stream 1: connection closed")
    assert OVER_SSH.error(cut) is cut
    defect = ProtocolError("the other end failed: a defect in x", 2.0)
    told = OVER_SSH.error(defect)
    assert told.message == "u@dtn: farline on that host failed: a defect in x"
    assert told.retry_after_s == 2.0
    assert HERE.error(defect).message == "this host: farline on that host failed: a defect in x"


def test_a_record_without_a_failure_is_as_it_was() -> None:
    record = {"status": "complete", "error": None}
    assert OVER_SSH.record(record) is record  # type: ignore[arg-type, comparison-overlap]
