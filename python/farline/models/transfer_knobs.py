"""Pipelining, parallelism and concurrency by rule: what is published, as it is published.

Pipelining is requests in flight on one connection, parallelism streams for one file, concurrency
files at once. The rules need bandwidth, round-trip time, buffer and mean file size and no sample
(Yildirim et al. 2016; HARP, Arslan et al. 2016, in whose programs they are). They are textbook: on
real paths they lose two thirds of what can be had, for they keep concurrency low when files are
large. farline shows them beside what it chooses and starts from none of them.

Sizes are bytes, rates bit/s, times seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from farline.errors import SpecError
from farline.models.quantities import not_negative, positive_finite

MOST_PIPELINING = 100

SizeClass = Literal["small", "medium", "large", "huge"]
SIZE_CLASSES: tuple[SizeClass, ...] = ("small", "medium", "large", "huge")
CLASS_WEIGHTS: Mapping[SizeClass, int] = {"small": 3, "medium": 2, "large": 1, "huge": 1}
"""How much a class counts when channels are shared out: small files need more of them."""

MERGED_BELOW_BDP = 5
"""A chunk of fewer bytes than this many bandwidth-delay products, or than two files, is merged."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """A setting of the three."""

    concurrency: int
    parallelism: int
    pipelining: int


def textbook_knobs(
    rate_bps: float,
    rtt_s: float,
    file_bytes: float,
    files: int,
    buffer_bytes: float,
    most_concurrency: int = 32,
) -> Knobs:
    """The rule of HARP's lineage.

    fill = round(BDP / file); pipelining = min(fill, 100); parallelism = max(1, min(⌈BDP/buffer⌉,
    ⌈file/buffer⌉)); concurrency = min(max(fill, 2), files, most). At 10 Gb/s, 40 ms, 32 MiB and
    1000 files: of 1 MB 50, 1, 32 (pipelining, parallelism, concurrency), of 10 MB 5, 1, 5, of 50 MB
    1, 2, 2, of 1 GB 0, 2, 2.

    Raises:
        SpecError: for a quantity that is not positive.
    """  # fmt: skip
    bdp, size, buffer = _path(rate_bps, rtt_s, file_bytes, buffer_bytes)
    if files < 1 or most_concurrency < 1:
        raise SpecError(
            f"files: {min(files, most_concurrency)} is out of range; allowed: 1 or more"
        )
    fill = round(bdp / size)
    return Knobs(
        concurrency=min(max(fill, 2), files, most_concurrency),
        parallelism=max(1, min(math.ceil(bdp / buffer), math.ceil(size / buffer))),
        pipelining=min(fill, MOST_PIPELINING),
    )


def best_pipelining(rate_bps: float, rtt_s: float, file_bytes: float) -> int:
    """⌈BDP / file⌉ − 1 (Yildirim et al. 2016): 49 for files of 1 MB at 10 Gb/s and 40 ms.

    0 from the bandwidth-delay product on: one file fills the path.

    Raises:
        SpecError: for a quantity that is not positive.
    """
    bdp, size, _ = _path(rate_bps, rtt_s, file_bytes, 1.0)
    return max(0, math.ceil(bdp / size - 1e-9) - 1)


def size_class(file_bytes: float, rate_bps: float) -> SizeClass:
    """Which class a file is in on a link of this rate, by the bytes that it carries in a second.

    Up to a twentieth of them small, up to a fifth medium, above twice huge, else large: at 10 Gb/s
    62.5 MB, 250 MB and 2.5 GB.

    Raises:
        SpecError: for a negative size or a rate that is not positive.
    """
    seconds = float(not_negative("file_bytes", file_bytes)) * 8
    share = seconds / float(positive_finite("rate_bps", rate_bps))
    if share <= 1 / 20:
        return "small"
    if share <= 1 / 5:
        return "medium"
    return "huge" if share > 2 else "large"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Files of a data set that share one setting."""

    size_class: SizeClass
    files: int
    size_bytes: int

    @property
    def file_bytes(self) -> float:
        """Mean size."""
        return self.size_bytes / self.files


def chunks_of(sizes: Sequence[int], rate_bps: float, rtt_s: float) -> tuple[Chunk, ...]:
    """A data set as chunks by class, the smallest files first; small chunks merged into near ones.

    A chunk of fewer than two files, or below five bandwidth-delay products, goes to the one whose
    mean size is nearest.

    Raises:
        SpecError: for a negative size, or a rate or time that is not positive.
    """
    found: dict[SizeClass, list[int]] = {}
    for size in sizes:
        found.setdefault(size_class(size, rate_bps), []).append(size)
    chunks = [
        Chunk(name, len(found[name]), sum(found[name])) for name in SIZE_CLASSES if name in found
    ]
    least = MERGED_BELOW_BDP * rate_bps * rtt_s / 8
    while len(chunks) > 1:
        small = next((c for c in chunks if c.files < 2 or c.size_bytes < least), None)
        if small is None:
            break
        chunks = _merged(chunks, small)
    return tuple(chunks)


def channels_for(chunks: Sequence[Chunk], channels: int) -> tuple[int, ...]:
    """Channels (concurrency) for each chunk, in proportion to weight times bytes.

    Shares are rounded down; what is left goes to chunks without one, then to those served least.
    Where there are fewer channels than chunks some have none: they follow later.

    Raises:
        SpecError: for no chunk, or fewer channels than 1.
    """
    if not chunks or channels < 1:
        raise SpecError("channels: needs at least one chunk and one channel")
    worth = [CLASS_WEIGHTS[chunk.size_class] * max(chunk.size_bytes, 1) for chunk in chunks]
    given = [channels * own // sum(worth) for own in worth]
    for _ in range(channels - sum(given)):
        empty = [index for index, count in enumerate(given) if not count]
        least = empty[0] if empty else min(range(len(given)), key=lambda i: given[i] / worth[i])
        given[least] += 1
    return tuple(given)


def _merged(chunks: list[Chunk], small: Chunk) -> list[Chunk]:
    others = [chunk for chunk in chunks if chunk is not small]

    def apart(chunk: Chunk) -> float:
        return abs(math.log(max(chunk.file_bytes, 1)) - math.log(max(small.file_bytes, 1)))

    near = min(others, key=apart)
    whole = Chunk(near.size_class, near.files + small.files, near.size_bytes + small.size_bytes)
    return [whole if chunk is near else chunk for chunk in others]


def _path(
    rate_bps: float, rtt_s: float, file_bytes: float, buffer_bytes: float
) -> tuple[float, float, float]:
    """Bandwidth-delay product, file and buffer in bytes; all checked."""
    rate = float(positive_finite("rate_bps", rate_bps))
    size = float(positive_finite("file_bytes", file_bytes))
    rtt = float(positive_finite("rtt_s", rtt_s))
    return rate * rtt / 8, size, float(positive_finite("buffer_bytes", buffer_bytes))
