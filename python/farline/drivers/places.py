"""Places where one end of a tool runs: this host, a host of a testbed, one that ssh leads to."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from farline.errors import SystemFailure
from farline.tools.ssh_command import SshCommand

_ASK_S = 30.0
_ADMIN_PATH = "/usr/sbin:/sbin:/usr/local/sbin"


class HostOfBed(Protocol):
    """What a place needs of a testbed's host; `farline.testbeds.Host` is one."""

    @property
    def name(self) -> str:
        """Name of the host."""

    def command(self, argv: Sequence[str]) -> list[str]:
        """A command that runs `argv` inside, as the same process."""


class Place(Protocol):
    """Where programs run."""

    @property
    def shares_files(self) -> bool:
        """Whether its files are those of this process."""

    @property
    def has_known_cpu(self) -> bool:
        """Whether the kernel here counts the CPU time of what runs there."""

    def command(
        self, words: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """Words that run `words` there from here; its standard streams are those of the result.

        `environment` is not seen by other users, here or there.
        """

    def find(self, program: str) -> str | None:
        """Full name of a program there; None if there is none."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Here:
    """This host, in the network of this process."""

    shares_files: bool = field(default=True, init=False)
    has_known_cpu: bool = field(default=True, init=False)

    def command(
        self, words: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """The words themselves: the environment is inherited."""
        return list(words)

    def find(self, program: str) -> str | None:
        """By the search path, and where administrators have their programs."""
        return shutil.which(program) or shutil.which(
            program, path="/usr/sbin:/sbin:/usr/local/sbin"
        )

    def __str__(self) -> str:
        return "this host"


@dataclass(frozen=True)
class InHost:
    """A host of a testbed: its network is its own, its files are this machine's."""

    host: HostOfBed
    shares_files: bool = field(default=True, init=False)
    has_known_cpu: bool = field(default=True, init=False)

    def command(
        self, words: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """Entered as `farline testbed exec` does; the environment is inherited."""
        return self.host.command(list(words))

    def find(self, program: str) -> str | None:
        """A program of this machine."""
        return Here().find(program)

    def __str__(self) -> str:
        return f"testbed host {self.host.name}"


@dataclass(frozen=True)
class OverSsh:
    """A host that ssh leads to, with the user's own ssh and its configuration."""

    target: str
    ssh: SshCommand = field(default_factory=SshCommand)
    shares_files: bool = field(default=False, init=False)
    has_known_cpu: bool = field(default=False, init=False)

    def command(
        self, words: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """An ssh that runs them; the environment goes with the script of `processes`, not here."""
        return [*self.ssh.words(self.target, "-T", "-o", "BatchMode=yes"), shlex.join(words)]

    def find(self, program: str) -> str | None:
        """By the search path there, and where administrators have their programs.

        Raises:
            SystemFailure: when ssh does not get there.
        """
        script = 'PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin; command -v "$1"'
        done = self.ask(["sh", "-c", script, "farline", program])
        return done.stdout.strip() or None

    def ask(
        self, words: Sequence[str], stdin: str = "", timeout_s: float = _ASK_S
    ) -> subprocess.CompletedProcess[str]:
        """Runs a short program there and waits for it.

        Raises:
            SystemFailure: when ssh does not get there, or it takes too long.
        """
        try:
            done = subprocess.run(
                self.command(words), input=stdin, capture_output=True, encoding="utf-8",
                errors="surrogateescape", timeout=timeout_s,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SystemFailure(
                f"ssh {self.target} failed: {error}; check that it logs in"
            ) from None
        if done.returncode == 255:
            why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise SystemFailure(
                f"ssh {self.target} failed: {why}; check that `ssh {self.target}` logs in without "
                "a question"
            )
        return done

    def __str__(self) -> str:
        return self.target


@dataclass(frozen=True)
class Standing:
    """A server of the tool that runs already, on `port` or the tool's usual one."""

    port: int | None = None

    def __str__(self) -> str:
        return "a running server"


ServerPlace = Here | InHost | OverSsh | Standing
"""Where the tool's server is to run, or that it runs already."""
