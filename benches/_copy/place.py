"""Where both ends of a copy run: one namespace with loopback, or two hosts of a testbed."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from _copy.machine import Meter, metered
from farline.testbeds import Host

Wrap = Callable[[Sequence[str]], list[str]]
CONGESTION = "reno"
START_S = 20.0
_PORT_TRIES = 400


@dataclass(frozen=True)
class Place:
    """Both ends: how a command is made one that runs there, and the server's address."""

    client: Wrap
    server: Wrap
    address: str
    meter: Meter

    def start(self, argv: Sequence[str], log: Path | None = None) -> subprocess.Popen[str]:
        """Starts a server; without a log its standard output can be read."""
        command = self.meter.command(self.server(argv))
        if log is None:
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        with log.open("ab") as file:
            return subprocess.Popen(command, stdout=file, stderr=file, text=True)

    def call(self, argv: Sequence[str]) -> list[str]:
        """A client's command, counted."""
        return self.meter.command(self.client(argv))

    def wait_for_port(self, port: int) -> None:
        """Returns when the server's port takes connections, seen from the server's side."""
        probe = f"exec 3<>/dev/tcp/{self.address}/{port}"
        for _ in range(_PORT_TRIES):
            done = subprocess.run(self.server(["bash", "-c", probe]), capture_output=True)
            if done.returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError(f"nothing listens on {self.address}:{port}")


@contextmanager
def loopback() -> Iterator[Place]:
    """A namespace of its own with nothing but loopback, and one congestion control for all."""
    name = f"fl-copy-{os.getpid()}"
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        enter = ["nsenter", f"--net=/run/netns/{name}", "--"]
        pin = f"echo {CONGESTION} >/proc/sys/net/ipv4/tcp_congestion_control"
        subprocess.run([*enter, "sh", "-c", pin], check=True, capture_output=True)
        with metered() as meter:

            def inside(argv: Sequence[str]) -> list[str]:
                return [*enter, *argv]

            yield Place(inside, inside, "127.0.0.1", meter)
    finally:
        _ip("netns", "delete", name)


@contextmanager
def hosts(client: Host, server: Host) -> Iterator[Place]:
    """Two hosts of a bed."""
    with metered() as meter:
        yield Place(
            lambda argv: client.command(list(argv)),
            lambda argv: server.command(list(argv)),
            server.address,
            meter,
        )


def free_port() -> int:
    """A port that nothing listens on here; a namespace of one's own has it free too."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def first_line(program: subprocess.Popen[str]) -> str:
    """The first line that a server prints.

    Raises:
        RuntimeError: when it prints none in time.
    """
    assert program.stdout is not None
    if not select.select([program.stdout], [], [], START_S)[0]:
        raise RuntimeError(f"{program.args!r} says nothing within {START_S:.0f} s")
    return program.stdout.readline()


@contextmanager
def ending(program: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Ends a server with the block."""
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(timeout=10)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        if program.stdout is not None:
            program.stdout.close()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)
