"""`farline serve` in a process of its own, for tests that need a server on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FARLINE = [sys.executable, "-m", "farline"]


@dataclass
class Serving:
    """A running server: its process, its address, tickets."""

    process: subprocess.Popen[str]
    address: str
    fingerprint: str
    ticket: str
    tickets: Mapping[str, str]
    """Tickets for files, `read` and `write`, where the server was told roots for them."""

    def stop(self, timeout_s: float = 20.0) -> int:
        """Sends SIGTERM and gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


@contextmanager
def serving(folder: Path, *arguments: str, listen: str = "127.0.0.1") -> Iterator[Serving]:
    """Serves on a port of the kernel's choice until the block ends."""
    command = [*FARLINE, "serve", "--json", "-B", listen, "-p", "0"]
    command += ["--state-dir", str(folder / "state"), *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(folder), start_new_session=True
    )
    try:
        assert process.stdout is not None
        ready: dict[str, Any] = json.loads(process.stdout.readline())
        assert ready["event"] == "ready"
        tickets = ready.get("tickets", {})
        address, fingerprint = ready["addresses"][0], ready["fingerprint"]
        yield Serving(process, address, fingerprint, ready["ticket"], tickets)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def environment(folder: Path, **more: str) -> Mapping[str, str]:
    """The caller's environment with every folder of farline's under `folder`."""
    own = {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "home-state"),
        "XDG_DATA_HOME": str(folder / "data"),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FARLINE_")}
    return kept | own | more


def farline(
    folder: Path, *arguments: str, timeout_s: float = 110.0, **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs one farline command to its end."""
    return subprocess.run(
        [*FARLINE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        env=environment(folder, **env),
    )
