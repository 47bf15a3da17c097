"""The last link samples of a bed, in bounded memory."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ROWS_MAX = 400_000
"""Rows kept: 70 MB. Two directions of one link every 100 ms fill them in five hours."""


@dataclass(frozen=True)
class _Chunk:
    first: int
    rows: int
    columns: Mapping[str, bytes]


class History:
    """Rows of samples, numbered from 0 since the bed started; the oldest are forgotten."""

    def __init__(self, rows_max: int = ROWS_MAX) -> None:
        """Keeps about `rows_max` rows."""
        self._rows_max = rows_max
        self._chunks: deque[_Chunk] = deque()
        self._names: tuple[str, ...] = ()
        self.end = 0
        """Number of the row that comes next."""

    def append(self, rows: int, columns: Mapping[str, bytes]) -> None:
        """Adds rows; a column is little-endian 64-bit integers."""
        self._names = tuple(columns)
        if not rows:
            return
        self._chunks.append(_Chunk(self.end, rows, columns))
        self.end += rows
        while len(self._chunks) > 1 and self.end - self._chunks[1].first >= self._rows_max:
            self._chunks.popleft()

    @property
    def start(self) -> int:
        """Number of the oldest row kept."""
        return self._chunks[0].first if self._chunks else self.end

    def since(self, row: int) -> dict[str, Any]:
        """Rows from number `row` on, as an answer.

        `columns` are base64 texts of little-endian 64-bit integers, `next` is the number to ask
        with next time, `lost_rows` how many of those asked for are forgotten.
        """
        wanted = [chunk for chunk in self._chunks if chunk.first + chunk.rows > row]
        parts = {
            name: b"".join(_tail(chunk, name, row) for chunk in wanted) for name in self._names
        }
        return {
            "next": self.end,
            "lost_rows": max(0, self.start - row),
            "columns": {
                name: base64.b64encode(data).decode("ascii") for name, data in parts.items()
            },
        }


def _tail(chunk: _Chunk, name: str, row: int) -> bytes:
    """A column of a chunk from row `row` on."""
    return chunk.columns[name][8 * max(0, row - chunk.first) :]
