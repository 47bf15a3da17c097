"""Trials that are no campaign: a session on loopback, disks by themselves, nodes side by side.

A trial leaves a document; items judge it as they judge campaigns. Its commands are what a person
would type for the same.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import FarlineError, InterruptedRun, SystemFailure

if TYPE_CHECKING:
    from farline.reproduce.plans import Scale
    from farline.reproduce.shell import Asked

Make = Callable[[Path, "Scale", "Asked"], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial. `make` takes the folder of the results and the scale."""

    name: str
    words: str
    commands: Sequence[str]
    make: Make


def session(folder: Path, scale: Scale, asked: Asked) -> Mapping[str, Any]:
    """Two runs and a refused one against one server: stages, records, and that it serves again."""
    from farline.api.run import probe
    from farline.api.serving import serve
    from farline.tools.events import Stage

    store = folder / "store"
    duration = "0.3s" if scale == "quick" else "3s"
    with serve() as server:
        ticket = server.ticket()
        first = probe(ticket, transport="udt", duration_s=duration, streams=2, store=store)
        stages = [event.name for event in first if isinstance(event, Stage)]
        record = dict(first.wait().record)
        failure = _refusal(probe, ticket, store)
        again = probe(ticket, transport="udt", duration_s=duration, store=store).wait()
        return {
            "stages": list(dict.fromkeys(stages)),
            "record": record,
            "failure": failure,
            "again": again.record["status"],
        }


def _refusal(probe: Callable[..., Any], ticket: str, store: Path) -> str:
    """What the client learns of a run that the server's end cannot have."""
    try:
        probe(ticket, transport="tcp", duration_s="0.1s", store=store,
              pairs=[{"source": "127.0.0.1", "destination": "192.0.2.1"}]).wait()  # fmt: skip
    except FarlineError as error:
        return error.message
    return ""


DISKS = ("/var/tmp", "/dev/shm")
PROCESSES = (1, 2, 4, 8)


def disks(folder: Path, scale: Scale, asked: Asked) -> Mapping[str, Any]:
    """Rates at which 1 to 8 processes of `dd` write and read files together, in bit/s."""
    size_mib = 64 if scale == "quick" else 1024
    found: dict[str, Any] = {}
    for place in DISKS:
        if not Path(place).is_dir():
            continue
        with tempfile.TemporaryDirectory(prefix="farline-reproduce-", dir=place) as name:
            for count in PROCESSES:
                if asked():
                    raise InterruptedRun("stopped; --resume continues where this ended")
                found.setdefault(place, {})[str(count)] = _disk_rates(Path(name), count, size_mib)
    return found


