"""`farline probe` over RBUDP, or TCP, on loopback or inside hosts: one run, and what it says."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from _iperf3 import FARLINE
from _udt.peers import Start

GRACE_S = 60.0
SENDS, RECEIVES = 0, 1
RBUDP_HEADER_BYTES = 16


@dataclass(frozen=True)
class Probe:
    """One complete run from its record."""

    record: dict[str, Any]

    @property
    def sender(self) -> dict[str, Any]:
        """The sending end of the only stream."""
        return self._stream(SENDS)

    @property
    def receiver(self) -> dict[str, Any]:
        """The receiving end of the only stream."""
        return self._stream(RECEIVES)

    @property
    def blast(self) -> dict[str, Any]:
        """The only blast, as the sender saw it."""
        (blast,) = self.sender["blasts"]
        found: dict[str, Any] = blast
        return found

    @property
    def blast_s(self) -> float:
        """Seconds from its first packet until the sender knew that it was whole."""
        return float(self.blast["elapsed_us"]) / 1e6

    @property
    def packet_payload_bytes(self) -> int:
        """Payload of a full packet, as both ends agreed."""
        return int(self.sender["granted"]["packet_bytes"]) - RBUDP_HEADER_BYTES

    @property
    def total_bps(self) -> float:
        """Payload at the receiver over the whole run."""
        return float(self.record["summary"]["forward"]["total_bps"])

    @property
    def receiver_cpu_s_per_gb(self) -> float:
        """CPU seconds of the receiving process per 10^9 payload bytes: the server's."""
        cpu = self.record["server"]["cpu"]
        moved = float(self.record["summary"]["forward"]["bytes"])
        return float(cpu["user_s"] + cpu["system_s"]) / (moved / 1e9)

    def _stream(self, role: int) -> dict[str, Any]:
        (found,) = [one for one in self.record["streams"] if one["role"] == role]
        stream: dict[str, Any] = found
        return stream


def probe(start: Start, ticket: str, limit_s: float, *options: object) -> Probe:
    """One run; `limit_s` is the time it may take beyond a minute.

    Raises:
        RuntimeError: with the run's own words if it did not complete.
    """
    command = [str(FARLINE), "probe", ticket, "--no-store", "--json", *map(str, options)]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, complaint = process.communicate(timeout=limit_s + GRACE_S)
    finally:
        process.kill()
        process.communicate()
    if not output.strip():
        raise RuntimeError(f"farline probe: {complaint.strip()}")
    record: dict[str, Any] = json.loads(output)
    if record["status"] != "complete":
        raise RuntimeError(f"farline probe: {record['error']}")
    return Probe(record)


def rbudp(rate_bps: float, *options: object) -> list[object]:
    """Options of a run at a payload rate (0: as fast as it goes) on a path of its own."""
    rate = f"{int(rate_bps)}bit/s"
    return ["--transport", "rbudp", "--rate", rate, "--shared-path", "allow", *options]


def one_blast(payload_bytes: int) -> list[object]:
    """Options for a single blast of so many bytes, alone: S of He et al. 2002."""
    return ["-n", payload_bytes, "--payload", payload_bytes, "--in-flight", 1]
