"""What a copy is told of the disks at its ends."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from farline.copying.locations import read_endpoints
from farline.copying.storage_limits import FOLDER, limits_of, near_limits
from farline.store.file_systems import profile_path
from farline.tools.mounts import mount_of
from farline.tuning.search import Sample, cap_of
from farline.tuning.situation import Setting


def keep(store: Path, host: str, mount: str, process: float, total: float) -> None:
    def cap(rate: float) -> dict[str, float]:
        return {"rate_bps": rate, "low_bps": rate, "high_bps": rate}

    one: dict[str, Any] = {"process": cap(process), "total": cap(total), "best_bps": total,
                           "best_processes": 4}  # fmt: skip
    document = {
        "kind": "file-system-profile", "schema": 1, "host": host, "mount": mount,
        "file_system": "xfs", "measured_s": 1_795_651_200.0, "caps": {"read": one, "write": one},
    }  # fmt: skip
    (store / FOLDER).mkdir(parents=True, exist_ok=True)
    profile_path(store / FOLDER, host, mount).write_text(json.dumps(document))


def test_both_ends_are_looked_up_where_they_are(tmp_path: Path) -> None:
    mount = mount_of(tmp_path)
    assert mount is not None
    store = tmp_path / "store"
    keep(store, socket.gethostname(), mount.point, 3e8, 1.2e9)
    keep(store, "dtn2", "/data", 2e9, 2e9)
    ends = read_endpoints((str(tmp_path / "source"), "user@dtn2:/data/in"))
    limits = limits_of(ends, store)
    assert [(one.role, one.rate_bps) for one in limits] == [("sender", 3e8), ("receiver", 2e9)]
    assert limits[0].text == (
        f"disk reads up to 300 Mbit/s by one process, 1.20 Gbit/s in all, by the profile of "
        f"{mount.point} (xfs, 26 Nov 2026)"
    )
    assert limits[1].text == (
        "disk writes up to 2.00 Gbit/s by the profile of /data (xfs, 26 Nov 2026)"
    )
    assert limits_of(ends, tmp_path / "empty") == []


def test_a_limit_is_named_when_a_copy_is_near_it_or_its_verdict_is_a_disk(tmp_path: Path) -> None:
    keep(tmp_path, "dtn2", "/data", 2e9, 2e9)
    limits = limits_of(read_endpoints(("here", "dtn2:/data/in")), tmp_path)
    assert near_limits(limits, 1e9, "path") == []
    assert near_limits(limits, 1e9, "sender-disk") == []
    assert len(near_limits(limits, 1.7e9, "path")) == 1
    assert len(near_limits(limits, 1e6, "receiver-disk")) == 1


@pytest.mark.parametrize(("rate_bps", "reason"), [(0.5e9, None), (0.99e9, "cap:disk")])
def test_a_search_ends_where_a_sample_reaches_the_disk(rate_bps: float, reason: str | None) -> None:
    sample = Sample(Setting(8), rate_bps, 1.0, 1, None, False)
    assert cap_of(sample, 10e9, 1e9) == reason
