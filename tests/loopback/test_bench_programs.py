"""The benches' datagram programs towards each other: everything that was sent is accounted for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "benches" / "_emulator"
COUNT, PAYLOAD, SEGMENTS = 1010, 500, 40

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: it forces large socket buffers"
)


@pytest.mark.parametrize("keep", ["times", "numbers", "nothing"])
def test_every_datagram_is_caught(keep: str, tmp_path: Path) -> None:
    output = tmp_path / "caught.npz"
    command = [sys.executable, str(PROGRAMS / "catcher.py"), str(output), "--keep", keep]
    command += ["--port", "7391"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as catcher:
        try:
            assert catcher.stdout is not None
            assert catcher.stdout.readline() == "ready\n"
            sent = blast()
            catcher.send_signal(signal.SIGTERM)
            said = json.loads(catcher.communicate(timeout=20)[0])
        finally:
            catcher.kill()
    assert sent["sent"] == said["datagrams"] == COUNT
    assert said["dropped"] == 0
    check(keep, output)


def blast() -> dict[str, int]:
    """Sends numbered datagrams; the last call is not full."""
    command = [sys.executable, str(PROGRAMS / "blaster.py"), "127.0.0.1", "--port", "7391"]
    size = ["--payload", str(PAYLOAD), "--segments", str(SEGMENTS), "--count", str(COUNT)]
    pace = ["--datagrams-per-s", "20000", "--numbered"]
    done = subprocess.run(
        [*command, *size, *pace], capture_output=True, text=True, timeout=20, check=True
    )
    said: dict[str, int] = json.loads(done.stdout)
    return said


def check(keep: str, output: Path) -> None:
    """What was kept agrees with what was sent."""
    with np.load(output) as arrays:
        if keep == "numbers":
            assert (arrays["first"].tolist(), arrays["length"].tolist()) == ([0], [COUNT])
        if keep == "times":
            assert int(arrays["datagrams"].sum()) == COUNT
            assert int(arrays["payload_bytes"].sum()) == COUNT * PAYLOAD
            assert (np.diff(arrays["at_ns"]) >= 0).all()
        if keep == "nothing":
            assert arrays.files == []
