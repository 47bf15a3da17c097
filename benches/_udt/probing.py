"""`farline probe --transport udt`, on loopback or inside hosts."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from _iperf3 import FARLINE
from _udt.peers import Start

PROBE_GRACE_S = 90.0


@dataclass(frozen=True)
class Probe:
    """One run from its record."""

    record: dict[str, Any]

    @property
    def _forward(self) -> dict[str, Any]:
        found: dict[str, Any] = self.record["summary"]["forward"]
        return found

    @property
    def steady_bps(self) -> float:
        """Payload at the receiver after what was left out; of the whole run if nothing was."""
        return float(self._forward["steady_bps"] or self._forward["total_bps"])

    @property
    def cpu_s_per_gb(self) -> float:
        """CPU seconds of both ends per 10^9 payload bytes."""
        return float(self.record["summary"]["cpu_s_per_gb"])


def probe(start: Start, ticket: str, seconds: float, omit_s: float, *options: object) -> Probe:
    """One run over UDT.

    Raises:
        RuntimeError: with the run's own words if it did not complete.
    """
    span = ["-t", str(seconds), "-O", str(omit_s), "--transport", "udt"]
    command = [str(FARLINE), "probe", ticket, "--no-store", "--json", *span, *map(str, options)]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, complaint = process.communicate(timeout=seconds + omit_s + PROBE_GRACE_S)
    finally:
        process.kill()
        process.communicate()
    if not output.strip():
        raise RuntimeError(f"farline probe: {complaint.strip()}")
    record: dict[str, Any] = json.loads(output)
    if record["status"] != "complete":
        raise RuntimeError(f"farline probe: {record['error']}")
    return Probe(record)


def pinned(cpu: int) -> Start:
    """Starts programs on this machine on one CPU."""

    def start(command: list[str], **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(["taskset", "-c", str(cpu), *command], text=True, **options)

    return start
