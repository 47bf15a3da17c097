"""Numbers and texts out of the bytes of many lines at once.

Places are indexes into the bytes of a block; a row's piece goes from its start to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Places = NDArray[np.int64]
    Flags = NDArray[np.bool_]
    Words = NDArray[np.uint64]

_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x0606060606060606)
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_FOUR, _EIGHT, _SIXTEEN, _HALF = (np.uint64(bits) for bits in (4, 8, 16, 32))
_PAIRS = np.uint64(0x000000FF000000FF)
_FIRST, _SECOND = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))


def integers(words: Words, start: Places, end: Places) -> tuple[Places, Flags]:
    """Decimal numbers of 1 to 18 digits between places, and which are such numbers.

    `words` are the eight bytes from each place on; eight places before `start` there are some.
    """
    lengths = end - start
    fits: Flags = (lengths >= 1) & (lengths <= 18)
    value = np.zeros(len(start), np.int64)
    scale, done = 1, 0
    while done == 0 or (fits & (lengths > done)).any():
        part, is_number = _eight(words, end - done, np.clip(lengths - done, 0, 8))
        value += part * scale
        fits &= is_number
        scale, done = scale * 10**8, done + 8
    return value, fits


def _eight(words: Words, end: Places, lengths: Places) -> tuple[Places, Flags]:
    """Numbers of at most eight digits before `end`, all digits of a number at the same time.

    What stands before a shorter one is made zeros. Neighbours are joined to pairs by a
    multiplication, pairs to fours, fours to eights.
    """
    word = words[np.maximum(end - 8, 0)]
    # Shifts by all 64 bits are none in C, so the shift is in two parts.
    spare = (8 * (8 - lengths)).astype(np.uint64)
    kept = ~np.uint64(0) << (spare // np.uint64(2)) << (spare - spare // np.uint64(2))
    word = (word & kept) | (_ZEROS & ~kept)
    fits: Flags = (word & _HIGH | ((word + _SIXES) & _HIGH) >> _FOUR) == _ZEROS | _ZEROS >> _FOUR
    word = word - _ZEROS
    word = word * np.uint64(10) + (word >> _EIGHT)
    word = (word & _PAIRS) * _FIRST + (word >> _SIXTEEN & _PAIRS) * _SECOND
    return (word >> _HALF).astype(np.int64), fits


class Texts:
    """Pieces of the bytes, one for each row, gathered one behind another."""

    def __init__(self, data: Bytes, start: Places, end: Places) -> None:
        lengths = np.maximum(end - start, 0)
        self.offsets: Places = np.concatenate(([0], np.cumsum(lengths)))
        self.row_of: Places = np.repeat(np.arange(len(start)), lengths)
        within = np.arange(self.offsets[-1]) - self.offsets[self.row_of]
        self.bytes: Bytes = data[start[self.row_of] + within]

    def rows_with_odd_bytes(self) -> Places:
        """Rows with spaces, commas, brackets or what is not printable ASCII."""
        odd = (self.bytes < ord("!")) | (self.bytes > ord("~"))
        for character in ",[]":
            odd |= self.bytes == ord(character)
        return self.row_of[odd]

    def arrow(self) -> pa.Array:
        """The texts; null for empty ones and for the address that stands for any."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.StringArray.from_buffers(
            len(self.offsets) - 1,
            pa.py_buffer(self.offsets.astype(np.int32)),
            pa.py_buffer(self.bytes),
        )
        nobody = pc.is_in(texts, pa.array(["", "0.0.0.0"]))
        return pc.if_else(nobody, pa.scalar(None, pa.string()), texts)

    def sums(self) -> tuple[Places, Flags]:
        """Of texts such as `1,22,333` the sums, and which texts are of that form."""
        lengths = np.diff(self.offsets)
        filled = np.flatnonzero(lengths)
        firsts, lasts = self.offsets[:-1][filled], self.offsets[1:][filled] - 1
        comma = self.bytes == ord(",")
        digit = self.bytes.astype(np.int64) - ord("0")
        # A number ends before a comma or where the next row starts.
        is_end = np.zeros(len(self.bytes) + 1, np.bool_)
        is_end[np.flatnonzero(comma)] = True
        is_end[self.offsets[1:]] = True
        is_end[0] = False
        ends = np.flatnonzero(is_end)
        power = np.repeat(ends, np.diff(ends, prepend=0)) - np.arange(len(self.bytes)) - 1
        wrong = ~comma & ((digit < 0) | (digit > 9) | (power > 16))
        # An empty number: a comma at the start, at the end, or behind another.
        wrong[firsts] |= comma[firsts]
        wrong[lasts] |= comma[lasts]
        wrong[1:] |= comma[1:] & comma[:-1]
        value = np.where(comma | wrong, 0, digit) * 10 ** np.clip(power, 0, 16)
        total = np.zeros(len(lengths), np.int64)
        if len(filled):
            total[filled] = np.add.reduceat(value, firsts)
        # So many numbers of up to 17 digits cannot overflow.
        fits = (lengths > 0) & (lengths < 90)
        fits[self.row_of[wrong]] = False
        return total, fits
