"""rsync: over the user's ssh; on this machine and in testbeds by a daemon of this run.

A daemon opens one folder to one password that is drawn for the run, which stands in files and in
the environment and on no command line. With a cipher rsync goes over an ssh server of the run
instead. `sent ... bytes/sec` is of whole seconds and a half: the wall clock is the figure.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farline.drivers import ssh_server
from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task
from farline.drivers.places import OverSsh, Place, Standing
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of
from farline.errors import ProtocolError

_SENT = re.compile(r"Total transferred file size: ([\d.,]+) bytes")
_AFTERMATH = re.compile(
    r"rsync error: |rsync.*(connection unexpectedly closed|Connection reset by peer)"
)
_MODULE = "farline"


class Rsync(Driver):
    """rsync 3.1 or later; whole files (`-W`), as on a fast path."""

    name = "rsync"
    title = "Files by rsync (daemon or ssh)"
    program = server_program = "rsync"
    package = "the Debian package rsync"
    usual_port = 873
    version_pattern = r"version (\S+)"
    skips_present = True
    abilities = Abilities(
        "mover",
        {
            "copy.total_rate_bps": "--bwlimit",
            "copy.cipher": "ssh -c",
            "copy.times": "-t",
            "copy.modes": "-p",
            "copy.hard_links": "-H",
            "copy.xattrs": "-X",
            "copy.sparse": "-S",
            "copy.fsync": "--fsync",
            "copy.overwrite": "",
            "ip_version": "-4, -6",
        },
        several_sources=False,
    )

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A daemon sends in clear text; holes and the device are not looked after unasked."""
        over_ssh = document.get("tool_server") == "ssh"
        cipher = ssh_server.DEFAULT_CIPHER if over_ssh else "none"
        return {"copy.cipher": cipher, "copy.sparse": False, "copy.fsync": False}

    def find_server(self, place: Place, task: Task | None = None) -> str | None:
        """sshd where a cipher is asked for, else rsync as a daemon."""
        return place.find("sshd" if task is not None and _is_sealed(task) else "rsync")

    def starts_at(self, place: Place) -> bool:
        """Over ssh rsync starts its other end itself."""
        return not isinstance(place, OverSsh)

    def prepare(self, task: Task) -> None:
        """Keys of an ssh server, or module, user and password of a daemon."""
        if _is_sealed(task):
            if not isinstance(task.server, OverSsh):
                ssh_server.prepare(task)
            return
        secrets = task.folder / "secrets"
        secrets.write_text(f"{_MODULE}:{task.secret}\n", "ascii")
        secrets.chmod(0o600)
        (task.folder / "rsyncd").write_text(self._daemon_text(task), "utf-8")

    def _daemon_text(self, task: Task) -> str:
        """One module, over the folder of this run; links that leave it are not followed."""
        own = f"uid = {os.getuid()}\ngid = {os.getgid()}\n" if os.getuid() == 0 else ""
        return (
            f"address = {task.address}\nport = {task.port}\nuse chroot = no\n{own}"
            f"log file = /dev/stderr\n[{_MODULE}]\npath = {_root(task)}\nread only = no\n"
            f"auth users = {_MODULE}\nsecrets file = {task.folder / 'secrets'}\nlist = no\n"
        )

    def server_words(self, task: Task, program: str) -> list[str]:
        """A daemon in the foreground, or an sshd."""
        if _is_sealed(task):
            return ssh_server.server_words(task, program)
        return [program, "--daemon", "--no-detach", f"--config={task.folder / 'rsyncd'}"]

    def client_words(self, task: Task, program: str) -> list[str]:
        """Whole files, with what is kept of each."""
        words = [program, "-r", "-l", "-W", "--stats", *ip_words(task)]
        for letter, path, default in (
            ("-t", "copy.times", True), ("-p", "copy.modes", True),
            ("-H", "copy.hard_links", False), ("-X", "copy.xattrs", False),
            ("-S", "copy.sparse", False), ("--fsync", "copy.fsync", False),
        ):  # fmt: skip
            words += [letter] if task.get(path, default) else []
        rate_bps = task.get("copy.total_rate_bps")
        words += [f"--bwlimit={max(1, rate_bps // 8192)}"] if rate_bps else []
        if _is_sealed(task):
            ssh = task.server.ssh.command if isinstance(task.server, OverSsh) else ("ssh",)
            words += ["-e", shlex.join([*ssh, *ssh_server.login_options(task)])]
        (pair,) = task.files
        slash = "/" if pair.is_folder else ""
        source, destination = pair.source + slash, pair.destination + slash
        if task.forward:
            return [*words, "--", _local(source), self._far(task, destination)]
        return [*words, "--", self._far(task, source), _local(destination)]

    def _far(self, task: Task, path: str) -> str:
        if _is_sealed(task):
            return f"{ssh_server.login_name(task)}:{path}"
        if isinstance(task.server, Standing):
            # A running daemon's own modules: the first part of the path names one.
            module, slash, path = path.lstrip("/").partition("/")
            return f"rsync://{task.host}:{task.port}/{module}{slash}{_dotted(path)}"
        inside = path.removeprefix(_root(task)).lstrip("/")
        return f"rsync://{_MODULE}@{task.host}:{task.port}/{_MODULE}/{_dotted(inside)}"

    def client_environment(self, task: Task) -> dict[str, str]:
        """The daemon's password: no command line shows it."""
        return {} if _is_sealed(task) or not task.is_started else {"RSYNC_PASSWORD": task.secret}

    def read(self, task: Task, ended: Ended) -> Figures:
        """Bytes of the files that it sent; those that were there already are none."""
        if ended.exit_code:
            # Its last lines say that there was an error; the first ones say which.
            causes = [line for line in ended.last_words if not _AFTERMATH.match(line)]
            raise failure_of(self.name, ended, causes[::-1] or None)
        found = _SENT.search(ended.text)
        if found is None:
            raise ProtocolError(
                "rsync failed: it ended with exit code 0 and printed no `Total transferred file "
                "size: N bytes`; install rsync 3.1 or later"
            )
        flow = Flow(bytes=int(re.sub(r"\D", "", found[1])))
        return Figures({task.way: flow})


def ip_words(task: Task) -> list[str]:
    """`-4` or `-6` where it is stated."""
    return {"v4": ["-4"], "v6": ["-6"]}.get(task.get("ip_version", "any"), [])


def _is_sealed(task: Task) -> bool:
    """Whether it goes over ssh."""
    return isinstance(task.server, OverSsh) or task.get("copy.cipher", "none") != "none"


def _root(task: Task) -> str:
    """The folder that the daemon opens: what is written or read, and nothing above it."""
    (pair,) = task.files
    path = pair.destination if task.forward else pair.source
    return str(Path(path if pair.is_folder else Path(path).parent).absolute())


def _dotted(path: str) -> str:
    """A path in a module; a daemon takes one that begins with a dash for an option, and waits."""
    return f"./{path}" if path.startswith("-") else path


def _local(path: str) -> str:
    return path if path.startswith("/") else f"./{path}"
