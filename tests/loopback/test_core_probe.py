"""Measuring where no package of an extra is installed: summed up, judged and kept all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farline.store import Store
from tests.support.serving import serving
from tests.unit.test_core_packages import core_farline


@pytest.mark.parametrize("transport", ["tcp", "udp", "udt", "rbudp", "quic"])
def test_a_probe_is_summed_up_judged_and_kept(tmp_path: Path, transport: str) -> None:
    words = ["--transport", transport, "-b", "20Mbit/s", "-n", "2MB"]
    with serving(tmp_path) as server:
        done = core_farline(tmp_path, "probe", server.ticket, *words)
        asked = core_farline(tmp_path, "probe", server.ticket, *words, "--json", "-R")
    assert done.returncode == 0, done.stderr
    assert "limited by rate: " in done.stdout
    assert "0.00-" in done.stdout, "its intervals"
    record = json.loads(asked.stdout)
    assert record["summary"]["reverse"]["total_bps"] == pytest.approx(20e6, rel=0.1)
    kept = [row["run_id"] for row in Store(tmp_path / "store").runs().to_pylist()]
    assert len(kept) == 2 and record["run_id"] in kept


def test_the_bounds_of_a_receiver_are_measured_in_the_core(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        done = core_farline(tmp_path, "app-perf", server.ticket, "-n", "1MB", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "application" in done.stdout
