"""The figures of a copy that its record alone has: whose threads were at what, for how long.

Nothing here needs the samples or numpy, so that a copy of a quarter of a second can be judged
before its command ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farline.profiles.copy_streams import (
    data_streams,
    elapsed_us,
    payload_bytes,
    payload_rate_bps,
)

STAGES = ("file", "name", "hash", "cipher", "stream", "sync", "starved")
"""What threads of a copy spend their time at, as `CopyEnd` has it with `_us` behind."""

MEMORY_ONLY = ("tmpfs", "ramfs", "devtmpfs")
"""File systems without a disk."""

_NO_DISK = ("null", "memory")
_SENDER, _RECEIVER = 0, 1


@dataclass(eq=False, repr=False)
class EndFigures:
    """One end of a copy. Times are microseconds over all threads, shares are fractions.

    `cpu_us` is the CPU time of its process, None where the end did not report. `thread_cpu` and
    `thread_wait` are those of the busiest stream's thread, of the run: running, and waiting for a
    CPU.
    """

    role: str
    streams: int
    threads: int
    wall_us: float
    times_us: Mapping[str, int]
    cpu_us: float | None
    cpus: int
    thread_cpu: float
    thread_wait: float
    engine: str
    file_system: str

    @property
    def file_workers(self) -> int:
        """Threads that handle files: those for it, or else the streams' own."""
        return self.threads or self.streams

    @property
    def has_disk(self) -> bool:
        """Whether files here are on a device."""
        return self.engine not in _NO_DISK and self.file_system not in MEMORY_ONLY

    @property
    def work_us(self) -> int:
        """Time at files: reading or writing, naming, hashing, sealing, syncing."""
        return sum(self.times_us[name] for name in ("file", "name", "hash", "cipher", "sync"))

    @property
    def file_wait_us(self) -> float:
        """Time in reading or writing that was no work of a CPU, at least.

        Hashing and sealing are; so might be, at most, all that is left of the CPU time.
        """
        if self.cpu_us is None:
            return 0.0
        other = self.times_us["hash"] + self.times_us["cipher"]
        return max(0.0, self.times_us["file"] - max(0.0, self.cpu_us - other))

    def of_workers(self, time_us: float) -> float:
        """A time as a share of what the threads had that handle files."""
        return time_us / (self.file_workers * self.wall_us) if self.wall_us else 0.0

    def of_wall(self, time_us: float) -> float:
        """A time as a share of the run."""
        return time_us / self.wall_us if self.wall_us else 0.0

    def of_all(self, name: str) -> float:
        """A stage's time as a share of all that was accounted for."""
        total = sum(self.times_us.values())
        return self.times_us[name] / total if total else 0.0


@dataclass(eq=False, repr=False)
class CopyFigures:
    """A copy in numbers."""

    status: str
    error: str
    transport: str
    direction: str
    same_host: bool
    streams: int
    congestion_control: str
    allowed_congestion_controls: tuple[str, ...]
    wall_us: float
    payload_us: float
    moved_bytes: int
    throughput_bps: float
    asked_bps: float
    asked_by: str
    spec: Mapping[str, Any]
    report: Mapping[str, Any]
    sender: EndFigures
    receiver: EndFigures

    @property
    def ends(self) -> tuple[EndFigures, EndFigures]:
        """Sender and receiver."""
        return self.sender, self.receiver

    @property
    def copied_files(self) -> int:
        """Files that were copied."""
        return int(self.report["copied"]["files"])

    @property
    def copied_bytes(self) -> int:
        """Bytes in them."""
        return int(self.report["copied"]["bytes"])


