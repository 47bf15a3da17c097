"""A log's text, a piece at a time: decompressed, decoded, with one kind of line end.

Line ends are LF, CR LF or CR. Text is UTF-8 (bytes that are none become U+FFFD) or UTF-16 with
its mark, as a Windows shell writes it. A file that ends early inside its compression gives what
came out until there, and a malformed record. What journalctl puts before each line is taken off
(`journal`).
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import SystemFailure, UsageError
from farline.formats import packing
from farline.formats.journal import without_journal
from farline.formats.packing import Content, unpacked
from farline.formats.tally import Malformed, OnMalformed, Tally, excerpt, kind_of

if TYPE_CHECKING:
    from farline.formats.mapped import Mapped

CHUNK_BYTES = 8 << 20
SAMPLE_CHARACTERS = 64 * 1024
"""By so much of its start it is known what a log is."""
LONGEST_LINE_BYTES = 1 << 20
"""A line beyond this is malformed; memory does not grow with what is no text."""

OnProgress = Callable[[int, int], None]
"""Is told bytes read and bytes in all, of the file as it lies on the disk."""

_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, each ended by LF; `first_line` counts from 1."""

    data: bytes
    first_line: int
    lines: int


class Reading:
    """One pass over a log: its text, and where counts and malformed records go."""

    def __init__(
        self,
        path: Path,
        tally: Tally,
        mapping: tuple[Mapped, ...] | None = None,
        on_malformed: OnMalformed | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Opens nothing yet."""
        self.path, self.tally, self.mapping = path, tally, mapping
        self._on_malformed, self._on_progress = on_malformed, on_progress
        self._damage: str | None = None

    @property
    def source(self) -> str:
        """How rows name this log: its file name, without the folder."""
        return self.path.name

    @property
    def damage(self) -> str | None:
        """What is wrong with the compressed data, as far as they were read."""
        return self._damage

    def malformed(self, line: int, text: str, reason: str) -> None:
        """Counts a record that could not be read, and tells whoever listens."""
        found = Malformed(line, excerpt(text), excerpt(reason))
        self.tally.add_malformed(found, kind_of(reason))
        if self._on_malformed is not None:
            self._on_malformed(found)

    def skip(self, reason: str, count: int = 1) -> None:
        """Counts records that are known to be no transfers."""
        self.tally.skip(reason, count)

    def start(self, characters: int) -> str:
        """The first characters of the log."""
        for chunk in self._unified(4 * characters):
            return chunk.decode("utf-8", "replace")[:characters]
        return ""

    def blocks(self) -> Iterator[Block]:
        """The log in blocks of whole lines; counts lines, and lines that are too long."""
        carry, line = b"", 1
        for chunk in self._unified(CHUNK_BYTES):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                block = self._block(carry + chunk[:cut], line)
                line += block.lines
                yield block
                carry = chunk[cut:]
            else:
                # Of a line without end, what goes beyond the limit need not be kept.
                carry = (carry + chunk)[: LONGEST_LINE_BYTES + 1]
        if carry:
            block = self._block(carry + b"\n", line)
            line += block.lines
            yield block
        if self._damage is not None:
            self.malformed(line, "", self._damage)

    def texts(self) -> Iterator[str]:
        """The log in pieces that end anywhere, for what is not made of lines; counts lines."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        last = "\n"
        for chunk in self._unified(CHUNK_BYTES):
            if text := decoder.decode(chunk):
                self.tally.lines += text.count("\n")
                last = text[-1]
                yield text
        if rest := decoder.decode(b"", final=True):
            last = rest
            yield rest
        self.tally.lines += last != "\n"
        if self._damage is not None:
            self.malformed(self.tally.lines, "", self._damage)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Number and text of every line that is not blank."""
        for block in self.blocks():
            texts = block.data.decode("utf-8", "replace").split("\n")
            for number, text in enumerate(texts[:-1], block.first_line):
                if len(text) > LONGEST_LINE_BYTES:
                    self.malformed(number, text, TOO_LONG)
                elif text and not text.isspace():
                    yield number, text

    def _block(self, data: bytes, first_line: int) -> Block:
        block = Block(data, first_line, data.count(b"\n"))
        self.tally.lines += block.lines
        return block

    def _unified(self, size: int) -> Iterator[bytes]:
        """UTF-8 with LF at line ends, without what a journal puts before lines."""
        return without_journal(self._lf_ended(size))

    def _lf_ended(self, size: int) -> Iterator[bytes]:
        """UTF-8 with LF at line ends. A CR at the end of a chunk waits for what follows it."""
        held = b""
        for raw in self._decoded(size):
            chunk = held + raw
            held = b"\r" if chunk.endswith(b"\r") else b""
            chunk = chunk[: len(chunk) - len(held)]
            if b"\r" in chunk:
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if chunk:
                yield chunk
        if held:
            yield b"\n"

    def _decoded(self, size: int) -> Iterator[bytes]:
        """UTF-8 without a mark, whatever the file has."""
        decoder: codecs.IncrementalDecoder | None = None
        for number, chunk in enumerate(self._chunks(size)):
            if number == 0:
                for mark, encoding in _MARKS:
                    if chunk.startswith(mark):
                        decoder = codecs.getincrementaldecoder(encoding)("replace")
                chunk = chunk.removeprefix(codecs.BOM_UTF8)
            if decoder is None:
                yield chunk
            else:
                text = decoder.decode(chunk).removeprefix("\ufeff" if number == 0 else "")
                yield text.encode("utf-8", "replace")

    def _chunks(self, size: int) -> Iterator[bytes]:
        try:
            if self.path.is_fifo():
                raise io.UnsupportedOperation("seek")
            with self.path.open("rb") as file:
                total_bytes, grown_bytes = self.path.stat().st_size, 0
                content = unpacked(file)
                while chunk := self._next(content, size):
                    grown_bytes += len(chunk)
                    yield chunk
                    if self._on_progress is not None:
                        self._on_progress(file.tell(), total_bytes)
                    most = max(packing.MOST_GROWN_BYTES, total_bytes * packing.MOST_GROWTH)
                    if content is not file and grown_bytes > most:
                        self._damage = (
                            f"the data expand to more than {packing.MOST_GROWTH:,} times the file "
                            "size, which no log does: the rest is left out"
                        )
                        return
        except io.UnsupportedOperation as failure:
            raise UsageError(
                f"cannot read {self.path}: a log is read more than once, which a pipe cannot be; "
                "write it to a file first"
            ) from failure
        except OSError as failure:
            raise SystemFailure(f"cannot read {self.path}: {failure.strerror}") from failure

    def _next(self, content: Content, size: int) -> bytes:
        try:
            return content.read(size)
        except packing.DAMAGES as failure:
            self._damage = f"the compressed data end early or are damaged: {failure}"
        except OSError as failure:
            # Some modules say with an OSError without a number that their data are none.
            if failure.errno is not None:
                raise
            self._damage = f"the compressed data end early or are damaged: {failure}"
        return b""


TOO_LONG = f"the line is longer than {LONGEST_LINE_BYTES >> 20} MiB"
