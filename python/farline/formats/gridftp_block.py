"""Many lines of a GridFTP transfer log at once, as arrays.

A line of the log has a handful of `=`; the eight bytes up to each, as one number, say which field
starts there. Lines in which every field is there once and in order, with nothing unusual in it,
become rows here. All others are left to `gridftp.parse_line`, which is the definition: what is
read here is what it would have read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from farline.formats.byte_columns import Texts, integers
from farline.formats.gridftp_fields import (
    COMPLETE_CODE,
    EMPTY,
    HEAD,
    LISTING,
    LISTINGS,
    RECEIVED,
    SENT,
    TAIL,
)
from farline.formats.rows import LATEST_US, MOST_INT32, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.formats.byte_columns import Bytes, Flags, Places, Words

KEYS = (*HEAD, *TAIL)
RETRANS = "retrans"
PAD = b"\n" * 8
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@dataclass(frozen=True)
class Parsed:
    """What a block came to.

    `others` are the lines that are left: index from 0, first byte, end (without the line end).
    """

    table: pa.Table
    transfers: int
    failed: int
    skipped: dict[str, int] = field(default_factory=dict)
    others: list[tuple[int, int, int]] = field(default_factory=list)


def parse_block(data: bytes, source: str) -> Parsed:
    """The rows of a block of whole lines, each ended by LF."""
    block = _Block(data)
    regular = np.flatnonzero(block.regular)
    lines = _Lines(block, regular)
    kept = lines.columns(source)
    rest = ~block.regular
    rest[regular[~lines.ok]] = True
    others = np.flatnonzero(rest)
    pad = len(PAD)
    return Parsed(
        table=kept,
        transfers=int(np.count_nonzero(lines.kept & lines.complete)),
        failed=int(np.count_nonzero(lines.kept & ~lines.complete)),
        skipped={
            LISTING: int(np.count_nonzero(lines.ok & lines.listing)),
            EMPTY: int(np.count_nonzero(lines.ok & lines.empty)),
        },
        others=list(
            zip(
                others.tolist(),
                (block.starts[others] - pad).tolist(),
                (block.ends[others] - pad).tolist(),
                strict=True,
            )
        ),
    )


def _window(text: str) -> tuple[np.uint64, np.uint64]:
    """The last eight bytes of `text` as a number, and how many bits of eight bytes they leave."""
    tail = text.encode()[-8:]
    return np.uint64(int.from_bytes(tail, "little")), np.uint64(64 - 8 * len(tail))


class _Block:
    """Where lines and fields are: places in the padded bytes of the block."""

    def __init__(self, data: bytes) -> None:
        padded = PAD + data
        self.bytes: Bytes = np.frombuffer(padded, np.uint8)
        # The eight bytes from each place on; they need not be aligned.
        self.words: Words = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
        self.ends: Places = np.flatnonzero(self.bytes[len(PAD) :] == ord("\n")) + len(PAD)
        self.starts: Places = np.concatenate(([len(PAD)], self.ends[:-1] + 1))
        self.regular: Flags = np.ones(len(self.ends), np.bool_)
        self.places: dict[str, Places] = {}
        self._find_all()

    def _find_all(self) -> None:
        """Fills `places` with where each field's `=` is, and `regular` with lines that have all.

        The first `=` of a line belong to the fields in front of the file name, the last ones to
        those behind it; whatever is between them is the name's.
        """
        equals = np.append(np.flatnonzero(self.bytes == ord("=")), len(PAD))
        first = np.searchsorted(equals[:-1], self.starts)
        last = np.searchsorted(equals[:-1], self.ends) - 1
        fits, place = self._is(RETRANS, equals, last)
        self.places[RETRANS] = np.where(fits & (last >= first), place, 0)
        last = last - fits
        last = last - self._is("TASKID", equals, last)[0]
        self.regular &= last - first >= len(KEYS) - 1
        for index, name in enumerate(KEYS):
            at = first + index if name in HEAD else last - (len(KEYS) - 1 - index)
            fits, self.places[name] = self._is(name, equals, at)
            self.regular &= fits

    def _is(self, name: str, equals: Places, index: Places) -> tuple[Flags, Places]:
        """Whether the `=` of each line with that index is the field's, and where it is."""
        place: Places = equals.take(index, mode="clip")
        # All but DATE, which may start the line, have a space before them.
        text = f"{name}=" if name == "DATE" else f" {name}="
        wanted, spare = _window(text)
        fits: Flags = self.words[place - 7] >> spare == wanted
        if name == "DATE" or len(text) > 8:
            ahead = self.bytes[place - len(name) - 1]
            fits &= (ahead == ord(" ")) | ((name == "DATE") & (ahead == ord("\n")))
        return fits, place