def copy_figures_of(record: Mapping[str, Any]) -> CopyFigures:
    """The figures in the record of a copy, which has a `copy` with both ends."""
    spec, report = record["spec"], record["copy"]
    client, server = record.get("client"), record.get("server")
    reverse = spec.get("direction", "forward") == "reverse"
    near, far = (server, client) if reverse else (client, server)
    streams = data_streams(record)
    senders = [s for s in streams if s["role"] == _SENDER]
    receivers = [s for s in streams if s["role"] == _RECEIVER]
    wall_us = float(elapsed_us(record, streams))
    payload_us = max((s["elapsed_us"] for s in receivers or senders), default=0)
    count = max(1, int(spec.get("streams") or 1))
    asked_bps, asked_by = _asked(spec, count)
    error = record.get("error") or {}
    return CopyFigures(
        status=record["status"],
        error=error.get("message", ""),
        transport=spec.get("transport", "tcp"),
        direction="reverse" if reverse else "forward",
        same_host=_same_host(client, server, streams),
        streams=count,
        congestion_control=next((_congestion_control(s) for s in senders), ""),
        allowed_congestion_controls=tuple(
            near["host"]["allowed_congestion_controls"] if near else ()
        ),
        wall_us=wall_us,
        payload_us=float(payload_us),
        moved_bytes=payload_bytes(record),
        throughput_bps=payload_rate_bps(record),
        asked_bps=asked_bps,
        asked_by=asked_by,
        spec=spec["copy"],
        report=report,
        sender=_end("sender", report["sender"], near, senders, count, wall_us),
        receiver=_end("receiver", report["receiver"], far, receivers, count, wall_us),
    )


def _congestion_control(stream: Mapping[str, Any]) -> str:
    return (stream.get("granted") or {}).get("congestion_control") or ""


def _asked(spec: Mapping[str, Any], streams: int) -> tuple[float, str]:
    """The lowest rate that the copy was held to, over all streams, and by which option."""
    per_stream = {
        "--rate": spec.get("rate_bps"),
        "--fq-rate": (spec.get("tcp") or {}).get("pacing_rate_bps"),
    }
    rates = {flag: float(rate) * streams for flag, rate in per_stream.items() if rate}
    if spec["copy"].get("total_rate_bps"):
        rates["--bwlimit"] = float(spec["copy"]["total_rate_bps"])
    flag = min(rates, key=lambda name: rates[name], default="")
    return rates.get(flag, 0.0), flag


def _end(
    role: str,
    told: Mapping[str, Any],
    report: Mapping[str, Any] | None,
    streams: list[Any],
    count: int,
    wall_us: float,
) -> EndFigures:
    # A thread lives longer than its stream moves payload, whose time may be next to nothing.
    shares = [
        (s["thread_cpu_us"] / wall_us, s.get("thread_wait_us", 0) / wall_us)
        for s in streams
        if wall_us > 0
    ]
    thread_cpu, thread_wait = max(shares, key=sum, default=(0.0, 0.0))
    thread_cpu = min(1.0, thread_cpu)
    thread_wait = min(1.0 - thread_cpu, thread_wait)
    cpu = report["cpu"] if report else None
    return EndFigures(
        role=role,
        streams=count,
        threads=int(told["threads"]),
        wall_us=wall_us,
        times_us={name: int(told[f"{name}_us"]) for name in STAGES},
        cpu_us=1e6 * (cpu["user_s"] + cpu["system_s"]) if cpu else None,
        cpus=report["host"]["cpu"]["online"] if report else 0,
        thread_cpu=thread_cpu,
        thread_wait=thread_wait,
        engine=told["engine"],
        file_system=told["file_system"],
    )


def _same_host(
    client: Mapping[str, Any] | None, server: Mapping[str, Any] | None, streams: list[Any]
) -> bool:
    """Whether both ends are one host: same name and kernel, and one address or loopback."""
    if not client or not server:
        return False
    names = [(end["host"]["hostname"], end["host"]["kernel"]) for end in (client, server)]
    if names[0] != names[1]:
        return False
    for stream in streams:
        local, remote = (stream["granted"][side].rpartition(":")[0] for side in ("local", "remote"))
        if local and (local == remote or local.startswith("127.")):
            return True
    return False
