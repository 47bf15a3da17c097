"""Sets of options of iperf3's client, for what runs it against our server and its own.

Each moves little or ends after a second, so that all of them take about a minute. `{seconds}`
stands for the length of those that the clock ends.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

RUN_TIMEOUT_S = 40

TCP_SETS = {
    "plain": "-t {seconds}",
    "reverse": "-R -t {seconds}",
    "bidirectional": "--bidir -t {seconds}",
    "parallel": "-P 3 -t {seconds}",
    "parallel reverse": "-P 3 -R -t {seconds}",
    "parallel both ways": "-P 2 --bidir -t {seconds}",
    "bytes": "-n 20M",
    "bytes reverse": "-n 20M -R",
    "blocks": "-k 200",
    "blocks reverse": "-k 200 -R",
    "rate": "-b 50M -t {seconds}",
    "rate reverse": "-b 50M -R -t {seconds}",
    "rate in bursts": "-b 50M/10 -t {seconds}",
    "kernel's rate": "--fq-rate 50M -t {seconds}",
    "kernel's rate reverse": "--fq-rate 50M -R -t {seconds}",
    "short blocks": "-l 1K -n 4M",
    "long blocks": "-l 1M -n 20M",
    "window": "-w 128K -n 20M",
    "segment size": "-M 1000 -n 20M",
    "segment size reverse": "-M 1000 -n 20M -R",
    "congestion control": "-C reno -n 20M",
    "no delay": "-N -n 20M",
    "type of service": "-S 0x20 -n 20M",
    "zero copy": "-Z -n 20M",
    "zero copy reverse": "-Z -n 20M -R",
    "omitted": "-O 1 -t {seconds}",
    "omitted reverse": "-O 1 -R -t {seconds}",
    "repeating payload": "--repeating-payload -n 20M -R",
    "server's output": "--get-server-output -n 20M",
    "client's port": "--cport {cport} -n 20M",
    "title, CPU": "-T title --extra-data more -A 0,0 -n 20M",
}

UDP_SETS = {
    "udp": "-u -b 20M -t {seconds}",
    "udp reverse": "-u -b 20M -R -t {seconds}",
    "udp both ways": "-u -b 10M --bidir -t {seconds}",
    "udp parallel": "-u -b 10M -P 3 -t {seconds}",
    "udp parallel reverse": "-u -b 10M -P 3 -R -t {seconds}",
    "udp bytes": "-u -b 50M -n 4M",
    "udp blocks reverse": "-u -b 50M -k 1000 -R",
    "udp short": "-u -b 5M -l 200 -t {seconds}",
    "udp in fragments": "-u -b 50M -l 30000 -t {seconds}",
    "udp wide counters": "-u -b 20M --udp-counters-64bit -t {seconds}",
    "udp wide counters reverse": "-u -b 20M --udp-counters-64bit -R -t {seconds}",
    "udp window": "-u -b 20M -w 128K -t {seconds}",
    "udp omitted": "-u -b 20M -O 1 -t {seconds}",
    "udp in bursts": "-u -b 50M/20 -l 1000 -t {seconds}",
    "udp whole packets": "-u -b 20M --dont-fragment -t {seconds}",
}

SETS = TCP_SETS | UDP_SETS


@dataclass(frozen=True)
class Client:
    """An iperf3 program, and its version."""

    path: str
    version: str


def client(path: str | None = None) -> Client | None:
    """The iperf3 at `path`, or on the search path; None if there is none."""
    found = path or shutil.which("iperf3")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=10).stdout
    match = re.match(r"iperf (\S+)", said)
    return Client(found, match[1] if match else "unknown")


def clients() -> list[Client]:
    """The iperf3 of this machine, and that which FARLINE_IPERF3 names."""
    paths = dict.fromkeys([shutil.which("iperf3"), os.environ.get("FARLINE_IPERF3")])
    found = (client(path) for path in paths if path)
    return [one for one in found if one is not None]


def words(options: str, seconds: float, cport: int) -> list[str]:
    """The options as words."""
    return options.format(seconds=seconds, cport=cport).split()


def run(
    program: Client, host: str, port: int, options: list[str], within: tuple[str, ...] = ()
) -> dict[str, Any]:
    """One test by iperf3's client: its document, which says nothing of an error.

    Raises:
        RuntimeError: when it failed, with what it said.
    """
    done = subprocess.run(
        [*within, program.path, "-c", host, "-p", str(port), "-J", *options],
        capture_output=True, text=True, timeout=RUN_TIMEOUT_S,
    )  # fmt: skip
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"iperf3 printed no JSON: {done.stdout[:200]}{done.stderr}") from None
    if done.returncode or "error" in document:
        raise RuntimeError(f"iperf3 ended with {done.returncode}: {document.get('error')}")
    return document


def totals(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The sums of a document, `sender` and `receiver` in turn, one direction after the other."""
    end = document["end"]
    names = ("sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse")
    return [end[name] for name in names if name in end]
