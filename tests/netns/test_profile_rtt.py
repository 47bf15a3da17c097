"""`farline profile --rtt`: one line sweeps a round-trip time, whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from farline.spec.link_change import same_but_for, touched_names, way
from farline.store import Store
from farline.testbeds import Testbed, list_beds, load
from farline.testbeds.state import DIRECTORY_VARIABLE
from tests.netns.conftest import FARLINE, Ending

pytestmark = pytest.mark.netns

SWEEP = ("--link-rate", "200Mbit", "-t", "0.5", "-C", "reno", "--count-invalid")


def command(store: Path, *words: str) -> list[str]:
    return [str(FARLINE), "profile", *words, "--store", str(store)]


@pytest.fixture(autouse=True)
def own_directory(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beds of this test alone: other tests have some of these names at the same time."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path_factory.mktemp("beds")))


def own_beds() -> set[str]:
    return {bed.name for bed in list_beds() if bed.name.startswith("profile-")}


def profile(store: Path, *words: str) -> dict[str, Any]:
    """The results of a campaign that must finish."""
    done = subprocess.run(
        command(store, *words, "--json"), capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.alone
def test_a_sweep_leaves_records_with_path_and_links_and_nothing_else(tmp_path: Path) -> None:
    before = own_beds()
    results = profile(tmp_path, "--rtt", "0,20ms", *SWEEP, "--repetitions", "2")
    assert results["stopped"] == "finished"
    assert own_beds() <= before
    rates = {row["varied"]["path.rtt_s"]: row["mean_bps"] for row in results["settings"]}
    assert rates.keys() == {0.0, 0.02}
    assert 170e6 < rates[0.0] < 200e6
    store = Store(tmp_path)
    rows = store.runs().to_pylist()
    assert {row["path.rtt_s"] for row in rows} == {0.0, 0.02}
    assert all(row["valid"] is not None and row["path.rate_bps"] == 200_000_000 for row in rows)
    assert all(row["client_host"] == "client" and row["server_host"] == "server" for row in rows)
    far = [row for row in rows if row["path.rtt_s"] == 0.02]
    assert all(20_000 <= row["min_rtt_us"] < 25_000 for row in far)
    links = store.link_samples([row["run_id"] for row in rows])
    assert set(links["run_id"].to_pylist()) == {row["run_id"] for row in rows}
    assert max(links["delay_ns"].to_pylist()) == 10_000_000


@pytest.mark.alone
def test_a_users_testbed_is_as_it_was_after_a_sweep(testbed: Any, tmp_path: Path) -> None:
    """A queue of one product holds packets without a round trip too, and goes when it is over."""
    bed = testbed("back-to-back", rate_bps="1Gbit", rtt_s="10ms")
    before = bed.topology()
    words = (
        "--testbed",
        bed.name,
        "--rtt",
        "0,20ms",
        "--link-queue-bdp",
        "1",
        "--repetitions",
        "1",
    )
    results = profile(tmp_path, *words, *SWEEP)
    rates = {row["varied"]["path.rtt_s"]: row["mean_bps"] for row in results["settings"]}
    assert 170e6 < rates[0.0] < 200e6
    rows = Store(tmp_path).runs().to_pylist()
    assert all(row["path.capacity_bdp"] == 1.0 for row in rows)
    after = bed.topology()
    touched = touched_names(("capacity_bdp",))
    assert same_but_for(before, after, [bed.main_link], touched)
    assert way(after["links"][0], "reverse")["queue"]["capacity_bdp"] == 1.0


def test_a_running_testbed_that_nobody_named_is_left_alone(tmp_path: Path) -> None:
    with Testbed.up(load("back-to-back"), name="back-to-back") as bed:
        results = profile(tmp_path, "--rtt", "1ms,5ms", *SWEEP, "--repetitions", "1")
        assert results["stopped"] == "finished"
        assert bed.topology() == load("back-to-back")
    rows = Store(tmp_path).runs().to_pylist()
    assert {row["path.testbed"] == "back-to-back" for row in rows} == {False}


def test_an_interrupted_sweep_takes_its_testbed_down_and_is_resumed(
    tmp_path: Path, ending: Ending
) -> None:
    before = own_beds()
    words = command(tmp_path, "--rtt", "1ms,5ms", *SWEEP, "--repetitions", "3")
    process = ending(subprocess.Popen(words, stderr=subprocess.PIPE, text=True, process_group=0))
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("run 2:"):
            os.killpg(process.pid, signal.SIGINT)
            break
    said += process.stderr.readlines()
    assert process.wait(30) == 130
    assert any("resume with: farline profile --resume" in line for line in said), said
    assert own_beds() <= before
    done = len(Store(tmp_path).runs())
    assert 2 <= done < 9
    results = profile(tmp_path, "--resume")
    assert results["stopped"] == "finished"
    assert [row["runs"] for row in results["settings"]] == [6, 3]


def test_a_killed_sweep_leaves_no_testbed(tmp_path: Path, ending: Ending) -> None:
    before = own_beds()
    words = command(tmp_path, "--rtt", "1ms", *SWEEP, "--repetitions", "50")
    process = ending(subprocess.Popen(words, stderr=subprocess.PIPE, text=True))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("run 1:"):
            break
    process.kill()
    process.wait()
    until = time.monotonic() + 20
    while own_beds() - before and time.monotonic() < until:
        time.sleep(0.1)
    assert own_beds() <= before


def test_a_probe_inside_a_testbed_records_its_path(testbed: Any, tmp_path: Path) -> None:
    bed = testbed("back-to-back")
    address, state = bed.hosts["server"].address, tmp_path / "state"
    words = ["serve", "--listen", address, "--state-dir", state, "--json", "--anonymous"]
    server = bed.hosts["server"].popen([FARLINE, *words], stdout=subprocess.PIPE)
    try:
        server.stdout.readline()
        words = ["probe", address, "-t", "0.3", "-C", "reno", "--json", "--store", tmp_path]
        done = bed.hosts["client"].run([FARLINE, *words], timeout=60, check=True)
    finally:
        server.terminate()
        server.communicate(timeout=15)
    path = json.loads(done.stdout)["path"]
    assert (path["client_host"], path["server_host"]) == ("client", "server")
    assert path["stamp"]["deliveries"] > 0
    assert Store(tmp_path).link_samples([json.loads(done.stdout)["run_id"]]).num_rows > 0
