"""UFTP: files over UDP at a stated rate, in passes; here from one host to one other.

Its receiver waits for ever, so it ends with the run. Without larger socket buffers it loses most of
what a fast path brings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farline.drivers.destination import refuse_empty
from farline.drivers.driver import (
    Abilities,
    Driver,
    Figures,
    Flow,
    Task,
    package_version,
    refuse,
)
from farline.drivers.gridftp import own_address
from farline.drivers.places import Here, InHost, Place
from farline.drivers.processes import Ended, Listens
from farline.drivers.said import failure_of
from farline.errors import ProtocolError, UnreachableError

BLOCK_BYTES = 1300
BUFFER_BYTES = 4 << 20
_KEYS = {"aes128-gcm": "aes128-gcm", "aes256-gcm": "aes256-gcm"}
_STATS = re.compile(r"^STATS;[^;]*;(\d+);(\d+);(\d+);[^;]*;([\d.]+);([\d.]+)KB/s", re.MULTILINE)
_REJECTED = re.compile(r"^RESULT;[^;]*;([^;]*);[^;]*;(rejected|failed|lost|aborted)", re.MULTILINE)
_ABORTED = re.compile(r"^Transfer aborted by ([^\s:]+): (.+)$", re.MULTILINE)


class Uftp(Driver):
    """UFTP 4.10 or later."""

    name = "uftp"
    title = "Files over UDP at a stated rate, by UFTP"
    program = "uftp"
    server_program = "uftpd"
    package = "the Debian package uftp"
    usual_port = 1044
    listens: Listens = "udp"
    abilities = Abilities(
        "mover",
        {
            "rate_bps": "-R",
            "block_bytes": "-b",
            "udp.send_buffer_bytes": "-B",
            "copy.cipher": "-Y",
            "copy.overwrite": "",
        },
        transports=("udp",),
        directions=("forward",),
        several_sources=False,
        places=(Here, InHost),
    )

    def version(self, place: Place) -> str | None:
        """Of its package: it says its own only while it sends."""
        if self.find(place) is None:
            raise self.missing(place, self.program)
        return package_version("uftp")

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """As fast as it can, in datagrams that need no fragments, in clear text."""
        return {
            "rate_bps": 0,
            "block_bytes": BLOCK_BYTES,
            "udp.send_buffer_bytes": BUFFER_BYTES,
            "copy.cipher": "none",
        }

    def check(self, task: Task) -> None:
        """What its blocks may be."""
        if not 512 <= task.get("block_bytes") <= 8800:
            raise refuse(self.name, "block_bytes", "takes 512 to 8800 bytes")
        if ":" in task.address:
            raise refuse(self.name, "ip_version", "is driven over IPv4 only")
        refuse_empty(self.name, task)

    def server_words(self, task: Task, program: str) -> list[str]:
        """A receiver for this run, into the one folder."""
        (pair,) = task.files
        folder = pair.destination if pair.is_folder else str(Path(pair.destination).parent)
        folder = str(Path(folder).absolute())
        return [
            program, "-d", "-D", folder, "-I", task.address, "-p", str(task.port),
            "-B", str(task.get("udp.send_buffer_bytes")),
        ]  # fmt: skip

    def client_words(self, task: Task, program: str) -> list[str]:
        """One file under its new name, or the names in one folder."""
        rate_bps = task.get("rate_bps", 0)
        words = [program, "-I", own_address(task), "-p", str(task.port)]
        words += ["-R", str(max(1, rate_bps // 1000)) if rate_bps else "-1"]
        words += ["-b", str(task.get("block_bytes"))]
        words += ["-B", str(task.get("udp.send_buffer_bytes"))]
        words += [word for flag in ("-H", "-M", "-P") for word in (flag, task.address)]
        cipher = task.get("copy.cipher", "none")
        words += ["-Y", _KEYS[cipher], "-h", "sha256"] if cipher != "none" else []
        words += ["-S", str(task.folder / "status")]
        (pair,) = task.files
        if not pair.is_folder:
            return [*words, "-D", Path(pair.destination).name, pair.source]
        inside = sorted(str(path) for path in Path(pair.source).iterdir())
        return [*words, "-E", f"{pair.source}/", *inside]

    def read(self, task: Task, ended: Ended) -> Figures:
        """Its status file; a receiver that never answered is none."""
        status = task.folder / "status"
        text = status.read_text("utf-8", "replace") if status.exists() else ""
        if aborted := _ABORTED.search(ended.text + ended.errors.decode("utf-8", "replace")):
            said = [f"{aborted[2]} (said by the receiver {aborted[1]})"]
            raise failure_of(self.name, ended, said)
        if "Announce timed out" in ended.text + ended.errors.decode("utf-8", "replace"):
            raise UnreachableError(f"uftp failed: no receiver at {task.address} takes the files")
        if rejected := _REJECTED.search(text):
            raise ProtocolError(f"uftp failed: {rejected[1]}: {rejected[2]} by the receiver")
        found = _STATS.search(text)
        if ended.exit_code or not found:
            raise failure_of(self.name, ended)
        elapsed_s, kib_per_s = float(found[4]), float(found[5])
        return Figures({task.way: Flow(None, elapsed_s, kib_per_s * 1024 * 8)})
