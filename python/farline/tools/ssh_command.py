"""How ssh is called, and what farline is called where it leads."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farline.errors import FarlineError
from farline.tools.child import NO_SSH
from farline.tools.ssh_failure import why_ended
from farline.tools.usual_folders import search_command

START_S = 60.0
"""So long a start may take unless its user says otherwise."""

NAME = "farline"
"""What farline is called in the PATH of a host."""


@dataclass(frozen=True)
class SshCommand:
    """How ssh is called, and what farline is called there."""

    command: tuple[str, ...] = ("ssh",)
    port: int | None = None
    identity: str | None = None
    options: tuple[str, ...] = ()
    config: str | None = None
    jump: str | None = None
    family: str | None = None
    remote_farline: str | None = None
    """The command that is farline there, if its user has said so; it is not looked for then."""
    start_s: float | None = None
    """So long farline may take to start, if its user has said so."""
    sends: bool = False
    """Whether a program for the copy is sent to a host that has no farline (`bootstrap`)."""
    program: Path | None = None
    """The program to send, in place of those that come with farline."""
    searches: bool = False
    """Whether farline is looked for in the usual folders: it is not in the PATH there."""

    def words(self, target: str, *more: str) -> list[str]:
        """Words of a command that logs in at `target`; `more` are options before it."""
        flags = [
            *(("-p", str(self.port)) if self.port is not None else ()),
            *(("-i", self.identity) if self.identity else ()),
            *(("-F", self.config) if self.config else ()),
            *(("-J", self.jump) if self.jump else ()),
            *((self.family,) if self.family else ()),
            *(word for option in self.options for word in ("-o", option)),
        ]
        return [*self.command, *flags, *more, target]

    def farline(self, target: str, *arguments: str) -> list[str]:
        """Words of a command that runs farline at `target`."""
        plain = f"{self.remote_farline or NAME} {shlex.join(arguments)}"
        command = search_command(arguments) if self.searches else plain
        return [*self.words(target, "-T"), command]

    def host_name(self, target: str, fallback: str) -> str:
        """The name behind an alias in ssh's configuration; `fallback` if ssh does not say."""
        return self._configured(target, "hostname") or fallback

    def why_ended(
        self, target: str, farline: str, code: int | None, said: Sequence[str], printed: bytes
    ) -> FarlineError:
        """Why a command there ended before it had said what it should."""
        return why_ended(target, farline, code, said, printed)

    def no_program(self) -> str:
        """What to do where the program that leads there does not start."""
        return NO_SSH

    def start_limit_s(self, target: str) -> float:
        """How long farline may take to start, by what is known when that much has passed."""
        if self.start_s is not None:
            return self.start_s
        stated = self._configured(target, "connecttimeout") or ""
        return START_S + (float(stated) if stated.isdecimal() else 0.0)

    def _configured(self, target: str, wanted: str) -> str | None:
        """The value of a key of ssh's configuration for `target`."""
        try:
            done = subprocess.run(
                self.words(target, "-G"), stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", timeout=10,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        for line in done.stdout.splitlines():
            key, _, value = line.partition(" ")
            if key == wanted and done.returncode == 0:
                return value.strip()
        return None
