"""Both peers: built, started, listened to."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIBUDT_SOURCE = ROOT / "tests" / "interop" / "libudt_peer"
LIBUDT_HEADER = Path("/usr/include/udt/udt.h")
BUILD_LIMIT_S = 900
# Beyond the time a run may take: a slow start, an end that lingers.
GRACE_S = 30.0

Start = Callable[..., "subprocess.Popen[str]"]


def missing() -> str | None:
    """What this machine lacks to build the libudt peer."""
    if not LIBUDT_HEADER.exists() or shutil.which("g++") is None:
        return "needs libudt-dev and g++"
    return None


def target_folder() -> Path:
    """Where cargo puts what it builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def libudt_peer() -> Path:
    """The C++ peer, built if it is older than its source."""
    program = target_folder() / "interop" / "libudt_peer"
    program.parent.mkdir(parents=True, exist_ok=True)
    _build(["make", "-s", "-C", str(LIBUDT_SOURCE), f"OUT={program}"])
    return program


def farline_peer(profile: str = "release") -> Path:
    """The Rust peer, built if need be; with the profile `dev` it checks its own arithmetic."""
    # No package is named: one alone would be built with other features than in all other builds.
    _build(["cargo", "build", "--quiet", "--locked", "--profile", profile, "--example", "udt_peer"])
    folder = "debug" if profile == "dev" else profile
    return target_folder() / folder / "examples" / "udt_peer"


def _build(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class End:
    """One end of a connection: which program, where it runs, its address there."""

    program: Path
    address: str = "127.0.0.1"
    start: Start = subprocess.Popen
    cpu: int | None = None

    def run(self, *words: object) -> subprocess.Popen[str]:
        """Starts the program; what it prints is kept."""
        pinned = ["taskset", "-c", str(self.cpu)] if self.cpu is not None else []
        command = [*pinned, str(self.program), *map(str, words)]
        return self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@dataclass(frozen=True)
class Said:
    """What an end printed at its end."""

    document: Mapping[str, Any]
    exit_code: int

    @property
    def connections(self) -> list[Mapping[str, Any]]:
        """What it says of each connection."""
        return list(self.document["connections"])

    @property
    def error_code(self) -> int:
        """The first error, in libudt's numbers; 0 if there was none."""
        return int(self.document["error_code"])

    @property
    def rss_kb(self) -> int:
        """Largest resident set in KiB."""
        return int(self.document["rss_kb"])

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the whole process."""
        return float(self.document["cpu_s"])

    def total(self, name: str) -> int:
        """Sum over all connections."""
        return sum(int(one[name]) for one in self.connections)

    def hashes(self, name: str) -> list[str]:
        """Hashes of all connections, in no order: ends may number them differently."""
        return sorted(str(one[name]) for one in self.connections)

    def statistic(self, name: str) -> float:
        """Sum of one of perfmon's figures over all connections."""
        return sum(float(one["statistics"][name]) for one in self.connections)

    @property
    def steady_bps(self) -> float:
        """Payload bits per second that arrived after what is omitted, all connections together."""
        rates = (one["steady_bytes"] / max(one["steady_s"], 1e-9) for one in self.connections)
        return 8 * float(sum(rates))


class PeerFailed(RuntimeError):
    """A program that said nothing that can be read, or did not come to its end."""


@contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Ends the process with the block, if it has not ended by itself."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(program: subprocess.Popen[str], limit_s: float = GRACE_S) -> str:
    """The first line that a program prints; empty if it prints none and ends."""
    assert program.stdout is not None
    if not select.select([program.stdout], [], [], limit_s)[0]:
        raise PeerFailed(f"{program.args!r} says nothing within {limit_s:.0f} s")
    return program.stdout.readline()


def listening_port(server: subprocess.Popen[str]) -> int:
    """Port that a server says it listens on."""
    line = first_line(server)
    try:
        return int(json.loads(line)["listening"])
    except (ValueError, KeyError, TypeError):
        rest = server.communicate(timeout=GRACE_S)
        raise PeerFailed(f"the server does not listen: {line}{rest[0]}{rest[1]}") from None


def last_words(process: subprocess.Popen[str], limit_s: float) -> Said:
    """What a peer says at its end."""
    try:
        output, complaint = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"a peer did not end within {limit_s:.0f} s") from None
    lines = output.strip().splitlines()
    try:
        return Said(json.loads(lines[-1]), process.returncode)
    except (ValueError, IndexError):
        raise PeerFailed(f"peer, exit code {process.returncode}: {output}{complaint}") from None


def exchange(
    server: End,
    client: End,
    *words: object,
    server_words: Sequence[object] = (),
    client_words: Sequence[object] = (),
    limit_s: float = 60.0,
) -> tuple[Said, Said]:
    """One run of both: what the server and the client said. `words` go to both.

    Raises:
        PeerFailed: if one does not end in time or says nothing.
    """
    with ExitStack() as stack:
        listener = server.run("srv", "--host", server.address, *words, *server_words)
        stack.enter_context(running(listener))
        port = listening_port(listener)
        to = ["--host", server.address, "--port", port]
        caller = stack.enter_context(running(client.run("cli", *to, *words, *client_words)))
        said = last_words(caller, limit_s + GRACE_S)
        return last_words(listener, GRACE_S), said


def free_ports(count: int) -> list[int]:
    """UDP ports that nobody has now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(_udp_socket()) for _ in range(count)]
        return sorted(int(one.getsockname()[1]) for one in sockets)


def _udp_socket() -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("0.0.0.0", 0))
    return one


def rendezvous(
    sender: End, receiver: End, *words: object, limit_s: float = 60.0
) -> tuple[Said, Said]:
    """Both call each other; what the receiver and the sender said. The smaller port sends."""
    low, high = free_ports(2)
    with ExitStack() as stack:
        sending = sender.run(
            "rdv", "--host", receiver.address, "--local-port", low, "--port", high, *words
        )
        stack.enter_context(running(sending))
        receiving = receiver.run(
            "rdv", "--host", sender.address, "--local-port", high, "--port", low, *words
        )
        stack.enter_context(running(receiving))
        said = last_words(sending, limit_s + GRACE_S)
        return last_words(receiving, GRACE_S), said
