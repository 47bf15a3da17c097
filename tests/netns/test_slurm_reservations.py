"""Slurm keeps what users of the portal reserve: licences, for their time, and given back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from farline.testbeds.fixture import MakeBed
from tests.support.slurm import SlurmCluster, slurm_cluster

pytestmark = pytest.mark.netns

PROGRAM = Path(__file__).resolve().parents[2] / "integrations/reservations/farline_reserve_slurm.py"


@pytest.fixture
def cluster(testbed: MakeBed) -> Iterator[SlurmCluster]:
    """A cluster of one node, with 100 licences of a line."""
    bed = testbed("nodes", k=1, rtt_s="4ms")
    with slurm_cluster("lab", [bed.hosts["sink-1"]]) as found:
        yield found


def ask(cluster: SlurmCluster, act: str, mbps: float, **changes: Any) -> tuple[int, str, str]:
    """What the program answers, as the portal calls it."""
    now = datetime.now(UTC)
    reservation = {
        "id": "ab12", "rate_bps": int(mbps * 1e6), "start": now.isoformat(),
        "end": (now + timedelta(hours=1)).isoformat(), **changes,
    }  # fmt: skip
    scontrol = cluster.folder / "scontrol"
    scontrol.write_text(f'#!/bin/sh\nSLURM_CONF={cluster.folder}/slurm.conf exec scontrol "$@"\n')
    scontrol.chmod(0o755)
    words = [
        sys.executable,
        str(PROGRAM),
        "--license",
        "wan_gbps",
        "--scontrol",
        str(scontrol),
        act,
    ]
    done = subprocess.run(
        cluster.head.command(words, cwd="/"),
        input=json.dumps({"reservation": reservation}), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_a_reservation_keeps_its_licences_from_jobs_until_it_is_released(
    cluster: SlurmCluster,
) -> None:
    assert ask(cluster, "reserve", 80) == (0, "farline_ab12", "")
    assert ask(cluster, "reserve", 80) == (0, "farline_ab12", ""), "asked twice"
    said = cluster.asked("scontrol", "--oneliner", "show", "reservation", "farline_ab12")
    assert "Licenses=wan_gbps:80" in said and "State=ACTIVE" in said
    job = cluster.asked("sbatch", "--parsable", "-L", "wan_gbps:30", "-o", "/dev/null",
                        "--wrap", "true").strip()  # fmt: skip
    time.sleep(3)
    assert "JobState=PENDING" in cluster.asked("scontrol", "-o", "show", "job", job)
    assert ask(cluster, "release", 80) == (0, "", "")
    assert ask(cluster, "release", 80) == (0, "", ""), "asked twice"
    until = time.monotonic() + 60
    while "JobState=COMPLETED" not in (said := cluster.asked("scontrol", "-o", "show", "job", job)):
        assert time.monotonic() < until, said
        time.sleep(0.3)


def test_what_slurm_does_not_have_is_refused_in_its_words(cluster: SlurmCluster) -> None:
    code, _, said = ask(cluster, "reserve", 500, id="cd34")
    assert code == 1 and "icense" in said, said


def test_nothing_is_said_to_be_given_back_while_slurm_does_not_answer(
    cluster: SlurmCluster,
) -> None:
    conf = cluster.folder / "slurm.conf"
    text = conf.read_text()
    conf.write_text(text.replace("SlurmctldPort=6817", "SlurmctldPort=6997"))
    try:
        code, _, said = ask(cluster, "release", 80)
    finally:
        conf.write_text(text)
    assert code == 1 and "Unable to contact" in said, said
    assert ask(cluster, "release", 80) == (0, "", "")
