"""GridFTP: globus-url-copy and its server, between files or between memories.

A server that farline starts is anonymous, listens on one address, takes clients from this host (or
from where ssh came), and opens only the folders of the copy. Pipelining, striping and UDT exist
only between two servers (a third-party transfer), so a second one is started beside the client
then: of an anonymous session between a file and a server globus-url-copy ignores `-udt` without a
word. Its own figures are the server's transfer log (`-Z`); an upload that was cut off stands there
as complete with too few bytes, so the bytes are compared.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from farline.drivers.destination import refuse_empty, refuse_names
from farline.drivers.driver import Abilities, Driver, Figures, FilePair, Flow, Task, refuse
from farline.drivers.iperf3 import buffer_of_both
from farline.drivers.places import Here, OverSsh
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of, rows_of
from farline.errors import ProtocolError

BLOCK_BYTES = 256 * 1024
"""What globus-url-copy takes unless told."""

_HELPER_PORT = 16
_NODE_PORT = 32
MOST_STRIPES = 16

_AS_ROOT = 'if [ "$(id -u)" = 0 ]; then set -- "$@" -allow-root -anonymous-user root; fi; exec "$@"'
_FROM_SSH = 'set -- "$@" -allow-from "${SSH_CONNECTION%% *}"; '


class Gridftp(Driver):
    """globus-url-copy 10 with globus-gridftp-server 13."""

    name = "gridftp"
    title = "GridFTP (globus-url-copy and its server)"
    program = "globus-url-copy"
    server_program = "globus-gridftp-server"
    package = (
        "the Debian packages globus-gass-copy-progs and globus-gridftp-server-progs (UDT: "
        "libglobus-xio-udt-driver)"
    )
    usual_port = 2811
    version_words = ("-version",)
    abilities = Abilities(
        "mover",
        {
            "streams": "-p",
            "block_bytes": "-bs",
            "total_bytes": "-len",
            "tool_stripes": "-stripe",
            "tcp.send_buffer_bytes": "-tcp-bs",
            "tcp.receive_buffer_bytes": "-tcp-bs",
            "copy.concurrency": "-cc",
            "copy.pipeline": "-pp",
            "copy.cipher": "-dcpriv",
            "copy.overwrite": "",
        },
        transports=("tcp", "udt"),
        memory=True,
        several_sources=True,
    )

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Its own block; data in clear text."""
        files = {"copy.cipher": "none", "copy.pipeline": 1} if document.get("copy") else {}
        return {"block_bytes": BLOCK_BYTES, **files}

    def check(self, task: Task) -> None:
        """What needs a second server, and what nothing would end."""
        if not task.files and not task.get("total_bytes"):
            raise refuse(
                self.name, "total_bytes", "moves a stated number of bytes between memories: give it"
            )
        if task.get("copy.cipher", "none") != "none":
            raise refuse(
                self.name, "copy.cipher",
                "encrypts data (-dcpriv) only with certificates on both ends, and an anonymous "
                "server gets them not encrypted; use none, or a tool over ssh",
            )  # fmt: skip
        if self._is_third_party(task) and not task.is_started:
            raise refuse(
                self.name, "tool_server",
                "pipelines, stripes and uses UDT between two servers that farline starts",
            )  # fmt: skip
        if task.get("tool_stripes", 1) > MOST_STRIPES:
            raise refuse(self.name, "tool_stripes", f"takes at most {MOST_STRIPES} data movers")
        # It drops letters outside ASCII, and writes a file under what is left of its name.
        refuse_names(self.name, task, "names with letters outside ASCII", _is_ascii)
        refuse_empty(self.name, task)
        buffer_of_both(self.name, task)

    def _is_third_party(self, task: Task) -> bool:
        return bool(
            task.get("transport") == "udt"
            or task.get("copy.pipeline", 1) > 1
            or task.get("tool_stripes", 1) > 1
        )

    def server_words(self, task: Task, program: str) -> list[str]:
        """The server of the far end, which logs its transfers where this process can read them."""
        log = not isinstance(task.server, OverSsh)
        return self._server(task, program, task.port, task.address, far=True, log=log)

    def helper_words(self, task: Task, program: str) -> list[str]:
        """The server beside the client, of a third-party transfer."""
        if not self._is_third_party(task):
            return []
        port = self.helper_port(task)
        return self._server(task, program, port, own_address(task), far=False, log=False)

    def helper_port(self, task: Task) -> int:
        """Where that one listens."""
        return task.port + _HELPER_PORT

    def _server(
        self, task: Task, program: str, port: int, address: str, *, far: bool, log: bool
    ) -> list[str]:
        here = ["-control-interface", address, "-data-interface", address]
        words = [program, "-c", "/dev/null", "-aa", *here, "-rp", _opened(task, far)]
        if task.get("transport") == "udt":
            words += ["-threads", "1", "-allow-udt", "-dc-default", "udt,gsi"]
            words += ["-dc-whitelist", "udt,tcp,gsi"]
        script = _AS_ROOT
        if far and isinstance(task.server, OverSsh):
            script = _FROM_SSH + script
        elif isinstance(task.client, Here) and isinstance(task.server, Here):
            words += ["-allow-from", f"{own_address(task)},{task.address}"]
        nodes = [port + _NODE_PORT + number for number in range(task.get("tool_stripes", 1))]
        if len(nodes) > 1:
            started = [
                shlex.join(["sh", "-c", script, "gridftp", *words, "-p", str(node), "-dn",
                            "-ipc-allow-from", address]) + " &"
                for node in nodes
            ]  # fmt: skip
            words += ["-r", ",".join(f"{address}:{node}" for node in nodes)]
            # The front end asks its data movers as soon as a client comes: they are up by then.
            script = " ".join([*started, "sleep 0.3;", script])
        if log:
            words += ["-Z", str(task.folder / "transfers"), "-log-module", "stdio:buffer=0"]
        return ["sh", "-c", script, "gridftp", *words, "-p", str(port)]

    def client_words(self, task: Task, program: str) -> list[str]:
        """One transfer, or a list of them."""
        words = [program, "-fast"]
        words += task.flag("-p", "streams") if task.get("streams", 1) > 1 else []
        words += task.flag("-bs", "block_bytes")
        words += ["-udt"] if task.get("transport") == "udt" else []
        if size_bytes := buffer_of_both(self.name, task):
            words += ["-tcp-bs", str(size_bytes)]
        if task.get("tool_stripes", 1) > 1:
            words += ["-stripe", "-sbs", str(task.get("block_bytes"))]
        words += ["-st", str(round(task.get("copy.stall_timeout_s", 30)))]
        words += task.flag("-cc", "copy.concurrency")
        words += ["-pp"] if task.get("copy.pipeline", 1) > 1 else []
        if not task.files:
            return [*words, "-len", str(task.get("total_bytes")), *self._devices(task)]
        words += ["-cd", *(["-r"] if any(pair.is_folder for pair in task.files) else [])]
        pairs = [self._urls(task, pair) for pair in task.files]
        if len(pairs) == 1:
            return [*words, *pairs[0]]
        listed = task.folder / "pairs"
        listed.write_text("".join(f'"{one}" "{other}"\n' for one, other in pairs), "utf-8")
        return [*words, "-f", str(listed)]

    def _devices(self, task: Task) -> list[str]:
        names = ("/dev/zero", "/dev/null")
        return [
            self._url(task, name, far=task.forward == bool(at)) for at, name in enumerate(names)
        ]

    def _urls(self, task: Task, pair: FilePair) -> tuple[str, str]:
        slash = "/" if pair.is_folder else ""
        return (
            self._url(task, pair.source + slash, far=not task.forward),
            self._url(task, pair.destination + slash, far=task.forward),
        )

    def _url(self, task: Task, path: str, *, far: bool) -> str:
        """A path of the far end, or of the client's: a file, or one of the second server."""
        if not far and not self._is_third_party(task):
            return f"file://{quote(_absolute(path))}"
        host, port = (task.host, task.port) if far else (own_address(task), self.helper_port(task))
        place = f"{host}:{port}" if far or ":" not in host else f"[{host}]:{port}"
        return f"ftp://{place}{quote(_absolute(path) if not far else _far(path))}"

    def read(self, task: Task, ended: Ended) -> Figures:
        """The server's transfer log, where it can be read; the client prints no figure to trust."""
        if ended.exit_code:
            raise failure_of(self.name, ended)
        log = task.folder / "transfers"
        if not log.exists():
            size_bytes = task.get("total_bytes")
            note = "the far end's log was not read: the bytes are those requested"
            flow = Flow(bytes=size_bytes)
            return Figures({task.way: flow}, notes=() if task.files else (note,))
        rows = [row for row in rows_of(log, "gridftp") if row["complete"]]
        moved = sum(row["bytes"] for row in rows)
        if not task.files and moved != task.get("total_bytes"):
            raise ProtocolError(
                f"gridftp failed: its server logged {moved} bytes of {task.get('total_bytes')}"
            )
        if not rows:
            return Figures()
        begun = min(row["started_at"] for row in rows)
        last = max(rows, key=lambda row: row["started_at"].timestamp() + row["duration_s"])
        elapsed_s = (last["started_at"] - begun).total_seconds() + last["duration_s"]
        resent = [row["retransmits"] for row in rows]
        return Figures(
            {task.way: Flow(moved, elapsed_s, moved * 8 / elapsed_s if elapsed_s > 0 else None)},
            retransmits=None if None in resent or not task.forward else sum(resent),
        )


