"""QUIC by farline against quinn's own `quinn-perf`, and against the line over long paths.

`FARLINE_QUINN=PATH` names `quinn-perf`, built from its source outside the repository
(`cargo build --release -p perf`). Rows: Gb/s that arrived at the client, ours / quinn's, at equal
size of datagrams and number of streams, on loopback, interleaved. Of quinn's the streams share one
connection, ours have one each. Rows `line`: ours / the emulated link's payload rate, steady part,
without loss.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from _contract import Row, finish, interleave, row
from _copy.place import ending
from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.runs import up
from _emulator.traffic import serving
from _program import program
from farline.findings.path_payload import FRAMING_BYTES
from farline.profiles.packet_headers import QUIC_HEADER_BYTES

FARLINE = Path(sys.executable).with_name("farline")
PACKET_BYTES = 1472
PORT = 4477
LIMIT_S = 90
MTU_BYTES = 1500
LINE_BPS = 1_000_000_000
LINE = 0.9


def ours(ticket: str, streams: int, seconds: int) -> float:
    """Gb/s that arrived in one `farline probe`, data from the server."""
    packet = ["--transport", "quic", "--packet", str(PACKET_BYTES)]
    options = ["-R", "-P", str(streams), "-t", str(seconds), "--no-store", "--json"]
    command = [str(FARLINE), "probe", ticket, *packet, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    record: dict[str, Any] = json.loads(done.stdout)
    return float(record["summary"]["reverse"]["total_bps"]) / 1e9


def quinn(path: str, streams: int, seconds: int) -> float:
    """Gb/s that arrived in one run of `quinn-perf client`, mean of its whole seconds."""
    size = ["--max-udp-payload-size", str(PACKET_BYTES), "--congestion", "cubic"]
    work = ["--bi-requests", str(streams), "--download-size", "100G", "--upload-size", "0"]
    place = [f"localhost:{PORT}", "--ip", "127.0.0.1", "--duration", str(seconds), "--json", "-"]
    command = [path, "client", *size, *work, *place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    document = json.loads(done.stdout[done.stdout.index("{") :])
    # One that sends as well has a sum for each direction.
    sums = [one.get("recv_sum") or one["sum"] for one in document["intervals"]]
    return statistics.fmean(one["bits_per_second"] for one in sums if not one["sender"]) / 1e9


@contextmanager
def quinn_serving(path: str) -> Iterator[None]:
    """`quinn-perf server` for as long as the block runs."""
    size = ["--max-udp-payload-size", str(PACKET_BYTES), "--congestion", "cubic"]
    command = [path, "server", "--listen", f"127.0.0.1:{PORT}", *size]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with ending(subprocess.Popen(command, **quiet)):  # type: ignore[call-overload]
        time.sleep(0.5)
        yield


def version(path: str) -> str:
    """What the peer says that it is."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip() or "quinn-perf without a version"


def against_quinn(path: str, seconds: int, pairs: int) -> Iterator[Row]:
    """One stream and four on loopback."""
    print(f"peer: {version(path)}")
    here = partial(subprocess.Popen, text=True)
    with serving(here, "127.0.0.1") as ticket, quinn_serving(path):
        for streams in (1, 4):
            one = partial(ours, ticket, streams, seconds)
            values = interleave(one, partial(quinn, path, streams, seconds), pairs)
            yield row(f"lo packet{PACKET_BYTES} {streams}str", "Gb/s", values)


def of_the_line(rtt_ms: int, seconds: int, pairs: int) -> Row:
    """Steady payload rate over an emulated path of 1 Gb/s, start-up left out."""
    omit_s = max(3.0, 25 * rtt_ms / 1000)
    queue = {"queue": {"capacity_bdp": 1.0}}
    link = pair(pipe(LINE_BPS, rtt_ms / 1000, mtu_bytes=MTU_BYTES, **queue))
    with up(link) as bed:
        sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
        with serving(receiver.popen, receiver.address) as ticket:
            span = ["--transport", "quic", "-t", str(seconds), "-O", str(omit_s)]
            command = [str(FARLINE), "probe", ticket, *span, "--no-store", "--json"]
            runs = [
                sender.run(command, timeout=LIMIT_S + seconds, check=True) for _ in range(pairs)
            ]
    found = [json.loads(run.stdout)["summary"]["forward"]["steady_bps"] / 1e9 for run in runs]
    most = LINE_BPS / 1e9 * (PACKET_BYTES - QUIC_HEADER_BYTES) / (MTU_BYTES + FRAMING_BYTES)
    name = f"line rtt{rtt_ms} mtu{MTU_BYTES} loss0"
    return row(name, "Gb/s", [(one, most) for one in found], must=LINE)


def rows(seconds: int, pairs: int, only: str) -> Iterator[Row]:
    """All cases whose name fits `only`."""
    path = os.environ.get("FARLINE_QUINN")
    if re.search(only, "lo"):
        if not path:
            raise SystemExit(
                "quic-vs-quinn: FARLINE_QUINN names no quinn-perf; build it from its source"
            )
        yield from against_quinn(path, seconds, pairs)
    for rtt_ms in (10, 100, 366):
        if re.search(only, f"line rtt{rtt_ms}"):
            yield of_the_line(rtt_ms, 20, 2)


def main() -> int:
    """Measures, prints a row as it comes, writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cases", default="", help="a pattern of the names of cases to run")
    options = parser.parse_args()
    return finish("quic-vs-quinn", rows(options.seconds, options.pairs, options.cases))


if __name__ == "__main__":
    program(main)
