"""Slurm itself moves the files of jobs by farline: burst_buffer/lua, as a user who is not root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from farline.testbeds.fixture import MakeBed
from tests.support.slurm import SlurmCluster, slurm_cluster

pytestmark = pytest.mark.netns

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "integrations" / "slurm"
PYTHON = Path("/usr/bin/python3")
"""The system's: everybody may run it."""
NOBODY = 65534
PACKAGES = ("click", "rich", "markdown_it", "mdurl", "pygments")
SETTINGS = "BurstBufferType=burst_buffer/lua\nDebugFlags=BurstBuffer\n"
LIMITS = (
    "Directive=BB_LUA\nStageInTimeout=60\nStageOutTimeout=60\nValidateTimeout=10\nOtherTimeout=20\n"
)


@dataclass
class Site:
    """A cluster of one node, and a folder that everybody may use."""

    cluster: SlurmCluster
    folder: Path

    def submit(self, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        """`sbatch` of a script by nobody."""
        script = self.folder / "job.sh"
        script.write_text(f"#!/bin/sh\n{text}")
        script.chmod(0o755)
        words = ["env", f"SLURM_CONF={self.cluster.folder}/slurm.conf", "setpriv"]
        words += [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sbatch"]
        words += ["--parsable", "-o", str(self.folder / "job.out"), *options, str(script)]
        return self.cluster.head.run(words, timeout=30)

    def state(self, job: str) -> str:
        """What Slurm says of a job, on one line."""
        return self.cluster.asked("scontrol", "-o", "show", "job", job)

    def wait(self, job: str, text: str, timeout_s: float = 90.0) -> str:
        """Until it says this."""
        until = time.monotonic() + timeout_s
        while text not in (said := self.state(job)):
            assert time.monotonic() < until, said + self.cluster.logs()
            time.sleep(0.2)
        return said


@pytest.fixture
def site(testbed: MakeBed) -> Iterator[Site]:
    """A cluster whose stager is farline, installed for everybody."""
    if not PYTHON.exists():
        pytest.skip("no /usr/bin/python3: apt install python3")
    bed = testbed("nodes", k=1, rtt_s="4ms")
    host = bed.hosts["sink-1"]
    beside = {
        "burst_buffer.conf": LIMITS,
        "burst_buffer.lua": (PLUGIN / "burst_buffer.lua").read_text(),
    }
    beside["farline_stage.py"] = (PLUGIN / "farline_stage.py").read_text()
    with slurm_cluster("stages", [host], SETTINGS, beside, environment) as cluster:
        folder = cluster.folder / "work"
        folder.mkdir()
        folder.chmod(0o777)
        yield Site(cluster, folder)


def environment(folder: Path) -> dict[str, str]:
    """Puts farline where everybody may run it; what the controller's environment says of it."""
    library = folder / "lib"
    shutil.copytree(ROOT / "python" / "farline", library / "farline")
    packages = Path(sysconfig.get_paths()["purelib"])
    for name in (*PACKAGES, *(path.name for path in packages.glob("farline-*.dist-info"))):
        shutil.copytree(packages / name, library / name)
    subprocess.run(["chmod", "-R", "a+rX", library], check=True)
    command = f"env PYTHONPATH={library} {PYTHON} -P -m farline"
    return {"FARLINE": command, "FARLINE_STAGE_STATE": str(folder / "stages")}


def test_files_are_there_before_a_job_and_leave_after_it(site: Site) -> None:
    source, out = site.folder / "source", site.folder / "out"
    source.mkdir()
    out.mkdir()
    out.chmod(0o777)
    for number in range(20):
        (source / f"file {number}").write_bytes(os.urandom(10_000))
    staged = site.folder / "staged"
    done = site.submit(
        f"#BB_LUA stage_in --no-store '{source}/' '{staged}/'\n"
        f"#BB_LUA stage_out --no-store '{staged}/result' '{out}/'\n"
        f'count=$(ls "$FARLINE_STAGED_1" | wc -l)\n'
        f"echo $count > {staged}/result; id -u >> {staged}/result\n"
    )
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    site.wait(job, "JobState=COMPLETED")
    until = time.monotonic() + 30
    while not (out / "result").exists():
        assert time.monotonic() < until, site.cluster.logs()
        time.sleep(0.2)
    assert (out / "result").read_text() == f"20\n{NOBODY}\n"
    assert (staged / "file 7").read_bytes() == (source / "file 7").read_bytes()
    assert (staged / "file 7").stat().st_uid == NOBODY, "copied as the owner of the job"


def test_what_cannot_be_copied_is_told_by_sbatch_or_in_the_queue(site: Site) -> None:
    for line, why in (
        ("stage_in /one", "write options, a source and a destination"),
        ("stage_up /one /two", "stage_up: unknown; use stage_in or stage_out"),
        ("stage_in 'a b", "No closing quotation"),
        ("stage_in /one two/", "two/: write the path in full"),
    ):
        done = site.submit(f"#BB_LUA {line}\ntrue\n")
        assert done.returncode != 0 and why in done.stderr, (line, done.stderr)
    # One that cannot be made is seen in the queue.
    done = site.submit(
        f"#BB_LUA stage_in --no-store /no/such/folder/ {site.folder}/staged/\ntrue\n"
    )
    job = done.stdout.strip()
    said = site.wait(job, "slurm_bb_data_in")
    assert "JobState=PENDING" in said and "no such file or folder" in said
    site.cluster.asked("scancel", job)
    site.cluster.wait_until_free(1)


def test_a_cancelled_job_takes_its_copy_with_it(site: Site) -> None:
    source = site.folder / "large"
    source.write_bytes(os.urandom(5_000_000))
    done = site.submit(
        f"#BB_LUA stage_in --no-store --bwlimit 100k {source} {site.folder}/staged/\ntrue\n"
    )
    job = done.stdout.strip()
    running = site.cluster.folder / "stages" / f"{job}.in.pid"
    until = time.monotonic() + 30
    while not running.exists():
        assert time.monotonic() < until, site.state(job) + site.cluster.logs()
        time.sleep(0.1)
    child = Path("/proc") / running.read_text().split()[0]
    assert f"job {job} stage_in" in site.cluster.asked("scontrol", "show", "bbstat")
    site.cluster.asked("scancel", "--hurry", job)
    until = time.monotonic() + 30
    while child.exists():
        assert time.monotonic() < until, site.state(job) + site.cluster.logs()
        time.sleep(0.1)
    assert not (site.folder / "staged/large").exists()
    until = time.monotonic() + 10
    while running.exists():
        assert time.monotonic() < until, site.cluster.logs()
        time.sleep(0.1)
    assert "no copies run" in site.cluster.asked("scontrol", "show", "bbstat")


def test_the_name_of_a_job_makes_nobody_else_its_owner(site: Site) -> None:
    source = site.folder / "source"
    source.write_bytes(b"of nobody")
    for number, name in enumerate(("UserId=root(0)", "a UserId=root(0) b")):
        staged = site.folder / f"staged-{number}"
        line = f"#BB_LUA stage_in --no-store {source} {staged}/"
        done = site.submit(f"{line}\ntrue\n", "-J", name)
        assert done.returncode == 0, done.stderr
        site.wait(done.stdout.strip(), "JobState=COMPLETED")
        assert (staged / "source").stat().st_uid == NOBODY, name
