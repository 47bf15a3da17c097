"""rclone: files by sftp to a server of this run, or to the user's own remotes.

Its last line of JSON has its figures; files that are there already it does not send. A running
server is one of rclone's own remotes: `REMOTE:path`, with the user's configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from farline.drivers import ssh_server
from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task, refuse
from farline.drivers.places import Here, InHost, Standing
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of
from farline.errors import ProtocolError


class Rclone(Driver):
    """rclone 1.60 or later."""

    name = "rclone"
    title = "Files by rclone (sftp, or its own remotes)"
    program = "rclone"
    server_program = "sshd"
    package = "the Debian packages rclone and openssh-server"
    version_words = ("version",)
    version_pattern = r"rclone v(\S+)"
    skips_present = True
    abilities = Abilities(
        "mover",
        {
            "copy.concurrency": "--transfers",
            "copy.total_rate_bps": "--bwlimit",
            "copy.cipher": "sftp",
            "copy.overwrite": "",
        },
        several_sources=False,
        places=(Here, InHost, Standing),
    )

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The first cipher of its ssh; four files at once; a remote's own protection is its own."""
        standing = document.get("tool_server") == "standing"
        cipher = {} if standing else {"copy.cipher": ssh_server.DEFAULT_CIPHER}
        return {"copy.concurrency": 4, **cipher}

    def check(self, task: Task) -> None:
        """Its ssh takes the cipher that both know and it likes best."""
        if task.is_started and task.get("copy.cipher") != ssh_server.DEFAULT_CIPHER:
            raise refuse(
                self.name, "copy.cipher", f"chooses by itself: {ssh_server.DEFAULT_CIPHER}"
            )

    def prepare(self, task: Task) -> None:
        """Keys of this run, and the far end as rclone's configuration has it."""
        if not task.is_started:
            return
        ssh_server.prepare(task)
        host_key = (task.folder / "host.pub").read_text("ascii").split()[:2]
        known = f"[{task.address}]:{task.port} {' '.join(host_key)}\n"
        (task.folder / "known").write_text(known, "ascii")
        settings = {
            "type": "sftp",
            "host": task.address,
            "port": task.port,
            "user": ssh_server.user_name(),
            "key_file": task.folder / "user",
            "known_hosts_file": task.folder / "known",
            "shell_type": "none",
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (task.folder / "rclone.conf").write_text("\n".join(["[farline]", *lines, ""]), "utf-8")

    def server_words(self, task: Task, program: str) -> list[str]:
        """An sshd for this run."""
        return ssh_server.server_words(task, program)

    def client_words(self, task: Task, program: str) -> list[str]:
        """One file or folder, told as lines of JSON."""
        (pair,) = task.files
        words = [program, "copy" if pair.is_folder else "copyto", "--use-json-log"]
        words += [
            "--log-level",
            "INFO",
            "--stats",
            "1s",
            "--retries",
            "1",
            "--low-level-retries",
            "3",
        ]
        words += ["--contimeout", f"{task.get('connect_timeout_ms', 10_000)}ms"]
        if task.is_started:
            words += ["--config", str(task.folder / "rclone.conf")]
        words += task.flag("--transfers", "copy.concurrency")
        rate_bps = task.get("copy.total_rate_bps")
        words += ["--bwlimit", f"{max(1, rate_bps // 8)}B"] if rate_bps else []
        remote = "farline" if task.is_started else task.address
        ends = pair.source, pair.destination
        if task.forward:
            return [*words, "--", ends[0], f"{remote}:{ends[1]}"]
        return [*words, "--", f"{remote}:{ends[0]}", ends[1]]

    def read(self, task: Task, ended: Ended) -> Figures:
        """The last statistics."""
        stats = [
            line["stats"] for line in _lines(ended.errors) if isinstance(line.get("stats"), dict)
        ]
        said = [
            str(line.get("msg")) for line in _lines(ended.errors) if line.get("level") == "error"
        ]
        if ended.exit_code or (stats and stats[-1].get("errors")):
            raise failure_of(self.name, ended, said)
        if not stats:
            raise ProtocolError("rclone failed: it printed no statistics")
        last = stats[-1]
        return Figures({task.way: Flow(last.get("bytes"), last.get("elapsedTime"), None)})


def _lines(output: bytes) -> list[dict[str, Any]]:
    found = []
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict):
            found.append(document)
    return found
