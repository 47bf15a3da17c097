"""A log as its bytes are: by these it is recognised when it comes again, grown or renamed.

The bytes are those of its text: packed with gzip or bzip2, a log is the same log.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from farline.store.disk import system_failures

HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log as its bytes are, unpacked; digests are SHA-256 in hexadecimal.

    Of a file that is damaged inside its compression it is the bytes as they lie on the disk.
    """

    name: str
    size_bytes: int
    digest: str
    head_digest: str


def digest_log(path: Path, sizes: Iterable[int]) -> tuple[LogFile, dict[int, str]]:
    """A log as its bytes are, and the digests of its beginnings of some sizes; one reading.

    Raises:
        SystemFailure: when it cannot be read.
    """
    stops = sorted(sizes)
    with system_failures(f"reading {path}"):
        try:
            return _digest(path, stops, unpack=True)
        except _Damaged:
            return _digest(path, stops, unpack=False)


class _Damaged(Exception):
    """The compressed data are none, or end early."""


def _digest(path: Path, sizes: Iterable[int], unpack: bool) -> tuple[LogFile, dict[int, str]]:
    digest, head, seen = hashlib.sha256(), hashlib.sha256(), 0
    beginnings: dict[int, str] = {}
    stops = list(sizes)
    with path.open("rb") as file:
        for chunk in _chunks(file, unpack):
            head.update(chunk[: max(0, HEAD_BYTES - seen)])
            done = 0
            while stops and stops[0] <= seen + len(chunk):
                stop = stops.pop(0)
                digest.update(chunk[done : stop - seen])
                done = stop - seen
                beginnings[stop] = digest.hexdigest()
            digest.update(chunk[done:])
            seen += len(chunk)
    return LogFile(path.name, seen, digest.hexdigest(), head.hexdigest()), beginnings


def _chunks(file: IO[bytes], unpack: bool) -> Iterator[bytes]:
    magic = file.read(3)
    file.seek(0)
    content = file
    if unpack and magic[:2] == b"\x1f\x8b":
        content = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
    elif unpack and magic == b"BZh":
        content = bz2.BZ2File(file)
    while chunk := _next(content):
        yield chunk


def _next(content: IO[bytes]) -> bytes:
    try:
        return content.read(_CHUNK_BYTES)
    except (EOFError, zlib.error) as error:
        raise _Damaged from error
    except OSError as error:
        # Both modules say with an OSError without a number that the data are none.
        if error.errno is not None:
            raise
        raise _Damaged from error
