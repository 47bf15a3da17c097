"""What driving a tool costs beside running it by hand: the same command, interleaved.

`ours` is a whole driven run: server started and ended, command, figures, proof and record. `peer`
starts the same server, waits until it listens, runs the same client and ends the server, as a
script would. Rows: seconds a run, and seconds that driving added, of 0.1 that it may.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from _contract import Row, finish, interleave, row
from _program import program
from farline.campaign.settings import sampled_spec
from farline.drivers import DrivenTool, Here
from farline.tools import ignore_event, never_stop

MOST_ADDED_S = 0.1
TOTAL_BYTES = 64 << 20
FILE_BYTES = 1 << 20


def _driven(document: dict[str, object]) -> float:
    """Seconds of a driven run."""
    spec = sampled_spec(document)
    begun = time.perf_counter()
    tool = DrivenTool(str(document["tool"]), Here())
    result = tool.run("127.0.0.1", spec, ignore_event, never_stop)
    took_s = time.perf_counter() - begun
    if result.record["status"] != "complete":
        raise SystemExit(f"{document['tool']}: {result.record.get('error')}")
    return took_s


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    tables = [Path(f"/proc/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6")]
    return any(f":{port:04X} " in table for table in tables)


def _by_hand(server: list[str], client: list[str], port: int) -> float:
    """Seconds of the same by a script."""
    begun = time.perf_counter()
    running = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not _listens(port):
        time.sleep(0.005)
    subprocess.run(client, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    running.terminate()
    running.wait()
    return time.perf_counter() - begun


def _iperf3() -> float:
    port = _free_port()
    words = ["iperf3", "-p", str(port)]
    return _by_hand([*words, "-s"], [*words, "-c", "127.0.0.1", "-n", str(TOTAL_BYTES), "-J"], port)


def _rsync(folder: Path) -> float:
    port = _free_port()
    config = folder / "rsyncd"
    owner = f"uid={os.getuid()}\ngid={os.getgid()}\n" if os.getuid() == 0 else ""
    module = f"[m]\npath={folder}\nread only=no\n"
    config.write_text(f"use chroot=no\n{owner}{module}", encoding="ascii")
    server = ["rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={port}"]
    shutil.rmtree(folder / "hand", ignore_errors=True)
    client = ["rsync", "-rltpW", f"{folder}/source/", f"rsync://127.0.0.1:{port}/m/hand/"]
    return _by_hand([*server, "--address=127.0.0.1"], client, port)


def _rsync_driven(folder: Path) -> float:
    shutil.rmtree(folder / "driven", ignore_errors=True)
    copy = {"sources": [f"{folder}/source/"], "destination": str(folder / "driven")}
    return _driven({"tool": "rsync", "copy": copy})


def rows(pairs: int) -> Iterator[Row]:
    """Two rows of each tool."""
    with tempfile.TemporaryDirectory(prefix="farline-bench-") as name:
        folder = Path(name)
        (folder / "source").mkdir()
        (folder / "source" / "file").write_bytes(bytes(FILE_BYTES))
        cases: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
            "iperf3": (lambda: _driven({"tool": "iperf3", "total_bytes": TOTAL_BYTES}), _iperf3),
            "rsync": (lambda: _rsync_driven(folder), lambda: _rsync(folder)),
        }
        for case, (ours, peer) in cases.items():
            ours(), peer()  # what is imported and read for the first time
            runs = interleave(ours, peer, pairs)
            yield row(f"{case} run", "s", runs, less_is_better=True, must=0.0)
            added_s = statistics.median(ours_s - peer_s for ours_s, peer_s in runs)
            allowed = [(max(added_s, 1e-3), MOST_ADDED_S)] * len(runs)
            yield row(f"{case} added", "s", allowed, less_is_better=True)


def main() -> int:
    """Measures, prints, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    return finish("drivers-overhead", rows(parser.parse_args().pairs))


if __name__ == "__main__":
    program(main, any_build=True)  # nothing of the engine runs in it
