"""bbcp: files over parallel streams; starts its other end over ssh itself.

No package brings it: it is taken from the search path of both ends. Its data connections go to the
host that its names state, past ssh's configuration: so names have the address, and ssh is told by
the template where to log in.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from farline.drivers import ssh_server
from farline.drivers.destination import refuse_names
from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task
from farline.drivers.iperf3 import buffer_of_both
from farline.drivers.places import Here, InHost, OverSsh, Place
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of

_CREATED = re.compile(r"^File .* created; (\d+) bytes at ([\d.]+) ([KMGT]?)B/s", re.MULTILINE)
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Bbcp(Driver):
    """bbcp 14 or later."""

    name = "bbcp"
    title = "Files by bbcp, over parallel streams"
    program = "bbcp"
    server_program = "sshd"
    package = "bbcp (no package: build it from its source) and the Debian package openssh-server"
    version_words = ("--version",)
    abilities = Abilities(
        "mover",
        {
            "streams": "-s",
            "block_bytes": "-B",
            "tcp.send_buffer_bytes": "-w",
            "tcp.receive_buffer_bytes": "-w",
            "copy.total_rate_bps": "-x",
            "copy.overwrite": "-f",
        },
        several_sources=False,
        places=(Here, InHost, OverSsh),
    )

    def starts_at(self, place: Place) -> bool:
        """Over ssh there is a server already."""
        return not isinstance(place, OverSsh)

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Its own numbers."""
        return {"streams": 4, "block_bytes": 1 << 20}

    def check(self, task: Task) -> None:
        """One size for both windows; the program at the far end."""
        buffer_of_both(self.name, task)
        # Its own protocol is one of lines with tabs.
        refuse_names(self.name, task, "names with control characters", _is_plain)
        if isinstance(task.server, OverSsh) and task.server.find(self.program) is None:
            raise self.missing(task.server, self.program)

    def prepare(self, task: Task) -> None:
        """Keys of this run; `%H` alone stands for user and host in bbcp's templates."""
        if not isinstance(task.server, OverSsh):
            ssh_server.prepare(task)

    def server_words(self, task: Task, program: str) -> list[str]:
        """An sshd for this run."""
        return ssh_server.server_words(task, program)

    def client_words(self, task: Task, program: str) -> list[str]:
        """One file or folder; the control connection is ssh's, the data are not sealed."""
        is_far = isinstance(task.server, OverSsh)
        there = None if is_far else task.client.find(self.program)
        options, host = ssh_server.login_options(task), ssh_server.login_name(task)
        login = shlex.join(["ssh", "-x", *options, host, there or self.program])
        words = [program, "-f", "-v", "-S", login, "-T", login]
        words += task.flag("-s", "streams") + task.flag("-B", "block_bytes")
        if size_bytes := buffer_of_both(self.name, task):
            words += ["-w", str(size_bytes)]
        rate_bps = task.get("copy.total_rate_bps")
        words += ["-x", str(max(1, rate_bps // 8))] if rate_bps else []
        (pair,) = task.files
        # A folder's name alone would bring the folder itself into the destination.
        source = f"{pair.source}/." if pair.is_folder else pair.source
        address = _address(task)
        ends = [source, f"{address}:{pair.destination}"]
        if not task.forward:
            ends = [f"{address}:{source}", pair.destination]
        return [*words, *(["-r"] if pair.is_folder else []), *ends]

    def read(self, task: Task, ended: Ended) -> Figures:
        """Bytes and rates of its files, which `-v` prints; MB are 10^6 bytes."""
        if ended.exit_code:
            raise failure_of(self.name, ended)
        text = ended.text + ended.errors.decode("utf-8", "replace")
        found = [(int(size), float(rate) * _PREFIX[prefix]) for size, rate, prefix
                 in _CREATED.findall(text)]  # fmt: skip
        if not found:
            return Figures()
        moved = sum(size for size, _ in found)
        elapsed_s = sum(size / rate for size, rate in found if rate > 0)
        rate_bps = moved * 8 / elapsed_s if elapsed_s > 0 else None
        return Figures({task.way: Flow(moved, elapsed_s or None, rate_bps)})


def _is_plain(name: str) -> bool:
    return all(letter >= " " for letter in name)


def _address(task: Task) -> str:
    """Where data connections go: the server's address, or the host that ssh takes an alias for."""
    address = task.address
    if isinstance(task.server, OverSsh):
        name = task.server.target.rpartition("@")[2]
        address = task.server.ssh.host_name(task.server.target, name)
    return f"[{address}]" if ":" in address else address
