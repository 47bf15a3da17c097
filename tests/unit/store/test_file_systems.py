"""Profiles of file systems: what is kept is found by host and mount, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from farline.store import Store
from farline.store.file_systems import (
    all_profiles,
    profile_below,
    profile_of,
    profile_path,
    read_profile,
    write_profile,
)


def cap(rate: float) -> dict[str, float]:
    return {"rate_bps": rate, "low_bps": 0.9 * rate, "high_bps": 1.1 * rate}


def document(mount: str = "/data", host: str = "dtn1", **caps: Any) -> dict[str, Any]:
    directions = {"read": None, "write": None, **caps}
    return {
        "kind": "file-system-profile", "schema": 1, "host": host, "mount": mount,
        "file_system": "xfs", "measured_s": 1_795_651_200.0, "caps": directions,
    }  # fmt: skip


def direction(process: float | None, total: float | None, best: float = 5e8) -> dict[str, Any]:
    return {
        "process": process and cap(process), "total": total and cap(total), "best_bps": best,
        "best_processes": 4,
    }  # fmt: skip


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    layout = store.layout
    layout.create()
    kept = write_profile(
        layout.file_systems, layout.temp, document("/a b/ü", write=direction(1e8, 4e8))
    )
    found = read_profile(profile_path(layout.file_systems, "dtn1", "/a b/ü"))
    assert kept.parent == layout.file_systems and found is not None
    assert found.write is not None and found.read is None
    assert [found.write.of_processes(n) for n in (1, 2, 8)] == [1e8, 2e8, 4e8]
    assert found.name == "the profile of /a b/ü (xfs, 26 Nov 2026)"
    write_profile(layout.file_systems, layout.temp, document("/a b/ü", read=direction(None, 9e8)))
    (now,) = all_profiles(layout.file_systems)
    assert now.read is not None and now.write is not None, "a direction that was not measured stays"
    assert now.read.of_processes(1) == 9e8


def test_where_no_cap_was_reached_the_best_that_was_seen_counts() -> None:
    found = profile_of(document(read=direction(2e8, None, best=7e8))).read
    assert found is not None
    assert (found.most_bps, found.of_processes(1), found.of_processes(9)) == (7e8, 2e8, 7e8)


@pytest.mark.parametrize(
    "change",
    [{"kind": "x"}, {"schema": 2}, {"caps": {"read": {}}}, {"measured_s": None},
     {"caps": {"read": direction(-1.0, None)}}],
)  # fmt: skip
def test_what_is_none_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document(read=direction(1e8, 2e8)) | change))
    assert read_profile(path) is None
    assert read_profile(tmp_path / "absent") is None
    path.write_text("[" * 10_000)
    assert read_profile(path) is None
    assert all_profiles(tmp_path) == []


def test_another_hosts_path_belongs_to_the_closest_mount_above_it(tmp_path: Path) -> None:
    temp = tmp_path / "tmp"
    temp.mkdir()
    for mount in ("/", "/data", "/data/deep"):
        write_profile(tmp_path / "f", temp, document(mount, read=direction(1e8, 2e8)))
    for path, mount in {"/data/x": "/data", "/data/deep/y": "/data/deep", "/database": "/"}.items():
        found = profile_below(tmp_path / "f", "DTN1", path)
        assert found is not None and found.mount == mount
    assert profile_below(tmp_path / "f", "other", "/data/x") is None
    assert profile_below(tmp_path / "f", "dtn1", "relative") is None
