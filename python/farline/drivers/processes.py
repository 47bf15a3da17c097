"""The processes of both ends: started, watched, ended whole, however this process ends.

A server runs under a small shell script (`_GUARD`) that ends its whole session as soon as the
script's standard input closes: with this process, with ssh, or on request. The script also says
when the server listens, by the kernel's table of sockets and not by connecting, which some servers
take for their one client.
"""

from __future__ import annotations

import os
import resource
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from farline.drivers.places import OverSsh, Place
from farline.errors import SystemFailure, TimeoutFailure
from farline.logs import Log
from farline.spec.foreign_text import plain_lines
from farline.tools import Stop, StopQuestion
from farline.tools.child import Sayings

_LOG = Log(__name__)

READY_S = 20.0
"""So long a server may take until it listens."""

_TERM_S = 2.0
"""Between asking a client to end and ending it."""

_POLL_S = 0.1
_LOOK_S = 1.0
MOVING_BYTES = 64 * 1024
"""A client that reads or writes less than this in the time allowed for a stall is stuck."""
MOST_OUTPUT_BYTES = 64 << 20

Listens = Literal["tcp", "udp", "no"]

_GUARD = r"""
kind=$1 port=$2; shift 2
listens() {
  case $kind in
  tcp) grep -qsi ": [0-9A-F]*:$port [0-9A-F:]* 0A " /proc/$1/net/tcp /proc/$1/net/tcp6 ;;
  udp) grep -qsi ": [0-9A-F]*:$port " /proc/$1/net/udp /proc/$1/net/udp6 ;;
  *) false ;;
  esac
}
if listens $$; then echo "port $((0x$port)) is taken by another program" >&2; exit 98; fi
exec 3<&0
setsid "$@" </dev/null >&2 3<&- &
p=$!
over() {
  kill -TERM -$p; kill -TERM $p; n=0
  while kill -0 -$p && [ $n -lt 8 ]; do sleep 0.05; n=$((n+1)); done
  kill -KILL -$p; kill -KILL $p
}
{ cat <&3; over; } >/dev/null 2>&1 &
w=$!
while kill -0 $p 2>/dev/null; do
  listens $p && { echo ready; break; }
  sleep 0.02
done
wait $p; r=$?
over >/dev/null 2>&1
echo "ended $r"
kill $w 2>/dev/null
exit $r
"""
"""Arguments: tcp, udp or no; the port in hexadecimal; the server's command.

A port on which somebody listens already is refused: the client would meet the server of another.
What the server started ends with it (GridFTP's stripes leave their data movers running). dash knows
no `kill -- -GROUP`."""


@dataclass(frozen=True)
class CpuTime:
    """CPU time of a process and of those that it waited for."""

    user_s: float
    system_s: float


@dataclass(frozen=True)
class Ended:
    """A client that is over."""

    exit_code: int
    """128 + n for signal n."""
    wall_s: float
    cpu: CpuTime
    output: bytes
    errors: bytes
    stopped: Stop = Stop.GO_ON
    """What somebody asked meanwhile."""

    @property
    def text(self) -> str:
        """Standard output."""
        return self.output.decode("utf-8", "replace")

    @property
    def last_words(self) -> list[str]:
        """The last lines of both outputs that can be shown, errors last."""
        return [*plain_lines(self.output[-8192:])[-6:], *plain_lines(self.errors[-8192:])[-6:]]


