"""What is to be copied, cut into parts that pairs of nodes carry at the same time. Pure.

Parts become smaller towards the end, as in factoring (Hummel, Schonberg and Flynn 1992): each round
gives every pair an equal share of half of what is left. A slow pair takes fewer parts, and the last
ones are short. A file that is longer than a part is cut; small ones go together.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from farline.errors import UsageError

FILE_COST_BYTES = 64 * 1024
"""What a file costs beside its content, as bytes that could have been sent."""
LEAST_BYTES = 8 << 20
"""A shorter part costs more to begin than another pair could help."""
LEAST_FILES = 32
CUT_BYTES = 4 << 20
"""Files are cut at multiples of it."""
MOST_NAMES = 4_096
MOST_NAME_BYTES = 256 * 1024
"""Names travel in one line."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file that is to be copied."""

    path: str
    """Below the destination."""
    size: int


@dataclass(frozen=True, slots=True)
class Part:
    """What one session carries."""

    number: int
    base: str
    """Folder at the source in which the names are."""
    names: tuple[str, ...]
    size: int
    """Bytes of content."""
    span: tuple[int, int] | None = None
    """Offset and length, where it is a piece of the one file."""


@dataclass(frozen=True, slots=True)
class Bases:
    """Folders at the source that paths below the destination come from.

    `by_name`: by the first name of the path, of sources without a slash at their end; `content`:
    the source of which the content is copied, if there is one.
    """

    by_name: Mapping[str, str]
    content: str | None

    @classmethod
    def of(cls, sources: Sequence[str]) -> Bases:
        """Of sources as they are written.

        Raises:
            UsageError: when it cannot be told of which source a path is.
        """
        by_name: dict[str, str] = {}
        content: list[str] = []
        for source in sources:
            name = source.rstrip("/").rpartition("/")[2]
            if any(sign in name for sign in "*?["):
                if source.endswith("/"):
                    raise UsageError(
                        f"{source}: over several nodes a pattern cannot be followed by a slash; "
                        f"write {source.rstrip('/')}, or name the folders one by one"
                    )
                content.append(_parent(source))
            elif source.endswith("/") or name in ("", ".", ".."):
                content.append(source)
            else:
                by_name[name] = _parent(source)
        if len(set(content)) > 1:
            raise UsageError(
                f"{content[0]} and {content[1]}: over several nodes only one source may stand for "
                "what is in it; leave out the slash at the end of the others, or run two copies"
            )
        return cls(by_name, content[0] if content else None)

    def of_path(self, path: str) -> str | None:
        """The folder that `path` is in at the source; None where that is not known."""
        return self.by_name.get(path.partition("/")[0], self.content)


def _parent(source: str) -> str:
    """The folder that the name of a source is in."""
    parent, slash, _ = source.rstrip("/").rpartition("/")
    return parent or ("/" if slash else ".")


def parts_of(files: Iterable[Listed], bases: Bases, lanes: int) -> list[Part]:
    """Parts for `lanes` pairs of nodes, in the order in which they are to be taken.

    Files of which the source is not known are in none: the session that ends the copy carries them.
    """
    known = [(base, one) for one in files if one.size and (base := bases.of_path(one.path))]
    shares = _Shares(sum(one.size + FILE_COST_BYTES for _, one in known), lanes)
    large = [(base, one) for base, one in known if one.size > LEAST_BYTES]
    small = [(base, one) for base, one in known if one.size <= LEAST_BYTES]
    parts: list[Part] = []
    for base, one in sorted(large, key=lambda found: -found[1].size):
        parts += _pieces(base, one, shares, len(parts))
    parts += _batches(small, shares, len(parts), math.ceil(len(small) / (2 * lanes)))
    return parts


def lists_of(files: Iterable[Listed], bases: Bases) -> list[Part]:
    """Whole files in lists that fit into an order, those of one source folder together.

    Raises:
        UsageError: for a file of which the source is not known.
    """
    by_base: dict[str, list[Listed]] = {}
    for one in files:
        base = bases.of_path(one.path)
        if base is None or any(sign in base for sign in "*?["):
            raise UsageError(
                f"{one.path}: cannot tell which source it is from: with --own-disks, write "
                "patterns only in the last name of a source"
            )
        by_base.setdefault(base, []).append(one)
    parts: list[Part] = []
    for base, ours in by_base.items():
        batch = _Batch(MOST_NAMES)
        for one in ours:
            if batch.names and not batch.has_room(one, share=sys.maxsize):
                parts.append(batch.part(len(parts), base))
                batch = _Batch(MOST_NAMES)
            batch.add(one)
        parts.append(batch.part(len(parts), base))
    return parts


class _Shares:
    """How much the next part should have: each round half of what is left, by all pairs alike."""

    def __init__(self, total: int, lanes: int) -> None:
        self._left, self._lanes, self._taken = total, lanes, 0
        self._share = 0

    def next(self) -> int:
        if self._taken % self._lanes == 0:
            self._share = max(LEAST_BYTES, math.ceil(self._left / 2 / self._lanes))
        return self._share

    def took(self, size: int) -> None:
        self._taken += 1
        self._left = max(0, self._left - size)


def _pieces(base: str, one: Listed, shares: _Shares, first: int) -> Iterator[Part]:
    """A large file, whole or in pieces."""
    at, number = 0, first
    while at < one.size:
        length = max(CUT_BYTES, shares.next() // CUT_BYTES * CUT_BYTES)
        if one.size - at < 1.5 * length:
            length = one.size - at
        span = None if length == one.size else (at, _whole_grains(length))
        yield Part(number, base, (one.path,), length, span)
        shares.took(length)
        at, number = at + length, number + 1


def _whole_grains(length: int) -> int:
    return math.ceil(length / FILE_COST_BYTES) * FILE_COST_BYTES


def _batches(
    files: Sequence[tuple[str, Listed]], shares: _Shares, first: int, most: int
) -> Iterator[Part]:
    """Small files, some together; those of one part are in one folder at the source."""
    by_base: dict[str, list[Listed]] = {}
    for base, one in files:
        by_base.setdefault(base, []).append(one)
    number = first
    for base, ours in by_base.items():
        batch = _Batch(max(most, LEAST_FILES))
        for one in ours:
            if batch.names and not batch.has_room(one, shares.next()):
                yield batch.part(number, base)
                shares.took(batch.cost)
                batch, number = _Batch(max(LEAST_FILES, most)), number + 1
            batch.add(one)
        yield batch.part(number, base)
        shares.took(batch.cost)
        number += 1


class _Batch:
    """Small files that go together."""

    def __init__(self, most_names: int) -> None:
        self.names: list[str] = []
        self.cost = self._size = self._name_bytes = 0
        self._most_names = min(MOST_NAMES, most_names)

    def has_room(self, one: Listed, share: int) -> bool:
        return (
            self.cost < share
            and len(self.names) < self._most_names
            and self._name_bytes + 6 * len(one.path) < MOST_NAME_BYTES
        )

    def add(self, one: Listed) -> None:
        self.names.append(one.path)
        self.cost += one.size + FILE_COST_BYTES
        self._size += one.size
        # As much as JSON makes of a character.
        self._name_bytes += 6 * len(one.path)

    def part(self, number: int, base: str) -> Part:
        return Part(number, base, tuple(self.names), self._size)
