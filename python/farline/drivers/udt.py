"""UDT by libudt's own programs, sendfile and recvfile: one file, pulled.

No package has them built, but Debian's libudt-dev brings their sources: they are compiled once,
into the user's cache. Their server sends any file to who asks and listens on every address, so it
runs for one run only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from farline.drivers.driver import (
    Abilities,
    Driver,
    Figures,
    Flow,
    Task,
    package_version,
    refuse,
)
from farline.drivers.places import Here, InHost, Place
from farline.drivers.processes import Ended, Listens
from farline.drivers.said import failure_of
from farline.errors import SystemFailure, UnreachableError
from farline.spec.user_folders import user_folder

EXAMPLES = Path("/usr/share/doc/libudt-dev/examples")
INCLUDES = Path("/usr/include/udt")
_BUILD_S = 120.0


class Udt(Driver):
    """libudt 4."""

    name = "udt"
    title = "One file by libudt's sendfile and recvfile"
    program = "recvfile"
    server_program = "sendfile"
    package = "the Debian packages libudt-dev and g++: its examples are compiled once"
    usual_port = 9000
    listens: Listens = "udp"
    abilities = Abilities(
        "mover",
        {"copy.overwrite": ""},
        transports=("udt",),
        directions=("reverse",),
        several_sources=False,
        places=(Here, InHost),
    )

    def find(self, place: Place) -> str | None:
        """The compiled receiver; compiles it where its source and a compiler are."""
        return _built(self.program)

    def find_server(self, place: Place, task: Task | None = None) -> str | None:
        """The compiled sender."""
        return _built(str(self.server_program))

    def version(self, place: Place) -> str | None:
        """Of the library: its package's, where dpkg knows it."""
        if self.find(place) is None:
            raise self.missing(place, self.program)
        return package_version("libudt-dev")

    def check(self, task: Task) -> None:
        """One file, by IPv4."""
        if any(pair.is_folder for pair in task.files):
            raise refuse(self.name, "copy.sources", "takes one file, not a folder")
        if ":" in task.address:
            raise refuse(self.name, "ip_version", "has IPv4 only")

    def server_words(self, task: Task, program: str) -> list[str]:
        """A sender for this run."""
        return [program, str(task.port)]

    def client_words(self, task: Task, program: str) -> list[str]:
        """One file."""
        (pair,) = task.files
        return [program, task.address, str(task.port), pair.source, pair.destination]

    def read(self, task: Task, ended: Ended) -> Figures:
        """It prints nothing of what went well; what went wrong is on its standard output."""
        if "connect:" in ended.text:
            raise UnreachableError(f"udt failed: {ended.text.strip().splitlines()[-1]}")
        if ended.exit_code or ended.text.strip():
            raise failure_of(self.name, ended)
        return Figures({task.way: Flow()})


def _built(name: str) -> str | None:
    """The program of that name, compiled now if need be; None without source, compiler or cache."""
    source, compiler = EXAMPLES / f"{name}.cpp", shutil.which("g++")
    folder = user_folder("XDG_CACHE_HOME", ".cache")
    if not source.is_file() or not INCLUDES.is_dir() or compiler is None or folder is None:
        return None
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    cache = folder / "farline" / "libudt"
    program = cache / f"{name}-{digest}"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _compile(compiler, source, program)
    return str(program)


def _compile(compiler: str, source: Path, program: Path) -> None:
    """Under another name first, so that two at once do not meet.

    Raises:
        SystemFailure: when the compiler refuses it.
    """
    made = program.with_name(f"{program.name}.{os.getpid()}")
    words = [compiler, "-O2", "-w", "-DLINUX", f"-I{INCLUDES}", str(source), "-o", str(made)]
    words += ["-ludt", "-lpthread"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_BUILD_S)
    except subprocess.TimeoutExpired:
        raise SystemFailure(
            f"compiling {source} failed: not finished after {_BUILD_S:g} s"
        ) from None
    if done.returncode:
        raise SystemFailure(f"compiling {source} failed: {done.stderr.strip()[:300]}")
    made.replace(program)
