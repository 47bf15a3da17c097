"""A Debian root that runs under its own systemd, in namespaces of its own."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop.clean_root import HOME, unable

_TREE = """
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
for name in null zero full random urandom tty; do cp -a /dev/$name dev/; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
"""
_CGROUP = """
mount -t cgroup2 none "$1/sys/fs/cgroup"
mkdir -p "$1/sys/fs/cgroup/$2"
echo 0 > "$1/sys/fs/cgroup/$2/cgroup.procs"
umount "$1/sys/fs/cgroup"
exec unshare --cgroup bash -ec "$3" boot "$1"
"""
_BOOT = """
cd "$1"
mount -t cgroup2 none sys/fs/cgroup
mkdir -p .old
pivot_root . .old
umount -l .old
# Credentials reach a unit by mounts that others see.
mount --make-rshared /
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=no
"""
_FORGET = 'mount -t cgroup2 none /mnt && find "/mnt/$1" -depth -type d -exec rmdir {} +'
START_S = 60.0


def needs_namespaces() -> None:
    """Skips where this machine lets nobody mount control groups."""
    tried = subprocess.run(
        ["unshare", "-m", "mount", "-t", "cgroup2", "none", "/mnt"], capture_output=True, text=True
    )
    if tried.returncode != 0:
        unable(f"control groups: {tried.stderr.strip()}")


@dataclass(frozen=True)
class Booted:
    """The running system."""

    root: Path
    pid: int
    """Of its first process, seen from outside."""

    def _inside(self, *words: str) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-m", "-p", "-u", "-i", "-n", "-C", *words]

    def run(self, *words: str, check: bool = True) -> str:
        """What a command prints, in the system."""
        done = subprocess.run(
            self._inside(*words), env=HOME, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0 or not check, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on, in the system."""
        return subprocess.Popen(
            self._inside(*words), env=HOME, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def from_outside(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A program of this machine on the system's network."""
        return subprocess.run(
            ["nsenter", "-t", str(self.pid), "-n", *words], capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip

    def shown(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", unit, "--value", "-p", name).strip()


def boot(root: Path, group: str) -> tuple[subprocess.Popen[bytes], Booted]:
    """Starts the root's systemd in a control group of this name; returns when it is up."""
    script = _TREE + _CGROUP
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net"]
    outer = subprocess.Popen(
        [*words, "bash", "-ec", script, "boot", root, group, _BOOT], stdout=subprocess.DEVNULL
    )
    until = time.monotonic() + START_S
    while time.monotonic() < until and outer.poll() is None:
        time.sleep(0.2)
        found = subprocess.run(
            ["pgrep", "-P", str(outer.pid), "-x", "systemd"], capture_output=True, text=True
        )
        if found.returncode == 0:
            system = Booted(root, int(found.stdout))
            state = system.run("systemctl", "is-system-running", check=False).strip()
            if state in ("running", "degraded"):
                return outer, system
    # Its first process goes with it.
    outer.kill()
    outer.wait()
    forget(group)
    pytest.fail(f"systemd did not come up in {START_S:.0f} s")


def forget(group: str) -> None:
    """Removes a control group and those below."""
    subprocess.run(["unshare", "-m", "sh", "-c", _FORGET, "forget", group], check=False)


def shut_down(outer: subprocess.Popen[bytes], system: Booted, group: str) -> None:
    """Ends it, and leaves nothing of it."""
    subprocess.run(["kill", "-KILL", str(system.pid)], check=False)
    outer.wait(30)
    forget(group)
    shutil.rmtree(system.root, ignore_errors=True)
