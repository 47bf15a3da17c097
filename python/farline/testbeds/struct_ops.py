"""Congestion controls that are BPF programs in the running kernel, by way of bpftool.

A registered program lives in the kernel, not in a process: it stays until someone takes it out,
whoever put it in, and is found again by its name.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farline.errors import SystemFailure, TimeoutFailure

_LIMIT_S = 30
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where bpftool is, though not on every user's PATH."""
_CAP_NET_ADMIN, _CAP_SYS_ADMIN, _CAP_BPF = 12, 21, 39
_WHOLE_ID_RANGE = ["0", "0", "4294967295"]
_NEEDED_TYPE = b"bpf_struct_ops_tcp_congestion_ops\0"


@dataclass(frozen=True)
class Registered:
    """One congestion control that the kernel keeps as a BPF program."""

    name: str
    map_id: int
    users: int
    """Sockets that use it, and namespaces whose default it is."""


@dataclass(frozen=True)
class Kernel:
    """Where the running kernel shows what it can do; other folders in tests."""

    proc: Path = Path("/proc")
    btf: Path = Path("/sys/kernel/btf/vmlinux")


def bpftool_path() -> str | None:
    """The bpftool program, or None."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM_FOLDERS])
    return shutil.which("bpftool", path=path)


def obstacle(kernel: Kernel) -> str | None:
    """Why no program could be loaded here and now, in one line; None if nothing is in the way."""
    if not has_privilege(kernel):
        return "loading a BPF program needs root, or CAP_BPF with CAP_NET_ADMIN"
    try:
        types = kernel.btf.read_bytes()
    except OSError:
        return f"the kernel exports no BTF types ({kernel.btf}): CONFIG_DEBUG_INFO_BTF is off"
    if _NEEDED_TYPE not in types:
        return (
            "the kernel does not accept congestion controls as BPF programs: Linux 5.13 or later "
            "is needed"
        )
    if not _compiles(kernel):
        return "the BPF compiler is off: sysctl -w net.core.bpf_jit_enable=1"
    if bpftool_path() is None:
        return "bpftool is missing: install the package bpftool"
    return None


def has_privilege(kernel: Kernel) -> bool:
    """Whether this process may load programs; privilege within a user namespace is none."""
    status = (kernel.proc / "self" / "status").read_text(encoding="utf-8").splitlines()
    effective = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))

    def has(capability: int) -> bool:
        return bool(effective >> capability & 1)

    if (kernel.proc / "self" / "uid_map").read_text(encoding="utf-8").split() != _WHOLE_ID_RANGE:
        return False
    return has(_CAP_SYS_ADMIN) or (has(_CAP_BPF) and has(_CAP_NET_ADMIN))


def _compiles(kernel: Kernel) -> bool:
    """A network namespace does not show the switch; then the loader itself has to say."""
    try:
        switch = (kernel.proc / "sys/net/core/bpf_jit_enable").read_text(encoding="utf-8")
    except OSError:
        return True
    return switch.strip() != "0"


def registered() -> list[Registered]:
    """Every congestion control that is a BPF program and can be chosen now.

    Raises:
        SystemFailure: when bpftool is missing or refuses.
    """
    values: dict[int, dict[str, Any]] = {}
    map_id = -1
    for part in _bpftool("struct_ops", "dump") or []:
        if "bpf_map_info" in part:
            map_id = int(part["bpf_map_info"]["id"])
        elif "bpf_struct_ops_tcp_congestion_ops" in part:
            values[map_id] = part["bpf_struct_ops_tcp_congestion_ops"]
    found = (_parse(map_id, value) for map_id, value in values.items())
    return [one for one in found if one is not None]


def _parse(map_id: int, value: dict[str, Any]) -> Registered | None:
    """None for one that was taken out and only waits for its last socket."""
    common = value.get("common", value)
    if common["state"] != "BPF_STRUCT_OPS_STATE_INUSE":
        return None
    references = int(common["refcnt"]["refs"]["counter"])
    return Registered(str(value["data"]["name"]), map_id, max(references - 1, 0))


def register(program: Path) -> None:
    """Puts the congestion control of an object file into the kernel.

    Raises:
        SystemFailure: when the kernel refuses it, with bpftool's last line.
    """
    _bpftool("struct_ops", "register", str(program))


def unregister(map_id: int) -> None:
    """Takes a congestion control out; sockets that use it keep it until they close.

    Raises:
        SystemFailure: when bpftool refuses.
    """
    _bpftool("struct_ops", "unregister", "id", str(map_id))


def _bpftool(*arguments: str) -> Any:
    """What bpftool answers, as JSON."""
    program = bpftool_path()
    if program is None:
        raise SystemFailure("bpftool is missing: install the package bpftool")
    try:
        done = subprocess.run(
            [program, "--json", *arguments], capture_output=True, text=True, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise TimeoutFailure(
            f"bpftool {' '.join(arguments)}: not finished after {_LIMIT_S} s"
        ) from None
    if done.returncode != 0:
        raise SystemFailure(f"bpftool {' '.join(arguments)}: {_complaint(done)}")
    return json.loads(done.stdout) if done.stdout.strip() else None


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The line that says what was wrong: in its JSON, or the last of those on standard error."""
    for line in done.stdout.splitlines():
        if line.startswith('{"error"'):
            return str(json.loads(line)["error"])
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"ended with {done.returncode}"
