"""The keeper's socket: one JSON document a line, a request and its answer in turn.

A request is `{"do": WORD, ...}`, its answer `{"ok": VALUE}` or `{"failed": FAILURE}`. Both ends
are here, so that they cannot differ. Sockets are reached through the open folder, because the
path of a socket may have no more than 107 characters.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farline.errors import ProtocolError, UnreachableError, from_failure

SOCKET_NAME = "control"
LINE_MAX_BYTES = 256 * 1024 * 1024
"""Longest line: a whole history of samples."""

REQUEST_MAX_BYTES = 1024 * 1024
_READ_BYTES = 1 << 18
ANSWER_TIMEOUT_S = 20.0
"""Time for one answer; a whole history of samples takes a second."""


@contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """A short path of the socket in `folder`, however long that one's is."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)


def listen(folder: Path) -> socket.socket:
    """The socket that the keeper of the bed in `folder` listens on, for its user alone."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short_path(folder) as path:
        listener.bind(path)
        Path(path).chmod(0o600)
    listener.listen(16)
    return listener


def encode(document: Any) -> bytes:
    """A document as a line."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


class LineReader:
    """Bytes in, lines out.

    Raises:
        ProtocolError: from `feed`, when a line is longer than allowed.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Holds lines of at most `limit_bytes`."""
        self._limit_bytes = limit_bytes
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Lines that `data` completes, without their ends."""
        self._held += data
        lines: list[bytes] = []
        if b"\n" in data:
            *lines, rest = bytes(self._held).split(b"\n")
            self._held = bytearray(rest)
        if len(self._held) > self._limit_bytes:
            raise ProtocolError(f"testbed: received a line of more than {self._limit_bytes} bytes")
        return lines


class Control:
    """A connection to a keeper; requests from several threads wait for each other."""

    def __init__(self, folder: Path) -> None:
        """Connects to the keeper of the bed in `folder`.

        Raises:
            UnreachableError: when there is none.
        """
        self._name = folder.name
        self._lock = threading.Lock()
        self._lines = LineReader(LINE_MAX_BYTES)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_TIMEOUT_S)
        try:
            with _short_path(folder) as path:
                self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise UnreachableError(f"testbed {self._name!r} is not up: {error.strerror}") from None

    def ask(self, do: str, **arguments: Any) -> Any:
        """The answer to a request.

        Raises:
            FarlineError: what the keeper refused or failed at; `UnreachableError` when it is gone.
        """
        with self._lock:
            try:
                self._socket.sendall(encode({"do": do, **arguments}))
                line = self._line()
            except OSError as error:
                # A late answer must not be taken for that of the next request.
                self._socket.close()
                reason = error.strerror or "no answer"
                raise UnreachableError(f"testbed {self._name!r} is gone: {reason}") from None
        answer = json.loads(line)
        if "failed" in answer:
            raise from_failure(answer["failed"])
        return answer["ok"]

    def _line(self) -> bytes:
        while True:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError(0, "its keeper process has ended")
            lines = self._lines.feed(data)
            if lines:
                return lines[0]

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()
