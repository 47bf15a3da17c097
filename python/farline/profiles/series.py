"""Rows of samples on a common clock: throughput of all streams together, over time.

Streams are sampled one after another and their rows do not begin at the same
microsecond, so bytes are added up along each stream and read off at common times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = Mapping[str, npt.NDArray[np.int64]]
"""Samples by column name, as `tools` hand them over."""

CLIENT, SERVER = 0, 1
SENDER, RECEIVER = 0, 1


def rows_of(samples: Columns, role: int, end: int | None = None) -> npt.NDArray[np.bool_]:
    """Which rows belong to senders or receivers, of one end or of both."""
    if "role" not in samples:
        return np.zeros(0, dtype=bool)
    mask: npt.NDArray[np.bool_] = samples["role"] == role
    return mask if end is None else mask & (samples["end"] == end)


@dataclass(frozen=True)
class Progress:
    """Payload bytes of several streams added up over time."""

    times_us: tuple[npt.NDArray[np.int64], ...]
    bytes_so_far: tuple[npt.NDArray[np.int64], ...]

    @property
    def end_us(self) -> int:
        """When the last row ends."""
        return max((int(times[-1]) for times in self.times_us), default=0)

    def at(self, time_us: Sequence[float] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Bytes up to each of the times, evenly spread within each interval."""
        wanted = np.asarray(time_us, dtype=np.float64)
        total = np.zeros_like(wanted)
        for times, so_far in zip(self.times_us, self.bytes_so_far, strict=True):
            total += np.interp(wanted, times, so_far)
        return total


def progress(samples: Columns, role: int, end: int) -> Progress:
    """Bytes over time of the streams that `end` sends (or receives)."""
    rows = rows_of(samples, role, end)
    times, totals = [], []
    for stream in np.unique(samples["stream"][rows]) if rows.any() else []:
        mine = np.flatnonzero(rows & (samples["stream"] == stream))
        mine = mine[np.argsort(samples["end_us"][mine], kind="stable")]
        first = samples["start_us"][mine[:1]]
        times.append(np.concatenate([first, samples["end_us"][mine]]))
        totals.append(np.concatenate([[0], np.cumsum(samples["bytes"][mine])]))
    return Progress(tuple(times), tuple(totals))


def rates_bps(moved: Progress, width_us: int, until_us: int) -> npt.NDArray[np.float64]:
    """Payload bits per second in each whole interval of `width_us` before `until_us`."""
    edges = np.arange(0, until_us + 1, width_us)
    return np.diff(moved.at(edges)) * 8e6 / width_us