def _disk_rates(folder: Path, count: int, size_mib: int) -> Mapping[str, float]:
    """Writing past the cache where the file system can, else to it and onto the device."""
    paths = [folder / f"part-{number}" for number in range(count)]
    each = max(1, size_mib // count)
    direct = _takes_direct(folder)
    write = [
        ["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={each}",
         *(["oflag=direct"] if direct else []), "conv=fsync"] for path in paths
    ]  # fmt: skip
    read = [
        ["dd", f"if={path}", "of=/dev/null", "bs=1M", *(["iflag=direct"] if direct else [])]
        for path in paths
    ]
    return {"write_bps": _together_bps(write, folder), "read_bps": _together_bps(read, folder)}


def _takes_direct(folder: Path) -> bool:
    probe = ["dd", "if=/dev/zero", f"of={folder / 'probe'}", "bs=4096", "count=1", "oflag=direct"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def _together_bps(commands: Sequence[Sequence[str]], folder: Path) -> float:
    """All bytes of `dd`s that run at once over the time of the slowest, by what they print."""
    started = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"})
        for command in commands
    ]  # fmt: skip
    moved, longest = 0, 0.0
    for process in started:
        said = process.communicate()[1]
        if process.returncode:
            raise SystemFailure(f"dd in {folder}: {said.strip().splitlines()[-1]}")
        size, seconds = dd_figures(said)
        moved, longest = moved + size, max(longest, seconds)
    return 8 * moved / longest


def dd_figures(text: str) -> tuple[int, float]:
    """Bytes and seconds of what dd prints: `67108864 bytes (67 MB, 64 MiB) copied, 0.05 s, ...`.

    Raises:
        SystemFailure: when it prints something else.
    """
    found = re.search(r"(\d+) bytes .*copied, ([0-9.e+-]+) s", text)
    if found is None:
        raise SystemFailure(f"dd printed no figures: {text.strip()[:80]!r}")
    return int(found[1]), max(float(found[2]), 1e-6)


NODES = (1, 2, 4, 8, 16)
NODE_NIC_BPS, PATH_BPS = 10e6, 60e6
NODE_STREAMS = 4
NODE_REPETITIONS = 3
NODE_WINDOW, DEFAULT_WINDOW = "32K", "16K"
"""Of each stream: twice what fills an interface with four. What a socket holds at the end of a
sample has not arrived."""
SAMPLES_MB = {"quick": (1.0, 2.0, 4.0, 8.0), "full": (20.0, 40.0, 80.0, 160.0)}
"""Of each node; as 2, 4, 8 and 16 GB over rate and round-trip time in the full scale."""


def nodes(folder: Path, scale: Scale, asked: Asked) -> Mapping[str, Any]:
    """1 to 16 pairs of nodes at once, for each size of sample: aggregate throughputs in bit/s.

    The aggregate is all bytes that arrived over the time until the last node has ended, as a
    striped transfer ends with its slowest stripe. Bytes that were sent say nothing here: a sample
    of the quick scale fits the buffers of its sockets.
    """
    found: dict[str, Any] = {}
    with _nodes_up() as bed:
        for size_mb in SAMPLES_MB[scale]:
            for count in NODES:
                if asked():
                    raise InterruptedRun("stopped; --resume continues where this ended")
                rates = [_striped_bps(bed, count, size_mb * 1e6) for _ in range(NODE_REPETITIONS)]
                found.setdefault(f"{size_mb:g}", {})[str(count)] = rates
        found["default"] = _default_bps(bed)
    return found


COPY_NODES = (4, 8, 16)
COPY_MIB = {"quick": 128, "full": 1024}
"""One file: 18 s of the line in the quick scale."""


def node_copies(folder: Path, scale: Scale, asked: Asked) -> Mapping[str, Any]:
    """The same nodes and line carry one file by one copy of farline: bit/s from the time when it
    has begun on all nodes until the file has its name."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="farline-reproduce-") as name, _nodes_up() as bed:
        top = Path(name)
        (top / "source").mkdir()
        with (top / "source" / "file").open("wb") as file:
            for _ in range(COPY_MIB[scale]):
                file.write(os.urandom(1 << 20))
        for count in COPY_NODES:
            if asked():
                raise InterruptedRun("stopped; --resume continues where this ended")
            found[str(count)] = [_copied_bps(bed, count, top)]
        found["default"] = _default_bps(bed)
    return found


def _copied_bps(bed: Any, count: int, top: Path) -> float:
    shutil.rmtree(top / "copy", ignore_errors=True)
    pool = f"testbed:{bed.name}"
    words = ["copy", "--json", "--no-store", "--no-progress", "--congestion", "cubic"]
    words += ["--streams", str(NODE_STREAMS)]
    ends = [f"{pool}:source-[1-{count}]{top}/source/", f"{pool}:sink-[1-{count}]{top}/copy"]
    done = subprocess.run(
        [sys.executable, "-m", "farline", *words, *ends], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemFailure(f"farline copy: {done.stderr.strip().splitlines()[-1:]}")
    if not filecmp.cmp(top / "source" / "file", top / "copy" / "file", shallow=False):
        raise SystemFailure("farline copy: the copy differs")
    record = json.loads(done.stdout)
    return float(8 * record["copy"]["copied"]["bytes"] / record["run_s"])


@contextmanager
def _nodes_up() -> Iterator[Any]:
    """The testbed with an iperf3 server on every sink.

    Raises:
        SystemFailure: when iperf3 is not installed, or the testbed cannot be had.
    """
    from farline.testbeds import Testbed, load

    if shutil.which("iperf3") is None:
        raise SystemFailure("iperf3 is not installed; install the package iperf3")
    settings = {"k": max(NODES), "rate_bps": int(PATH_BPS), "rtt_s": "20ms"}
    with Testbed.up(load("nodes", **settings)) as bed:
        for link in bed.topology()["links"]:
            if link["name"] != bed.main_link:
                bed.change(link["name"], rate_bps=int(NODE_NIC_BPS))
        _serve_on(bed)
        yield bed


def _default_bps(bed: Any) -> float:
    """One stream of one node with a window as it was by default."""
    return statistics.median(
        _striped_bps(bed, 1, 1e6, streams=1, window=DEFAULT_WINDOW) for _ in range(3)
    )


def _serve_on(bed: Any) -> None:
    """An iperf3 server on every sink; they end with the testbed."""
    for number in range(1, max(NODES) + 1):
        bed.hosts[f"sink-{number}"].popen(
            ["iperf3", "-s"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip


def _striped_bps(
    bed: Any, count: int, each_bytes: float, streams: int = NODE_STREAMS, window: str = NODE_WINDOW
) -> float:
    begun = time.monotonic()
    clients = [
        bed.hosts[f"source-{number}"].popen(
            ["iperf3", "-c", f"sink-{number}", "-P", str(streams), "-C", "cubic",
             "-n", str(round(each_bytes / streams)), "-J", "-w", window],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for number in range(1, count + 1)
    ]  # fmt: skip
    arrived = 0
    for client in clients:
        said = str(client.communicate()[0])
        if client.returncode:
            raise SystemFailure(f"iperf3 between nodes: {said.strip()[-120:]}")
        arrived += received_bytes(said)
    return 8 * arrived / (time.monotonic() - begun)


def received_bytes(said: str) -> int:
    """What arrived, by what iperf3's client prints as JSON.

    Raises:
        SystemFailure: when it prints something else.
    """
    try:
        return int(json.loads(said)["end"]["sum_received"]["bytes"])
    except (ValueError, KeyError, TypeError) as error:
        raise SystemFailure(
            f"iperf3 between nodes printed no received bytes: {said.strip()[-120:]!r}"
        ) from error


TRIALS: Mapping[str, Trial] = {
    trial.name: trial
    for trial in (
        Trial(
            "session", "A server on loopback, two runs and a refused one.",
            ("farline serve --anonymous --listen 127.0.0.1 &",
             "farline probe 127.0.0.1 --transport udt -P 2 -t 0.3 --json --log-level debug"),
            session,
        ),
        Trial(
            "disks", "1 to 8 processes of dd on each file system.",
            ("dd if=/dev/zero of=part-0 bs=1M count=64 oflag=direct conv=fsync",
             "dd if=part-0 of=/dev/null bs=1M iflag=direct"),
            disks,
        ),
        Trial(
            "nodes", "1 to 16 pairs of nodes behind one line.",
            ("farline testbed up nodes --set k=16 --rate 60Mbit --rtt 20ms",
             "farline testbed exec sink-1 -- iperf3 -s &",
             "farline testbed exec source-1 -- iperf3 -c sink-1 -P 4 -C cubic -w 32K -n 250K"),
            nodes,
        ),
        Trial(
            "node-copies", "One file by 4, 8 and 16 pairs of nodes behind one line.",
            ("farline testbed up nodes --set k=16 --rate 60Mbit --rtt 20ms",
             "farline copy --streams 4 --congestion cubic"
             " testbed:nodes:source-[1-8]$PWD/source/ testbed:nodes:sink-[1-8]$PWD/copy"),
            node_copies,
        ),
    )
}  # fmt: skip