class Server:
    """A server of a tool, started and ended by farline."""

    def __init__(
        self,
        place: Place,
        words: Sequence[str],
        environment: Mapping[str, str],
        listens: Listens,
        port: int,
    ) -> None:
        """Starts it.

        Raises:
            SystemFailure: when it cannot be started.
        """
        self._words = list(words)
        guard = ["sh", "-c", _GUARD, "farline-guard", listens, f"{port:04X}", *words]
        if isinstance(place, OverSsh) and environment:
            guard = _with_environment(guard)
        try:
            self._process = subprocess.Popen(
                place.command(guard), env={**os.environ, "LC_ALL": "C", **environment},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SystemFailure(f"{words[0]} failed to start: {error.strerror}") from None
        assert self._process.stdin and self._process.stdout and self._process.stderr
        if isinstance(place, OverSsh) and environment:
            lines = "".join(f"{key}={shlex.quote(value)}\n" for key, value in environment.items())
            self._process.stdin.write(f"{lines}\n".encode())
        self._said = Sayings(self._process.stderr)
        self._has_cpu = place.has_known_cpu
        self.cpu: CpuTime | None = None
        """CPU time, once it has ended; None where the kernel here does not count it."""

    @property
    def words(self) -> list[str]:
        """Its command line."""
        return self._words

    def wait_ready(self, should_stop: StopQuestion, timeout_s: float = READY_S) -> None:
        """Waits until it listens.

        Raises:
            SystemFailure: when it ends instead.
            TimeoutFailure: when it takes too long.
        """
        out = self._process.stdout
        assert out is not None
        poll, until = select.poll(), time.monotonic() + timeout_s
        poll.register(out, select.POLLIN)
        while time.monotonic() < until and should_stop() is Stop.GO_ON:
            if not poll.poll(1e3 * _POLL_S):
                continue
            if b"ready" in os.read(out.fileno(), 4096):
                return
            raise SystemFailure(f"{self._words[0]} failed to start: {self._why()}")
        if should_stop() is Stop.GO_ON:
            raise TimeoutFailure(
                f"{self._words[0]} failed to start: it does not listen after {timeout_s:g} s"
            )

    def _why(self) -> str:
        return "; ".join(self.lines()[-3:]) or "it ended and said nothing"

    def lines(self) -> list[str]:
        """The last lines that it said."""
        return self._said.lines()

    def end(self) -> None:
        """Ends it with all that it started; a second call does nothing."""
        if self._process.returncode is not None:
            return
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        used = _reaped(self._process, 4 * _TERM_S)
        if used is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            used = _reaped(self._process, _TERM_S)
        self.cpu = used if self._has_cpu else None
        self._said.close()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _with_environment(guard: Sequence[str]) -> list[str]:
    """Reads the environment from the first lines of standard input: command lines are seen."""
    script = 'while IFS= read -r line && [ -n "$line" ]; do eval "export $line"; done; exec "$@"'
    return ["sh", "-c", script, "farline-environment", *guard]


@contextmanager
def ended(server: Server | None) -> Iterator[Server | None]:
    """The server, which has ended after the block."""
    try:
        yield server
    finally:
        if server is not None:
            server.end()


def run_client(
    name: str,
    place: Place,
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    should_stop: StopQuestion,
    *,
    limit_s: float,
    stall_s: float | None = None,
    on_wait: Callable[[], None] | None = None,
    cwd: Path | None = None,
) -> Ended:
    """Runs the client of the tool `name` to its end. Its output is kept in `folder` meanwhile.

    It is ended when somebody asks, after `limit_s`, and after `stall_s` in which it read and wrote
    next to nothing.

    Raises:
        SystemFailure: when it cannot be started.
        TimeoutFailure: when it had to be ended for its time.
    """
    with (folder / "output").open("w+b") as out, (folder / "errors").open("w+b") as err:
        begun = time.monotonic()
        try:
            process = subprocess.Popen(
                place.command(words), env={**os.environ, "LC_ALL": "C", **environment},
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, cwd=cwd,
            )  # fmt: skip
        except OSError as error:
            raise SystemFailure(f"{words[0]} failed to start: {error.strerror}") from None
        watch = _Watch(process, name, limit_s, stall_s)
        try:
            used, stopped = watch.follow(should_stop, on_wait)
        finally:
            _end_group(process)
        wall_s = time.monotonic() - begun
        output, errors = (_read(file) for file in (out, err))
    code = process.returncode
    _LOG.debug("tool ended", tool=words[0], exit_code=code, wall_s=round(wall_s, 3))
    return Ended(128 - code if code < 0 else code, wall_s, used, output, errors, stopped)


def _read(file: object) -> bytes:
    file.seek(0)  # type: ignore[attr-defined]
    content: bytes = file.read(MOST_OUTPUT_BYTES)  # type: ignore[attr-defined]
    return content


class _Watch:
    """A client that runs, with what it may take."""

    def __init__(
        self, process: subprocess.Popen[bytes], name: str, limit_s: float, stall_s: float | None
    ) -> None:
        self._process, self._name = process, name
        self._limit_s, self._stall_s = limit_s, stall_s
        self._begun = self._moved_at = self._looked_at = time.monotonic()
        self._moved = 0

    def follow(
        self, should_stop: StopQuestion, on_wait: Callable[[], None] | None
    ) -> tuple[CpuTime, Stop]:
        """Until it has ended, or somebody wants it to."""
        while (used := _reaped(self._process, _POLL_S)) is None:
            if (asked := should_stop()) is not Stop.GO_ON:
                return self._ended_early(asked), asked
            if on_wait is not None:
                on_wait()
            self._check()
        return used, Stop.GO_ON

    def _ended_early(self, asked: Stop) -> CpuTime:
        number = signal.SIGKILL if asked is Stop.NOW else signal.SIGTERM
        _signal(self._process, number)
        used = _reaped(self._process, _TERM_S)
        if used is None:
            _signal(self._process, signal.SIGKILL)
            used = _reaped(self._process, _TERM_S)
        return used or CpuTime(0.0, 0.0)

    def _check(self) -> None:
        now = time.monotonic()
        if now - self._begun > self._limit_s:
            self._end(f"it did not end within {self._limit_s:g} s")
        if self._stall_s is None or now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        moved = _moved_bytes(self._process.pid)
        if moved - self._moved >= MOVING_BYTES or moved < self._moved:
            self._moved, self._moved_at = moved, now
        elif now - self._moved_at > self._stall_s:
            self._end(f"no data moved for {self._stall_s:g} s")

    def _end(self, why: str) -> None:
        self._ended_early(Stop.NOW)
        raise TimeoutFailure(f"{self._name} failed: {why}; it was stopped")


def _moved_bytes(leader: int) -> int:
    """Bytes that the processes of a session have read and written so far (proc(5), io)."""
    total = 0
    for pid in _session(leader):
        with suppress(OSError, ValueError):
            lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
            total += sum(int(line.split()[1]) for line in lines[:2])
    return total


def _session(leader: int) -> Iterator[int]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    yield int(path.name)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends what a client may have left in its session."""
    _signal(process, signal.SIGKILL)
    if process.returncode is None:
        _reaped(process, _TERM_S)


def _reaped(process: subprocess.Popen[bytes], timeout_s: float) -> CpuTime | None:
    """CPU time of a child that ends within that time, with its exit code set; else None."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(1e3 * timeout_s):
            return None
    finally:
        os.close(handle)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return _cpu_time(used)


def _cpu_time(used: resource.struct_rusage) -> CpuTime:
    return CpuTime(used.ru_utime, used.ru_stime)
