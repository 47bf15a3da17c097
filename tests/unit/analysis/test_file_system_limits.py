"""The limits of file systems come from their profiles where nobody has stated or described any."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from farline.analysis import comparison
from farline.analysis.comparison import limits_from
from farline.store.file_systems import DirectionCaps, FileSystemProfile
from farline.store.transfers import Selection


def profile(host: str, read_bps: float, write_bps: float | None) -> FileSystemProfile:
    write = None if write_bps is None else DirectionCaps(None, write_bps, write_bps, 4)
    read = DirectionCaps(1e9, None, read_bps, 8)
    return FileSystemProfile(host, "/data", "xfs", 0.0, read, write, {})


def test_profiles_of_the_hosts_that_sent_or_received_are_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cells(_source: Any, wanted: Selection, keys: Any) -> list[Any]:
        if wanted.modality != "E":
            return []
        return [SimpleNamespace(keys={"from_host": "DTN1", "to_host": "dtn2"}, n=3)]

    monkeypatch.setattr(comparison, "cells", cells)
    found = (profile("dtn1", 4e9, 2e9), profile("elsewhere", 1e6, 1e6), profile("dtn2", 3e9, None))
    source: Any = SimpleNamespace(infrastructure=None, profiles=found)
    limits = limits_from(source, Selection(), (), ())
    assert sorted(limits.file_bps) == [2e9, 3e9, 4e9]
    assert limits.origin == "by profiles of file systems"
    stated = limits_from(source, Selection(), (), (7e9,))
    assert (stated.file_bps, stated.origin) == ((7e9,), "as stated")
