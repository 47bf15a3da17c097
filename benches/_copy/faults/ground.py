"""Where cases run: a bed, a destination of limited size, and a server that can be ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _copy.place import first_line
from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _iperf3 import FARLINE
from farline.testbeds import Host, Testbed

PORT = 5470
ROOMY_BYTES = 1 << 30
NEARLY_NOTHING = 1 << 20
"""A disk with less than one chunk free is a full one."""


@dataclass
class Server:
    """`farline serve` on a host: the same port, key and tickets each time it is started."""

    host: Host
    folder: Path
    process: subprocess.Popen[str] | None = None
    tickets: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Starts it, and returns when it listens."""
        where = ["-B", self.host.address, "-p", str(PORT), "--state-dir", str(self.folder)]
        argv = [str(FARLINE), "serve", "--json", "--write", "/", "--read", "/", *where]
        with (self.folder / "serve.log").open("ab") as log:
            self.process = self.host.popen(argv, stdout=subprocess.PIPE, stderr=log)
        line = first_line(self.process)
        if not line:
            raise RuntimeError(f"farline serve ended at once: see {self.folder}/serve.log")
        if not self.tickets:
            self.tickets = json.loads(line)["tickets"]
        drain(self.process)

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def drain(process: subprocess.Popen[str]) -> None:
    """Throws away what a server prints from now on, so that it never waits to be read."""
    stream = process.stdout
    assert stream is not None

    def read() -> None:
        with stream:
            for _ in stream:
                pass

    threading.Thread(target=read, daemon=True).start()


@dataclass
class Ground:
    """Two hosts, the server on the second, folders both can reach."""

    bed: Testbed
    client: Host
    server: Server
    folder: Path
    disk: Path
    """A file system of its own, for destinations."""

    def change(self, **link: Any) -> None:
        """Changes the link."""
        self.bed.change(**link)

    def resize(self, size: int) -> None:
        """Gives the destination's file system another size."""
        words = f"remount,size={max(size, 1 << 20)}"
        subprocess.run(["mount", "-o", words, str(self.disk)], check=True, capture_output=True)

    def used_up(self) -> bool:
        """Whether the destination's file system is full."""
        facts = os.statvfs(self.disk)
        return facts.f_bavail * facts.f_frsize < NEARLY_NOTHING


@contextmanager
def ground() -> Iterator[Ground]:
    """A bed for many cases; nothing is left of it."""
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="farline-faults-"))
        folder = Path(name)
        disk = stack.enter_context(_file_system(folder / "disk"))
        # Corruption that checksums of packets do not show: only an end-to-end check can.
        path = pipe(1e9, 0.0, mtu_bytes=1500, corrupt_hidden=True)
        bed = stack.enter_context(Testbed.up(pair(path)))
        server = Server(bed.hosts[RECEIVER], folder / "server")
        server.folder.mkdir()
        stack.callback(server.kill)
        server.start()
        yield Ground(bed, bed.hosts[SENDER], server, folder, disk)


@contextmanager
def _file_system(path: Path) -> Iterator[Path]:
    """A file system in memory, mounted before there are hosts, so that all of them see it."""
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={ROOMY_BYTES}", "farline-faults", str(path)]
    subprocess.run(words, check=True, capture_output=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True, capture_output=True)
