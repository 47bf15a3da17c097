"""A host of a bed: programs run inside it as `ip netns exec` would run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farline.errors import UsageError
from farline.testbeds import control, processes

BED_VARIABLE = "FARLINE_TESTBED"
HOST_VARIABLE = "FARLINE_TESTBED_HOST"
SOCKET_VARIABLE = "FARLINE_TESTBED_SOCKET"

Command = str | Sequence[str | Path]
"""A program and its arguments; a text is a line for the shell."""

_JOIN_GROUPS = (
    'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 126; shift; done; shift; exec "$@"'
)
"""Puts this process into the control groups named before `--`, then becomes the program."""


@dataclass(frozen=True)
class Port:
    """A host's end of a link."""

    device: str
    link: str
    address: str
    address6: str
    mtu_bytes: int


@dataclass(frozen=True)
class Host:
    """One host of a running bed."""

    name: str
    bed: str
    folder: Path
    ports: tuple[Port, ...]
    namespaces: Mapping[str, str]
    """Paths of the host's `net`, `mount` and `uts` namespaces, good while the bed is up."""

    user_namespace: str | None
    """Path of the bed's user namespace; None where the bed is root's."""

    groups: tuple[str, ...]
    """Control groups its programs are put into."""

    cpus: tuple[int, ...]
    """CPUs its programs may use; all if empty."""

    @property
    def address(self) -> str:
        """IPv4 address of its first device; see `Testbed.address` for hosts with several."""
        return self.ports[0].address

    @property
    def addresses(self) -> list[str]:
        """IPv4 addresses, in the order of its devices."""
        return [port.address for port in self.ports]

    @property
    def addresses6(self) -> list[str]:
        """IPv6 addresses, in the order of its devices."""
        return [port.address6 for port in self.ports]

    @property
    def devices(self) -> list[str]:
        """Names of its network devices: `eth0`, `eth1`, ... in the order of its links."""
        return [port.device for port in self.ports]

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a program inside finds its bed."""
        socket = str(self.folder / control.SOCKET_NAME)
        return {BED_VARIABLE: self.bed, HOST_VARIABLE: self.name, SOCKET_VARIABLE: socket}

    def command(self, argv: Command, cwd: str | Path | None = None) -> list[str]:
        """A command that runs `argv` inside this host, as the same process.

        Exit codes and signals pass as they are. The working directory is `cwd` or this
        process's own; environment and open files are those the command is started with.

        Raises:
            UsageError: when `argv` is empty.
        """
        program = ["sh", "-c", argv] if isinstance(argv, str) else [str(word) for word in argv]
        if not argv:
            raise UsageError("testbed: no command given")
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        inside = ["env", f"--chdir={Path(cwd or '.').absolute()}", *settings, *program]
        return [*self._limits(), *self._entry(), *inside]

    def _limits(self) -> list[str]:
        command = []
        if self.groups:
            command += ["sh", "-c", _JOIN_GROUPS, "farline-testbed", *self.groups, "--"]
        if self.cpus:
            command += ["taskset", "--cpu-list", ",".join(map(str, self.cpus))]
        return command

    def _entry(self) -> list[str]:
        command = ["nsenter"]
        if self.user_namespace is not None:
            command += [f"--user={self.user_namespace}", "--preserve-credentials"]
        return command + [f"--{kind}={path}" for kind, path in self.namespaces.items()] + ["--"]

    def run(
        self,
        argv: Command,
        *,
        cwd: str | Path | None = None,
        check: bool = False,
        timeout: float | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program inside and waits for it; its output is kept as text.

        `options` go to `subprocess.run`; with `stdout` or `stderr` among them nothing is kept.
        """
        if not {"stdout", "stderr", "capture_output"} & options.keys():
            options["capture_output"] = True
        options.setdefault("text", True)
        command = self.command(argv, cwd)
        return subprocess.run(command, check=check, timeout=timeout, **options)

    def popen(
        self, argv: Command, *, cwd: str | Path | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Starts a program inside; `options` go to `subprocess.Popen`, text is the default."""
        options.setdefault("text", True)
        return subprocess.Popen(self.command(argv, cwd), **options)

    def shell(self) -> list[str]:
        """A command that is the user's shell inside this host."""
        shell = os.environ.get("SHELL") or "/bin/sh"
        return self.command([shutil.which(shell) or "/bin/sh"])

    def pids(self) -> list[int]:
        """Processes inside now, as `ip netns pids` shows them."""
        number = Path(self.namespaces["net"]).stat().st_ino
        return processes.inside([number], None)
