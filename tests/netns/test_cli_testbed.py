"""`farline testbed` as typed: a bed comes up, programs run in it as they would alone, it goes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.netns.conftest import FARLINE, Ending

pytestmark = pytest.mark.netns

NAME = f"cli-{os.getpid()}"


def farline(*words: str | Path, check: int | None = 0, **options: Any) -> Any:
    """A finished command; `check` is the exit code that it must have."""
    command = [FARLINE, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert check is None or done.returncode == check, done.stderr
    return done


@pytest.fixture(scope="module")
def bed() -> Iterator[str]:
    """A testbed of two hosts, 100 Mbit/s and 20 ms apart."""
    farline("testbed", "up", "back-to-back", "--name", NAME, "--rate", "100Mbit", "--rtt", "20ms")
    try:
        yield NAME
    finally:
        farline("testbed", "down", NAME)
        assert NAME not in farline("testbed", "list").stdout


def test_a_bed_is_listed_and_described(bed: str) -> None:
    listed = json.loads(farline("testbed", "list", "--json").stdout)["testbeds"]
    assert bed in [one["name"] for one in listed]
    shown = json.loads(farline("testbed", "status", bed, "--json").stdout)
    assert [host["name"] for host in shown["hosts"]] == ["client", "server"]
    assert shown["counters"]["links"][0]["rate_bps"] == 100_000_000
    text = farline("testbed", "status", bed).stdout
    assert "100 Mbit/s" in text and "10.0 ms" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_name_is_taken_once(bed: str) -> None:
    done = farline("testbed", "up", "back-to-back", "--name", bed, check=1)
    assert f"farline testbed down {bed}" in done.stderr


def test_exit_codes_input_and_output_are_the_programs_own(bed: str) -> None:
    run = ("testbed", "exec", bed, "client", "--")
    assert farline(*run, "sh", "-c", "exit 42", check=42).stdout == ""
    assert farline(*run, "cat", input="through\n").stdout == "through\n"
    assert farline(*run, "uname", "-n").stdout.strip() == "client"
    assert (
        "is not a host of" in farline("testbed", "exec", bed, "moon", "--", "true", check=1).stderr
    )


def test_signals_reach_the_program_which_is_this_very_process(bed: str, ending: Ending) -> None:
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(30)"
    inside = [sys.executable, "-c", script]
    command = [str(FARLINE), "testbed", "exec", bed, "client", "--", *inside]
    process = ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM


def test_a_stamp_is_about_the_program(bed: str) -> None:
    done = farline("testbed", "exec", "--stamp", bed, "client", "--", "sh", "-c", "exit 3", check=3)
    (line,) = [one for one in done.stderr.splitlines() if "valid: " in one]
    said = r"farline: (valid: \d+ deliveries, late by .* most|not valid: .+)"
    assert re.fullmatch(said, line), line


def test_a_link_changes_is_cut_and_restored(bed: str) -> None:
    said = farline("testbed", "change", bed, "--rtt", "30ms", "--loss", "0.25").stdout
    assert said == "link cable: 100 Mbit/s, RTT 30.0 ms, loss 0.25, MTU 9000\n"
    farline("testbed", "cut", bed, "cable")
    connect = "import socket; socket.create_connection(('server', 9), timeout=0.3)"
    lost = farline(
        "testbed", "exec", bed, "client", "--", sys.executable, "-c", connect, check=None
    )
    assert "timed out" in lost.stderr
    farline("testbed", "restore", bed)
    farline("testbed", "change", bed, "--rtt", "2ms", "--loss", "0")
    there = farline(
        "testbed", "exec", bed, "client", "--", sys.executable, "-c", connect, check=None
    )
    assert "refused" in there.stderr
    unknown = farline("testbed", "change", bed, "moon", "--rtt", "1ms", check=1).stderr
    assert "'moon' is not a link of" in unknown


def test_what_a_link_carries_is_written_as_pcap(bed: str, tmp_path: Path, ending: Ending) -> None:
    path = tmp_path / "link.pcap"
    command = [str(FARLINE), "testbed", "capture", bed, str(path)]
    capture = ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    until = time.monotonic() + 20
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    connect = "import socket; socket.create_connection(('server', 9), timeout=2)"
    farline("testbed", "exec", bed, "client", "--", sys.executable, "-c", connect, check=None)
    capture.send_signal(signal.SIGINT)
    out, _ = capture.communicate(timeout=20)
    assert ", 0 missed" in out and " 0 packets" not in out
    # One SYN and its refusal at least: two packets of 40 bytes behind a header of 24.
    assert path.stat().st_size >= 24 + 2 * (16 + 40)
