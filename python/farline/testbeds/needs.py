"""What a testbed needs of this machine, and the one line that says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from farline.errors import SystemFailure

TUN = Path("/dev/net/tun")
_PROGRAMS = ("nsenter", "unshare", "taskset", "env", "sh")


def missing() -> str | None:
    """What is missing, in one line; None if testbeds work here.

    A user who is not root needs user namespaces and may open `/dev/net/tun`.
    """
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            package = "coreutils" if program == "env" else "util-linux"
            return f"{program} is not installed; it is part of the package {package}"
    return _why_no_namespaces() or _why_no_tun()


def check() -> None:
    """Refuses where testbeds cannot work.

    Raises:
        SystemFailure: with what is missing.
    """
    reason = missing()
    if reason is not None:
        raise SystemFailure(f"testbed: {reason}")


def _why_no_namespaces() -> str | None:
    """Tries it: settings of the kernel, of security modules and of containers all have a say."""
    as_root = os.geteuid() == 0
    flags = ["--net", "--mount", "--uts"]
    if not as_root:
        flags += ["--user", "--map-root-user"]
    tried = subprocess.run(
        ["unshare", *flags, "true"], capture_output=True, text=True, timeout=10, check=False
    )
    if tried.returncode == 0:
        return None
    said = tried.stderr.strip().removeprefix("unshare: ")
    if as_root:
        return f"network namespaces are needed, but this machine or container refuses them: {said}"
    return f"root or user namespaces are needed, but this machine refuses them: {said}"


def _why_no_tun() -> str | None:
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        hint = "load the module tun, or pass the device to the container"
        if isinstance(error, PermissionError):
            hint = f"run as root, or give this user read and write access to {TUN}"
        return f"{TUN} is needed: {error.strerror}; {hint}"
    return None