def _opened(task: Task, far: bool) -> str:
    """What a server may read or write, as its `-rp` has it."""
    receives = far == task.forward
    if not task.files:
        return "RW/dev/null" if receives else "R/dev/zero"
    paths = [pair.destination if receives else pair.source for pair in task.files]
    full = [_pattern(path if far else _absolute(path)) for path in paths]
    # What is below a folder is open with it, but not where the folder's name became a pattern.
    full += [f"{path}/*" for path in full if "%5B" in path]
    return ",".join(f"{'RW' if receives else 'R'}{path}" for path in full)


def _pattern(path: str) -> str:
    """A path as `-rp` takes it: percent-encoded patterns, variables and all, parted by commas."""
    return quote("".join(f"[{letter}]" if letter in "*?[$" else letter for letter in path))


def _is_ascii(name: str) -> bool:
    return all(letter == "\t" or " " <= letter <= "~" for letter in name)


def _absolute(path: str) -> str:
    """A path from the root; the slash that marks a folder is kept."""
    whole = str(Path(path).absolute())
    return f"{whole}/" if path.endswith("/") and whole != "/" else whole


def _far(path: str) -> str:
    """A path of the far end: a relative one begins at the home folder there."""
    return path if path.startswith("/") else f"/~/{path}"


def own_address(task: Task) -> str:
    """The client's address on the way to the server."""
    if not isinstance(task.client, Here):
        known: list[str] = getattr(getattr(task.client, "host", None), "addresses", [])
        return known[0] if known else task.address
    family = socket.AF_INET6 if ":" in task.address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((task.address, 9))
            address: str = probe.getsockname()[0]
            return address
    except OSError:
        return task.address
