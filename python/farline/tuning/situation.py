"""What is to be transferred and over which path, as far as it is known before; settings of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from farline.spec.units import size_human
from farline.store.paths.past_transfer import PathEnds

if TYPE_CHECKING:
    from farline.store.paths.past_transfer import PastTransfer

Goal = Literal["throughput", "fairness", "cpu"]
GOALS: tuple[Goal, ...] = ("throughput", "fairness", "cpu")

WAN_RTT_MS = 1.0
"""Round-trip time from which a path behaves as a long one: one stream no longer fills it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a path is used. A knob that is None is left to whoever transfers.

    The smaller setting takes less: fewer streams, then fewer files at once, then fewer knobs turned
    and smaller buffers. `block_bytes` is what one call or one request takes, `buffer_bytes` what
    both ends give each stream.
    """

    streams: int
    concurrency: int | None = None
    pipelining: int | None = None
    block_bytes: int | None = None
    buffer_bytes: int | None = None
    congestion_control: str | None = None
    transport: str | None = None

    def __lt__(self, other: Setting) -> bool:
        """Whether it takes less; a knob that is left open comes first."""
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, int, int, int, int, int, str, str]:
        return (
            self.streams, self.concurrency or 0, self.pipelining or 0, self.turned,
            self.buffer_bytes or 0, self.block_bytes or 0, self.congestion_control or "",
            self.transport or "",
        )  # fmt: skip

    @property
    def turned(self) -> int:
        """How many knobs beside streams and files are not left alone."""
        further = (
            self.pipelining, self.block_bytes, self.buffer_bytes, self.congestion_control,
            self.transport,
        )  # fmt: skip
        return sum(one is not None for one in further)

    def takes_less(self, other: Setting) -> bool:
        """Whether it is the other with fewer streams and no knob beside them turned otherwise."""
        return self.streams < other.streams and self._is_turned_as(other)

    def is_more_of(self, other: Setting) -> bool:
        """Whether it is the other, or that with more streams and no knob turned otherwise."""
        return self.streams >= other.streams and self._is_turned_as(other)

    def _is_turned_as(self, other: Setting) -> bool:
        alike = replace(
            self, streams=other.streams, concurrency=other.concurrency,
            pipelining=other.pipelining,
        )  # fmt: skip
        return alike == other

    @property
    def text(self) -> str:
        """`8 streams`, `16 streams, 4 files at once`."""
        parts = [f"{self.streams} stream{'' if self.streams == 1 else 's'}"]
        if self.concurrency is not None:
            parts.append(f"{self.concurrency} file{'' if self.concurrency == 1 else 's'} at once")
        if self.pipelining is not None:
            parts.append(f"{self.pipelining} announced")
        if self.block_bytes is not None:
            parts.append(f"blocks of {size_human(self.block_bytes)}")
        if self.buffer_bytes is not None:
            parts.append(f"buffers of {size_human(self.buffer_bytes)}")
        parts += [word for word in (self.congestion_control, self.transport) if word is not None]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Situation:
    """A transfer that is to come. None is unknown.

    `ends` say which past transfers went the same way. `file_bytes` is the mean size, `files` how
    many; a transfer of memory is one file.
    """

    ends: PathEnds = field(default_factory=PathEnds)
    transport: str = "tcp"
    tool: str = "farline"
    modality: str = "T"
    file_bytes: float | None = None
    files: int | None = None
    concurrency: int | None = None
    pipelining: int | None = None
    rtt_ms: float | None = None
    loaded_rtt_ms: float | None = None
    """The mean while a sample ran."""
    capacity_bps: float | None = None
    nic_bps: float | None = None
    disk_bps: float | None = None
    """What the slower disk at the ends reaches, by the profile of its file system."""
    disk_texts: tuple[str, ...] = ()
    """What is known of the disks, a phrase each."""
    window_bytes: int | None = None
    here_kernel: str | None = None
    there_kernel: str | None = None
    pushes: bool = True
    now_s: float = 0.0

    @property
    def is_wan(self) -> bool:
        """Whether the path is a long one; unknown ones are taken for long."""
        return self.rtt_ms is None or self.rtt_ms >= WAN_RTT_MS

    @property
    def window_bps(self) -> float | None:
        """What the window of one stream carries: half a buffer a round trip."""
        if not (self.window_bytes and self.rtt_ms):
            return None
        return self.window_bytes / 2 * 8000 / self.rtt_ms

    @property
    def kernels(self) -> tuple[str | None, str | None]:
        """Of the sender and of the receiver."""
        ends = (self.here_kernel, self.there_kernel)
        return ends if self.pushes else (ends[1], ends[0])

    def with_facts(
        self,
        rtt_ms: float | None = None,
        nic_bps: float | None = None,
        there_kernel: str | None = None,
        window_bytes: int | None = None,
        loaded_rtt_ms: float | None = None,
    ) -> Situation:
        """The same with what has become known; what is unknown stays as it was."""
        return replace(
            self,
            rtt_ms=self.rtt_ms if rtt_ms is None else rtt_ms,
            loaded_rtt_ms=loaded_rtt_ms or self.loaded_rtt_ms,
            nic_bps=nic_bps or self.nic_bps,
            capacity_bps=self.capacity_bps or nic_bps,
            there_kernel=there_kernel or self.there_kernel,
            window_bytes=window_bytes or self.window_bytes,
        )


def changes(row: PastTransfer, now: Situation) -> tuple[str, ...]:
    """What of hosts and route is not as it was when this transfer ran, a phrase each."""
    from farline.store.paths.choices import HostsNow, StoredChoice

    sender, receiver = row.from_kernel, row.to_kernel
    here, there = (sender, receiver) if now.pushes else (receiver, sender)
    then = StoredChoice(
        "", now.pushes, now.now_s, None, None, None, 0.0, 0.0, 0.0, "", "",
        rtt_ms=row.rtt_ms, loaded_rtt_ms=row.loaded_rtt_ms, here_kernel=here, there_kernel=there,
        nic_bps=row.nic_bps,
    )  # fmt: skip
    found = HostsNow(now.rtt_ms, now.here_kernel, now.there_kernel, now.nic_bps)
    return then.changes(found, now.now_s)
