"""Rows of samples on a common clock: throughput of all streams together, over time.

Streams are sampled one after another and their rows do not begin at the same
microsecond, so bytes are added up along each stream and read off at common times.

Plain Python: a host with nothing but the core sums up and judges its runs too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

Columns = Mapping[str, Any]
"""Samples by column name, 64-bit integers: numpy arrays, `array.array`, memory views or lists."""

CLIENT, SERVER = 0, 1
SENDER, RECEIVER = 0, 1


def plain(samples: Columns) -> dict[str, list[int]]:
    """The same as lists of Python's integers; a column that is one already is not copied."""
    return {
        name: column if isinstance(column, list) else column.tolist()
        for name, column in samples.items()
    }


def rows_of(samples: Columns, role: int, end: int | None = None) -> list[int]:
    """Numbers of the rows of senders or receivers, of one end or of both."""
    if "role" not in samples:
        return []
    if end is None:
        return [row for row, its in enumerate(samples["role"]) if its == role]
    both = enumerate(zip(samples["role"], samples["end"], strict=True))
    return [row for row, its in both if its == (role, end)]


def known(samples: Columns, name: str, rows: Iterable[int]) -> list[int]:
    """The figures of a column in `rows` that are known (-1 is not); none without the column."""
    if name not in samples:
        return []
    column = samples[name]
    return [value for row in rows if (value := column[row]) >= 0]


def mean(values: Sequence[float]) -> float | None:
    """Their mean; None of none."""
    return sum(values) / len(values) if len(values) else None


@dataclass(frozen=True)
class Progress:
    """Payload bytes of several streams added up over time."""

    times_us: tuple[Sequence[int], ...]
    bytes_so_far: tuple[Sequence[int], ...]

    @property
    def end_us(self) -> int:
        """When the last row ends."""
        return max((times[-1] for times in self.times_us), default=0)

    def at(self, time_us: Iterable[float]) -> list[float]:
        """Bytes up to each of the times (T,), evenly spread within each interval."""
        streams = list(zip(self.times_us, self.bytes_so_far, strict=True))
        return [sum(between(wanted, *stream) for stream in streams) for wanted in time_us]


def between(wanted: float, places: Sequence[int], values: Sequence[int]) -> float:
    """The value at `wanted` on the line through `values` at `places` (K,), ascending, K >= 1.

    Before the first place and behind the last it is theirs.
    """
    right = bisect_right(places, wanted)
    if right == 0:
        return float(values[0])
    if right == len(places):
        return float(values[-1])
    left = right - 1
    slope = (values[right] - values[left]) / (places[right] - places[left])
    return values[left] + slope * (wanted - places[left])


def progress(samples: Columns, role: int, end: int) -> Progress:
    """Bytes over time of the streams that `end` sends (or receives)."""
    names = ("stream", "start_us", "end_us", "bytes")
    rows_here = rows_of(samples, role, end)
    samples = plain({name: samples[name] for name in names}) if rows_here else {}
    by_stream: dict[int, list[int]] = {}
    for row in rows_here:
        by_stream.setdefault(samples["stream"][row], []).append(row)
    times, totals = [], []
    for _, rows in sorted(by_stream.items()):
        rows.sort(key=samples["end_us"].__getitem__)
        times.append([samples["start_us"][rows[0]], *(samples["end_us"][row] for row in rows)])
        totals.append(list(accumulate((samples["bytes"][row] for row in rows), initial=0)))
    return Progress(tuple(times), tuple(totals))


def rates_bps(moved: Progress, width_us: int, until_us: int) -> list[float]:
    """Payload bits per second in each whole interval of `width_us` before `until_us`."""
    steps = pairwise(moved.at(range(0, until_us + 1, width_us)))
    return [(after - before) * 8e6 / width_us for before, after in steps]
