"""A program of this host that is spoken to over pipes: none of its ends can hold us up.

It stays in our session, so that ssh may ask for a password on the terminal, but a Ctrl-C there does
not reach it: a copy ends in order, and ssh is what carries its end.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import IO

from farline.errors import SystemFailure
from farline.spec.foreign_text import plain_lines
from farline.tools.start_mark import Tail

_CHUNK_BYTES = 64 * 1024
_LINES = 20
_KILL_S = 2.0
_SEND_S = 30.0
_LAST_WORDS_S = 0.5
"""A program that has ended may have left one behind that holds its pipes open: so long is waited
for what is still in them."""


class Sayings:
    """Keeps the end of what a program says, so that it never waits to say more."""

    def __init__(self, stream: IO[bytes], takes: Callable[[bytes], bytes] | None = None) -> None:
        """Listens from now on; `takes` gets all that is said first, and returns what is kept."""
        self._stream = stream
        self._takes = takes or (lambda said: said)
        self._tail = Tail()
        self._closes = os.eventfd(0, os.EFD_CLOEXEC)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        poll.register(self._closes, select.POLLIN)
        while self._closes not in dict(poll.poll()):
            if not (more := os.read(self._stream.fileno(), _CHUNK_BYTES)):
                break
            self._tail.add(self._takes(more))
        self._tail.add(self._takes(b""))

    def lines(self) -> list[str]:
        """The last lines that can be shown, of a program that has ended or goes on."""
        self._listener.join(_LAST_WORDS_S)
        return plain_lines(self._tail.bytes)[-_LINES:]

    def close(self) -> None:
        """Listens no more, whoever else may hold the pipe's other end open."""
        os.eventfd_write(self._closes, 1)
        self._listener.join()
        self._stream.close()
        os.close(self._closes)


def _is_ready(pipe: IO[bytes], wanted: int, timeout_s: float) -> bool:
    """Whether something can be read or written there within that time, or it is broken."""
    if pipe.closed:
        return False
    poll = select.poll()
    poll.register(pipe, wanted)
    return bool(poll.poll(1e3 * timeout_s))


NO_SSH = "install an ssh client, or name another with -e"
"""What to do where ssh does not start."""


class Child:
    """A program that runs."""

    def __init__(
        self, words: Sequence[str], takes: Callable[[bytes], bytes] | None = None,
        remedy: str = NO_SSH,
    ) -> None:  # fmt: skip
        """Starts it; `takes` is asked first of what it says on standard error, as in `Sayings`.
        `remedy` is what to do where it does not start.

        Raises:
            SystemFailure: when there is none of that name.
        """
        # What is blocked is inherited; a signal that comes meanwhile is delivered afterwards.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._process = subprocess.Popen(
                words, bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise SystemFailure(f"{words[0]}: {error.strerror}; {remedy}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)
        self.said = Sayings(self._process.stderr, takes)
        self._dropped: Sayings | None = None
        self._is_closed = False

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def send(self, data: bytes) -> None:
        """Sends `data`; it is lost where the program has ended, or takes nothing for long."""
        while data and _is_ready(self._input, select.POLLOUT, _SEND_S):
            try:
                data = data[os.write(self._input.fileno(), data) :]
            except BlockingIOError:
                continue
            except OSError:
                return

    def read(self, timeout_s: float) -> bytes | None:
        """What it has printed; None if nothing came in that time, nothing if nothing more comes."""
        if self._dropped is not None:
            return b""
        if not _is_ready(self._output, select.POLLIN, timeout_s) and (
            self.is_alive or not _is_ready(self._output, select.POLLIN, _LAST_WORDS_S)
        ):
            return None if self.is_alive else b""
        return os.read(self._output.fileno(), _CHUNK_BYTES)

    def drop_output(self) -> None:
        """Nothing reads its output from now on: it is taken and dropped."""
        self._dropped = Sayings(self._output)

    def end_input(self) -> None:
        """Closes its input."""
        with contextlib.suppress(OSError):
            self._input.close()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, or None if it still runs after that time."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def close(self, patience_s: float) -> None:
        """Closes its input, by which it may end; ends it if that takes longer than that."""
        self.end_input()
        if self._dropped is None:
            # Whoever still has something to say would wait for ever for someone to hear it.
            self._output.close()
        if self.wait(patience_s) is None:
            self._process.terminate()
            if self.wait(_KILL_S) is None:
                self._process.kill()
                self._process.wait()
        if not self._is_closed:
            self._is_closed = True
            for one in (self.said, self._dropped):
                if one is not None:
                    one.close()
