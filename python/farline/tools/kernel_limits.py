"""The largest buffers that this host's kernel gives a TCP stream."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_BUFFERS = {"send": "/proc/sys/net/ipv4/tcp_wmem", "receive": "/proc/sys/net/ipv4/tcp_rmem"}


class Buffers(NamedTuple):
    """The largest buffers that a host gives a TCP stream."""

    send_bytes: int
    receive_bytes: int


def own_buffers() -> Buffers:
    """Those of this host; 4 MiB and 6 MiB, the kernel's defaults, where they cannot be read."""

    def largest(path: str, otherwise: int) -> int:
        try:
            return int(Path(path).read_text(encoding="ascii").split()[2])
        except (OSError, ValueError, IndexError):
            return otherwise

    return Buffers(largest(_BUFFERS["send"], 4 << 20), largest(_BUFFERS["receive"], 6 << 20))
