"""scp: over the user's ssh, or over a server of this run.

scp has no output for machines, and the bytes it says are rounded: what lies at the destination and
the wall clock are the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.drivers import ssh_server
from farline.drivers.driver import Abilities, Driver, Figures, Task, refuse
from farline.drivers.places import Here, InHost, OverSsh, Place
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of


class Scp(Driver):
    """scp of OpenSSH 9."""

    name = "scp"
    title = "Files over ssh"
    program = "scp"
    server_program = "sshd"
    package = "the Debian packages openssh-client and openssh-server"
    version_words = ("-V",)
    version_pattern = r"OpenSSH_(\S+?),?(?:\s|$)"
    abilities = Abilities(
        "mover",
        {
            "copy.total_rate_bps": "-l",
            "copy.cipher": "-c",
            "copy.times": "-p",
            "copy.modes": "-p",
            "copy.overwrite": "",
        },
        several_sources=False,
        places=(Here, InHost, OverSsh),
    )

    def version(self, place: Place) -> str | None:
        """Of ssh, which comes with it and says it."""
        from farline.drivers.driver import version_of

        program = place.find("ssh")
        if self.find(place) is None or program is None:
            raise self.missing(place, self.program)
        return version_of(place, [program, "-V"], self.version_pattern)

    def starts_at(self, place: Place) -> bool:
        """Over ssh there is a server already."""
        return not isinstance(place, OverSsh)

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """farline's own cipher: ssh's first choice has no word here."""
        return {"copy.cipher": ssh_server.DEFAULT_CIPHER}

    def check(self, task: Task) -> None:
        """It always seals."""
        if task.get("copy.cipher") == "none":
            raise refuse(self.name, "copy.cipher", "always encrypts: aes128-gcm or aes256-gcm")

    def prepare(self, task: Task) -> None:
        """Keys of this run."""
        if not isinstance(task.server, OverSsh):
            ssh_server.prepare(task)

    def server_words(self, task: Task, program: str) -> list[str]:
        """An sshd for this run."""
        return ssh_server.server_words(task, program)

    def client_words(self, task: Task, program: str) -> list[str]:
        """One source to one name; of a folder its content (`/.`)."""
        words = [program, "-q", *ssh_server.login_options(task)]
        rate_bps = task.get("copy.total_rate_bps")
        words += ["-l", str(max(1, rate_bps // 1000))] if rate_bps else []
        words += ["-p"] if task.get("copy.times", True) or task.get("copy.modes", True) else []
        (pair,) = task.files
        far = f"{ssh_server.login_name(task)}:"
        inner = "/." if pair.is_folder else ""
        source, destination = f"{pair.source}{inner}", pair.destination
        if task.forward:
            source, destination = _local(source), far + destination
        else:
            source, destination = far + source, _local(destination)
        return [*words, *(["-r"] if pair.is_folder else []), "--", source, destination]

    def read(self, task: Task, ended: Ended) -> Figures:
        """Nothing but whether it failed."""
        if ended.exit_code:
            raise failure_of(self.name, ended)
        return Figures()


def _local(path: str) -> str:
    """A name that is not taken for one of another host."""
    return path if path.startswith("/") else f"./{path}"
