"""Debian roots that have nothing else, and the packages that are installed there.

The root is made by mmdebstrap from the machine's own package sources; with FARLINE_CLEAN_ROOT a
folder that has one is copied instead. What is installed is the newest package in `dist/`, else one
made of this checkout and the extension that is there.

FARLINE_CLEAN_MACHINE=aarch64 takes a root and the package of another processor, whose programs this
kernel runs with qemu-user-static and binfmt_misc; nothing is said of its speed then.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import dist
from tests.loopback.test_packages import EPOCH, make_wheel

MACHINE = os.environ.get("FARLINE_CLEAN_MACHINE") or platform.machine()
SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
HOME = {
    "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
}


def unable(why: str) -> None:
    """Skips: no root, no test."""
    pytest.skip(f"no clean root can be made: {why}")


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with what Debian calls essential, and apt."""
    if named := os.environ.get("FARLINE_CLEAN_ROOT"):
        return Path(named)
    if os.geteuid() != 0:
        unable("needs root")
    if shutil.which("mmdebstrap") is None:
        unable("apt install mmdebstrap")
    sources = [path for path in map(Path, SOURCES) if path.exists()]
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME")
    if not sources or suite is None:
        unable("this is no Debian")
    root = tmp_path_factory.mktemp("clean") / "root"
    made = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", "--skip=cleanup/apt",
         f"--architectures={dist.ARCHITECTURES[MACHINE]}", str(suite), root, sources[0]],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    if made.returncode != 0:
        unable((made.stderr.splitlines() or ["mmdebstrap failed"])[-1])
    return root


@dataclass(frozen=True)
class Root:
    """A root of its own, and two hosts between which there is one cable."""

    path: Path
    hosts: tuple[str, str]

    def run(self, *words: str, host: str | None = None) -> str:
        """What a command prints, in the root; on one of the hosts, or where the test runs."""
        done = subprocess.run(
            self._words(words, host), env=self._environment(), capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *words: str, host: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            self._words(words, host), env=self._environment(), stdout=subprocess.PIPE, text=True
        )

    def _words(self, words: tuple[str, ...], host: str | None) -> list[str]:
        inside = ["chroot", str(self.path), *words]
        return ["ip", "netns", "exec", host, *inside] if host else inside

    def _environment(self) -> dict[str, str]:
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        pip.pop("PIP_FIND_LINKS", None)
        return {**HOME, **pip, "DEBIAN_FRONTEND": "noninteractive"}


@pytest.fixture
def root(bare: Path, tmp_path: Path) -> Iterator[Root]:
    path = tmp_path / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", bare, path], check=True)
    reach_sources(path)
    devices(path)
    hosts = (f"clean-a{os.getpid()}", f"clean-b{os.getpid()}")
    try:
        for host in hosts:
            ip("netns", "add", host)
        ends = [f"{word}{os.getpid()}" for word in ("va", "vb")]
        ip(
            "link",
            "add",
            ends[0],
            "netns",
            hosts[0],
            "type",
            "veth",
            "peer",
            ends[1],
            "netns",
            hosts[1],
        )
        for number, (host, end) in enumerate(zip(hosts, ends, strict=True), start=1):
            ip("-n", host, "addr", "add", f"10.77.0.{number}/24", "dev", end)
            ip("-n", host, "link", "set", end, "up")
        subprocess.run(["mount", "-t", "proc", "proc", path / "proc"], check=True)
        yield Root(path, hosts)
    finally:
        subprocess.run(["umount", path / "proc"], check=False)
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], check=False)


def devices(path: Path) -> None:
    """What programs expect below /dev."""
    for name in ("dev/null", "dev/urandom", "dev/random"):
        if not (path / name).exists():
            subprocess.run(["cp", "-a", f"/{name}", path / name], check=True)


def reach_sources(path: Path) -> None:
    """What reaches the package sources: names of hosts, and whose certificates are believed."""
    for name in ("resolv.conf", "hosts", "pip.conf", "ssl/certs/ca-certificates.crt"):
        source, target = Path("/etc") / name, path / "etc" / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copy(source, target)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `make dist` left it, else one of this checkout."""
    found = sorted(dist.DIST.glob(f"farline-*{MACHINE}.whl"))
    if not found and platform.machine() != MACHINE:
        unable(f"make dist MACHINES={MACHINE}")
    return found[-1] if found else make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def deb(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package of it."""
    return dist.build_deb(wheel, tmp_path_factory.mktemp("deb"), EPOCH)
