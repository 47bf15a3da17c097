"""What a log may be packed in: compression, told by its first bytes, and its limits.

gzip, bzip2, xz and Zstandard are read as a stream; memory does not grow with what comes out. What
makes more of itself than any log does is given up, and so is what needs a window beyond all use.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

MOST_GROWTH = 2000
"""How many times its packed size a log may have..."""
MOST_GROWN_BYTES = 4 << 30
"""...beyond this size. Logs shrink to a twentieth, and to a hundredth where lines are alike."""
MOST_XZ_MEMORY_BYTES = 1 << 30

_PIECE_BYTES = 64 << 10

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"

DAMAGES = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
"""What says that packed data are none; besides, an OSError without a number does."""


class Content(Protocol):
    """What can be read a piece at a time."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`; none at the end."""


def unpacked(file: IO[bytes]) -> Content:
    """The content of an open file, unpacked if it starts as packed files do."""
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(_GZIP):
        return _InPieces(gzip.GzipFile(fileobj=file))
    if magic.startswith(_BZIP2):
        return _InPieces(bz2.BZ2File(file))
    if magic == _XZ:
        return _InPieces(_Xz(file))
    if magic.startswith(_ZSTD):
        return _InPieces(_Zstd(file))
    return file


class _InPieces:
    """Content that is read a little at a time: damage takes but a little with it."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._failure: Exception | None = None

    def read(self, size: int, /) -> bytes:
        """The next bytes; what came before damage first, and then the damage."""
        if self._failure is not None:
            raise self._failure
        parts: list[bytes] = []
        wanted = size
        try:
            while wanted > 0 and (part := self._content.read(min(wanted, _PIECE_BYTES))):
                parts.append(part)
                wanted -= len(part)
        except (*DAMAGES, OSError) as failure:
            self._failure = failure
            if not parts:
                raise
        return b"".join(parts)


class _Xz:
    """An xz file, with a limit to the memory that its header may ask for."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decompressor = self._new()
        self._held = b""

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_XZ_MEMORY_BYTES)

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        while True:
            if self._decompressor.eof:
                # Files may stand one behind another, with zeros between them.
                self._held = self._decompressor.unused_data or self._held
                rest = (self._held or self._file.read(1 << 16)).lstrip(b"\x00")
                if not rest:
                    return b""
                self._decompressor, self._held = self._new(), rest
            if self._decompressor.needs_input and not self._held:
                self._held = self._file.read(1 << 16)
                if not self._held:
                    raise EOFError("the file is truncated")
            given, self._held = self._held, b""
            if out := self._decompressor.decompress(given, size):
                return out


class _Zstd:
    """A Zstandard file."""

    def __init__(self, file: IO[bytes]) -> None:
        import pyarrow as pa

        self._stream: pa.NativeFile = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        return bytes(self._stream.read(size))
