"""The mark by which the lines of a farline on another host are told from all other text.

What a remote shell prints (a window's title, a greeting, an echo of the command) may stand before,
between and behind farline's own lines, with a newline at its end or without. So each start has a
fresh `nonce`, and every line of the farline that was started begins with the mark made of it. The
mark is not the nonce, so that an echo of the command line is not taken for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from farline.errors import ProtocolError

MAX_LINE_BYTES = 4 << 20
"""Most bytes of one marked line."""

MAX_NOISE_BYTES = 64 << 20
"""Most that a host may print beside farline's lines before it is taken for endless."""

TAIL_BYTES = 8 << 10
"""As much of the end of a foreign text is kept, to be quoted."""

_NONCE = re.compile(r"[0-9a-f]{32}")
_ASKED = re.compile(r"--mark[ =]([0-9a-f]{32})(?![0-9a-f])")


def new_nonce() -> str:
    """One that nobody has seen."""
    return os.urandom(16).hex()


def mark_of(nonce: str) -> str:
    """What begins a line of the farline that was started with `nonce`.

    Raises:
        ValueError: when that is no nonce.
    """
    if not _NONCE.fullmatch(nonce):
        raise ValueError(f"{nonce!r} is not 32 hexadecimal digits")
    return f"farline-{nonce[::-1]}:"


def asked_nonce(environment: Mapping[str, str]) -> str | None:
    """The nonce in the command that a client of sshd asked for where a forced one runs instead."""
    found = _ASKED.search(environment.get("SSH_ORIGINAL_COMMAND", ""))
    return found[1] if found else None


class Tail:
    """The end of a text of any length."""

    def __init__(self) -> None:
        """Of nothing yet."""
        self.bytes = b""
        self.count = 0
        """Bytes in all."""

    def add(self, more: bytes) -> None:
        """The text goes on."""
        self.count += len(more)
        self.bytes = (self.bytes + more[-TAIL_BYTES:])[-TAIL_BYTES:]


class MarkedLines:
    """Finds the marked lines in a stream of anything."""

    def __init__(self, mark: str) -> None:
        """Of a farline that begins its lines with `mark`."""
        self._mark = mark.encode()
        self._rest = b""
        self.noise = Tail()
        """What was none of farline's, since the last marked line."""

    def feed(self, data: bytes) -> None:
        """The stream goes on."""
        self._rest += data

    def next(self) -> bytes | None:
        """The next line without its mark, or None until more has come.

        Raises:
            ProtocolError: when a line, or what is none, has no end.
        """
        at = self._rest.find(self._mark)
        if at < 0:
            # The mark may have begun at the end of what has come.
            kept = min(len(self._rest), len(self._mark) - 1)
            self._skip(len(self._rest) - kept)
            return None
        self._skip(at)
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            if len(line) > MAX_LINE_BYTES:
                raise ProtocolError(
                    f"farline on that host sent a line longer than {MAX_LINE_BYTES} bytes"
                )
            return None
        self._rest, self.noise = rest, Tail()
        return line[len(self._mark) :]

    def _skip(self, size: int) -> None:
        self.noise.add(self._rest[:size])
        self._rest = self._rest[size:]
        if self.noise.count > MAX_NOISE_BYTES:
            raise ProtocolError(
                f"the remote shell printed more than {MAX_NOISE_BYTES >> 20} MiB"
                " beside farline's lines"
            )

    @property
    def said(self) -> bytes:
        """The end of what has come and is no whole line of farline's."""
        return (self.noise.bytes + self._rest)[-TAIL_BYTES:]
