"""A copy whose user states no streams takes what was found for the path, while that holds."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from farline.copying import CopyRequest
from farline.copying.connector import ServerConnector
from farline.copying.locations import StandingServer
from farline.copying.source_survey import are_many_and_small
from farline.copying.stream_choice import StreamChoice
from farline.store.paths.choices import StoredChoice, write_choice
from farline.tools.native import Target

FAR = Target("Far.example", 5470)


def found(**more: Any) -> StoredChoice:
    """11 streams were found for this path."""
    choice = StoredChoice(
        "far.example", True, time.time(), 11, None, None, 2e9, 1e9, 3e9, "3 samples", "noise",
        rtt_ms=40.0, here_kernel=os.uname().release,
    )  # fmt: skip
    return replace(choice, **more)


def settled(
    folder: Path, spec: dict[str, Any] | None = None, rtt_s: float = 0.04, **more: Any
) -> tuple[dict[str, Any], list[str]]:
    """The spec as a copy settles it, and what it says."""
    connector = ServerConnector(StandingServer("farline://far.example"))
    choice = StreamChoice(connector, (str(folder),), True, paths=folder / "paths", **more)
    settled_spec: dict[str, Any] = {"copy": {}, **(spec or {})}
    contact = cast("Any", SimpleNamespace(rtt_s=rtt_s, address=None))
    choice._far = FAR.host
    return settled_spec, choice.settle(settled_spec, contact)


def keep(folder: Path, choice: StoredChoice) -> None:
    write_choice(folder / "paths", folder, choice)


def test_what_was_found_is_taken_and_said_in_one_line(tmp_path: Path) -> None:
    keep(tmp_path, found())
    spec, said = settled(tmp_path)
    assert spec["streams"] == 11
    assert said == ["11 streams: tuned for this path (3 samples)"]


def test_files_at_once_that_were_found_are_taken_too(tmp_path: Path) -> None:
    keep(tmp_path, found(concurrency=4))
    assert settled(tmp_path)[0]["copy"] == {"concurrency": 4}
    stated, _ = settled(tmp_path, {"copy": {"concurrency": 2}})
    assert stated["copy"] == {"concurrency": 2}


def test_streams_that_are_stated_stay(tmp_path: Path) -> None:
    keep(tmp_path, found())
    assert settled(tmp_path, {"streams": 3}) == ({"copy": {}, "streams": 3}, [])


@pytest.mark.parametrize(
    ("choice", "rtt_s", "reason"),
    [
        (found(), 0.09, "the RTT was 40 ms and is 90 ms"),
        (found(here_kernel="5.0.0"), 0.04, "kernel was 5.0.0"),
        (found(made_s=time.time() - 40 * 86_400), 0.04, "40 days old"),
    ],
)
def test_what_no_longer_holds_is_not_used_and_said(
    tmp_path: Path, choice: StoredChoice, rtt_s: float, reason: str
) -> None:
    keep(tmp_path, choice)
    spec, said = settled(tmp_path, rtt_s=rtt_s)
    assert said[0].startswith("the tuned 11 streams are not used: ") and reason in said[0]
    assert spec["streams"] != 11
    assert len(said) == 2


def test_another_transport_or_direction_or_damage_is_no_choice(tmp_path: Path) -> None:
    keep(tmp_path, found(transport="udt"))
    assert settled(tmp_path)[0]["streams"] != 11
    keep(tmp_path, found(pushes=False, transport="tcp"))
    assert settled(tmp_path)[0]["streams"] != 11
    (tmp_path / "paths" / "to-far.example.json").write_text("{")
    spec, said = settled(tmp_path)
    assert spec["streams"] != 11
    assert len(said) == 1


def test_no_more_streams_than_ports(tmp_path: Path) -> None:
    keep(tmp_path, found())
    spec, (said,) = settled(tmp_path, most_streams=4)
    assert spec["streams"] == 4
    assert said.endswith("; 4, limited by the number of ports")


def test_what_large_files_gave_is_not_taken_for_many_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As long as the glance takes here.
    patient = partial(are_many_and_small, limit_s=30.0)
    monkeypatch.setattr("farline.copying.stream_choice.are_many_and_small", patient)
    keep(tmp_path, found(file_bytes=1e9))
    for number in range(300):
        (tmp_path / f"{number}").write_text("small")
    assert settled(tmp_path)[0]["streams"] != 11
    keep(tmp_path, found(file_bytes=100.0))
    assert settled(tmp_path)[0]["streams"] == 11


@pytest.mark.parametrize(
    ("more", "used"),
    [({}, True), ({"tune": "off"}, False), ({"keep": False}, False)],
)
def test_a_request_says_whether_what_was_found_is_used(
    tmp_path: Path, more: dict[str, Any], used: bool
) -> None:
    request = CopyRequest.between("here", "far.example:there", store_path=tmp_path, **more)
    assert request.paths == (tmp_path / "paths" if used else None)
    assert CopyRequest.between("here", "there", store_path=tmp_path, **more).paths is None