class _Lines:
    """The regular lines of a block, and which of them hold."""

    def __init__(self, block: _Block, regular: Places) -> None:
        self._block, self._regular = block, regular
        self._bytes = block.bytes
        self._at = {name: place[regular] for name, place in block.places.items()}
        self._ends = block.ends[regular]
        self.ok: Flags = np.ones(len(regular), np.bool_)
        self._read()

    def _value(self, name: str) -> tuple[Places, Places]:
        """Where the value of a field starts and ends; not for the last field."""
        following = KEYS[KEYS.index(name) + 1]
        return self._at[name] + 1, self._at[following] - len(following) - 1

    def _read(self) -> None:
        kind = self._word4("TYPE")
        self.sent = np.isin(kind, _words(SENT))
        self.listing = np.isin(kind, _words(LISTINGS))
        self.code = self._code()
        self.complete: Flags = self.code == int(COMPLETE_CODE)
        numbers = {name: self._whole(name) for name in ("NBYTES", "BUFFER", "BLOCK")}
        self.numbers = {
            **numbers,
            "STREAMS": self._whole("STREAMS"),
            "STRIPES": self._whole("STRIPES"),
        }
        self.empty: Flags = self.complete & (numbers["NBYTES"] == 0) & ~self.listing
        self.start_us, self.end_us = self._stamp("START"), self._stamp("DATE")
        took = self.end_us - self.start_us
        fine = (took > 0) | ((took == 0) & ~self.complete)
        streams = self.numbers["STREAMS"] * self.numbers["STRIPES"]
        for bound in (self.numbers["STREAMS"], self.numbers["STRIPES"], streams):
            fine &= bound <= MOST_INT32
        self.streams = streams
        self.ok &= fine & (self.start_us <= LATEST_US)
        self.ok &= np.isin(kind, _words((*SENT, *RECEIVED, *LISTINGS)))
        self.here, self.there = self._host(*self._value("HOST")), self._peer()
        self.retransmits, self.has_retransmits = self._retrans()
        self.device = self._device()
        self.kept: Flags = self.ok & ~self.listing & ~self.empty

    def _word4(self, name: str) -> Words:
        """Values of four bytes as numbers; lines with another length do not hold."""
        start, end = self._value(name)
        self.ok &= end - start == 4
        return self._block.words[end - 8] >> np.uint64(32)

    def _code(self) -> Places:
        """The three digits behind CODE, which a space or the line end follows."""
        end = np.minimum(self._at["CODE"] + 4, self._ends)
        self.ok &= (self._bytes[end] == ord(" ")) | (end == self._ends)
        value, fits = integers(self._block.words, self._at["CODE"] + 1, end)
        self.ok &= fits & (end == self._at["CODE"] + 4)
        return value

    def _whole(self, name: str) -> Places:
        value, fits = integers(self._block.words, *self._value(name))
        self.ok &= fits
        return value

    def _stamp(self, name: str) -> Places:
        """Microseconds since 1970 of `20261121195928.781445`."""
        start, end = self._value(name)
        words = self._block.words
        long_enough = end - start > 15
        start = np.where(long_enough, start, len(PAD))
        date, fits = integers(words, start, start + 8)
        clock, fits_too = integers(words, start + 8, start + 14)
        micros, whole = integers(words, start + 15, np.minimum(end, start + 22))
        fits = fits & fits_too & whole & long_enough & (end - start <= 21)
        fits &= self._bytes[start + 14] == ord(".")
        year, month, day = date // 10_000, date // 100 % 100, date % 100
        hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
        fits &= (year >= 1970) & (year <= 2200) & (month >= 1) & (month <= 12)
        leap = (month == 2) & (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
        fits &= (day >= 1) & (day <= _DAYS[np.clip(month, 1, 12) - 1] + leap)
        self.ok &= fits & (hour < 24) & (minute < 60) & (second < 60)
        months = np.where(fits, (year - 1970) * 12 + month - 1, 0)
        days = months.astype("M8[M]").astype("M8[D]").astype(np.int64) + day - 1
        seconds: Places = ((days * 24 + hour) * 60 + minute) * 60 + second
        return seconds * 1_000_000 + micros

    def _host(self, start: Places, end: Places) -> Texts:
        """Texts that need no second look: printable, no brackets, no IPv6 form of IPv4."""
        texts = Texts(self._bytes, start, end)
        self.ok[texts.rows_with_odd_bytes()] = False
        self.ok &= ~((end > start) & (self._bytes[start] == ord(":")))
        return texts

    def _peer(self) -> Texts:
        start, end = self._value("DEST")
        fits = (end - start >= 2) & (self._bytes[start] == ord("["))
        fits &= self._bytes[end - 1] == ord("]")
        self.ok &= fits
        return self._host(np.where(fits, start + 1, start), np.where(fits, end - 1, start))

    def _retrans(self) -> tuple[Places, Flags]:
        """Sums of `1,2,3` behind ` retrans=`, and which lines have one."""
        at = self._at[RETRANS]
        has: Flags = at > 0
        start = np.where(has, at + 1, self._ends)
        end = self._ends.copy()
        texts = Texts(self._bytes, start, end)
        value, fits = texts.sums()
        self.ok &= fits | ~has
        return value, has

    def columns(self, source: str) -> pa.Table:
        """The kept lines as a table."""
        import pyarrow as pa

        size = len(self.ok)
        took_s = (self.end_us - self.start_us) / 1e6
        rate = np.divide(self.numbers["NBYTES"] * 8.0, took_s, out=np.zeros(size), where=took_s > 0)
        here, there = self.here.arrow(), self.there.arrow()
        columns = {
            "tool": _same("gridftp", size),
            "modality": pa.array(np.where(self.device, "T", "E").astype(object), pa.string()),
            "started_at": pa.array(self.start_us.view("M8[us]")),
            "duration_s": pa.array(took_s),
            "bytes": pa.array(self.numbers["NBYTES"]),
            "rate_bps": pa.array(rate, mask=~self.complete),
            "complete": pa.array(self.complete),
            "code": _codes().take(pa.array(np.where(self.ok, self.code, 0))),
            "from_host": _either(self.sent, here, there),
            "to_host": _either(self.sent, there, here),
            "streams": _above_zero(self.streams, pa.int32()),
            "parallelism": _above_zero(self.numbers["STREAMS"], pa.int32()),
            "stripes": _above_zero(self.numbers["STRIPES"], pa.int32()),
            "files": pa.array(np.ones(size, np.int64)),
            "buffer_bytes": _above_zero(self.numbers["BUFFER"], pa.int64()),
            "block_bytes": _above_zero(self.numbers["BLOCK"], pa.int64()),
            "retransmits": pa.array(self.retransmits, mask=~self.has_retransmits),
            "source": _same(source, size),
        }
        schema = arrow_schema()
        whole = [columns.get(one.name, pa.nulls(size, one.type)) for one in schema]
        table = pa.Table.from_arrays(whole, schema=schema)
        return table if self.kept.all() else table.filter(pa.array(self.kept))

    def _device(self) -> Flags:
        """Whether the file is `/dev/zero` or `/dev/null`."""
        start, end = self._value("FILE")
        name = self._block.words[end - 8]
        is_device: Flags = np.isin(name, [_window("dev/zero")[0], _window("dev/null")[0]])
        plain = (end - start == 9) & (self._bytes[start] == ord("/"))
        # `//dev/null` is one, `/data/dev/null` is none: not told apart here.
        self.ok &= plain | ~is_device
        return is_device


def _words(names: tuple[str, ...]) -> list[int]:
    return [int.from_bytes(name.encode(), "little") for name in names]


@cache
def _codes() -> pa.Array:
    """The text of every code of three digits, by its number."""
    import pyarrow as pa

    return pa.array([f"{code:03d}" for code in range(1000)], pa.string())


def _same(text: str, size: int) -> pa.Array:
    import pyarrow as pa

    return pa.repeat(pa.scalar(text, pa.string()), size)


def _above_zero(values: Places, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, mask=values <= 0).cast(kind, safe=False)


def _either(first: Flags, one: pa.Array, other: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pa.array(first), one, other)
