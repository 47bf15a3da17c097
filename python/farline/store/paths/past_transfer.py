"""One transfer that has ended, as those see it who choose and estimate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Kind = Literal["probe", "copy", "ingested"]
"""A measurement by farline (runs of campaigns too), a copy by farline, a row of another log."""

SHORT_ROUND_TRIPS = 50
"""A transfer of fewer round trips has hardly got up to speed: TCP doubles its window in each."""


@dataclass(frozen=True, slots=True)
class PastTransfer:
    """One finished transfer in one direction. Figures that are not known are None.

    `streams` is how many data streams there were in all, `parallelism` how many served one file:
    as a log says it, else streams over concurrency. `window_bytes` is the largest buffer that a
    stream had: as asked for, else what both kernels allow. `capacity_bps` is the slowest link that
    is known: of the emulated path, the infrastructure's connection or the interfaces. `nic_bps` is
    of the interfaces alone. `rate_bps` is payload over the whole time, `steady_bps` that behind the
    ramp. Times are POSIX seconds.
    """

    kind: Kind
    tool: str
    source: str
    """The run's name, or the log."""
    started_s: float | None
    ended_s: float | None
    duration_s: float | None
    from_host: str
    to_host: str
    path: str
    """`SENDER > RECEIVER`, the names of sites where they are known."""
    rate_bps: float
    steady_bps: float | None = None
    bytes: int | None = None
    files: int | None = None
    concurrency: int | None = None
    streams: int | None = None
    parallelism: int | None = None
    pipelining: int | None = None
    rtt_ms: float | None = None
    loaded_rtt_ms: float | None = None
    """The mean while it ran."""
    capacity_bps: float | None = None
    nic_bps: float | None = None
    window_bytes: int | None = None
    block_bytes: int | None = None
    """What one call took, or one request of a copy (its chunk), where that was stated."""
    transport: str | None = None
    congestion_control: str | None = None
    modality: str = "E"
    """`T` memory to memory, `E` with files at an end."""
    limit: str | None = None
    """What the run's verdict names as its limit."""
    retransmits: int | None = None
    cpu_s_per_gb: float | None = None
    from_kernel: str | None = None
    to_kernel: str | None = None
    campaign: str | None = None
    from_names: tuple[str, ...] = ()
    to_names: tuple[str, ...] = ()
    """All names that each end goes by: its own, and how the server was addressed."""
    estimate: Mapping[str, Any] | None = None
    """What had been estimated before, as the run's label `estimate` has it."""
    capped: bool = False
    """A rate was asked for: the figure is the user's wish, not the path's."""
    resumed: bool = False
    """Part of the bytes was there already."""

    @property
    def file_bytes(self) -> float | None:
        """Mean size of a file; the whole where no files were counted."""
        if self.bytes is None:
            return None
        return self.bytes / max(1, self.files or 1)

    @property
    def short(self) -> bool:
        """Whether it ended before it was up to speed (`SHORT_ROUND_TRIPS`)."""
        if self.duration_s is None or self.rtt_ms is None:
            return False
        return self.duration_s < SHORT_ROUND_TRIPS * self.rtt_ms / 1000

    @property
    def sound(self) -> bool:
        """Whether its rate says what the path gives: whole, not capped, long enough."""
        return not (self.capped or self.short)

    def document(self) -> dict[str, Any]:
        """All fields and what follows from them, for JSON."""
        return asdict(self) | {"file_bytes": self.file_bytes, "short": self.short}


@dataclass(frozen=True, slots=True)
class PathEnds:
    """Which transfers are of one path: names of the host that sends and of the one that receives.

    Names are compared without case and without a port; an empty set stands for any host.
    """

    senders: frozenset[str] = frozenset()
    receivers: frozenset[str] = frozenset()

    @classmethod
    def between(cls, senders: str | Iterable[str], receivers: str | Iterable[str]) -> Self:
        """The path from one host to another, each under one name or several."""
        return cls(_names(senders), _names(receivers))

    def fit(self, row: PastTransfer) -> bool:
        """Whether a transfer went this way."""
        return self.match((row.from_host, *row.from_names), (row.to_host, *row.to_names))

    def match(self, senders: Iterable[str | None], receivers: Iterable[str | None]) -> bool:
        """Whether hosts with these names are its two ends."""
        pairs = ((self.senders, senders), (self.receivers, receivers))
        return all(not wanted or bool(wanted & _names(found)) for wanted, found in pairs)


def bare_host(name: str) -> str:
    """A host's name or address without a port, brackets and capitals."""
    text = name.strip().casefold()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    head, colon, port = text.rpartition(":")
    return head if colon and ":" not in head and port.isdigit() else text


def _names(names: str | Iterable[str | None]) -> frozenset[str]:
    several = [names] if isinstance(names, str) else names
    return frozenset(bare_host(name) for name in several if name)
