"""What is to be moved, how, and over which path: all that an estimate asks."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_FILE_BYTES = 4096
"""A file counts as at least so many bytes: names, answers and syncs cost time whatever its length.

Without it a million empty files would take no time at all.
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """One transfer before it runs. Figures of the path that are not known are None.

    `concurrency` is how many files go at once, `parallelism` how many streams serve one file,
    `pipelining` how many requests are on their way. `link_bps` is the slowest link, `window_bytes`
    the smaller buffer of one stream. `host_key` tells hosts with other hardware or another kernel
    apart under the same name.
    """

    total_bytes: float
    files: int
    concurrency: float = 1
    parallelism: float = 1
    pipelining: float = 1
    rtt_s: float | None = None
    link_bps: float | None = None
    window_bytes: float | None = None
    host_key: str | None = None

    @property
    def volume_bytes(self) -> float:
        """Bytes that take time: those of the files, each at least `LEAST_FILE_BYTES`."""
        return max(float(self.total_bytes), float(LEAST_FILE_BYTES) * max(1, self.files))

    @property
    def file_bytes(self) -> float:
        """Mean size of a file."""
        return self.volume_bytes / max(1, self.files)
