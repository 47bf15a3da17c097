"""A log as its bytes are: by these it is recognised when it comes again, grown or renamed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from farline.store.disk import system_failures

HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log as its bytes are; digests are SHA-256 in hexadecimal."""

    name: str
    size_bytes: int
    digest: str
    head_digest: str


def digest_log(path: Path, sizes: Iterable[int]) -> tuple[LogFile, dict[int, str]]:
    """A log as its bytes are, and the digests of its beginnings of some sizes; one reading.

    Raises:
        SystemFailure: when it cannot be read.
    """
    digest, head, seen = hashlib.sha256(), hashlib.sha256(), 0
    beginnings: dict[int, str] = {}
    stops = sorted(sizes)
    with system_failures(f"reading {path}"), path.open("rb") as file:
        for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""):
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
