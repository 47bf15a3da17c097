"""Congestion controls that a kernel may lack, and how to get them into it.

H-TCP, Scalable TCP and HighSpeed TCP are taken from the kernel where it has them, built in or as
a module; where it has not, they are loaded as BPF programs (sources in `bpf/`, objects beside this
file) under the name by which papers and tools know them, so that `-C htcp` means the same
everywhere. Which of the two it is, `available` says.

What is loaded belongs to the machine: every network namespace can use it, and it stays until
`unload`, whatever became of the process that loaded it. The proof is the kernel's own list.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from farline.errors import SpecError, SystemFailure, TimeoutFailure
from farline.testbeds import struct_ops
from farline.testbeds.struct_ops import Kernel, Registered

State = Literal["kernel", "loaded", "loadable", "unavailable"]

_MODPROBE_LIMIT_S = 30


@dataclass(frozen=True)
class Published:
    """A congestion control that farline knows how to get."""

    name: str
    module: str | None
    """The kernel module of the same algorithm; None if there is none."""
    title: str


PUBLISHED = (
    Published("htcp", "tcp_htcp", "H-TCP (draft-leith-tcp-htcp-06), with RTT scaling"),
    Published("htcp_no_scale", None, "H-TCP without RTT scaling"),
    Published("scalable", "tcp_scalable", "Scalable TCP (Kelly 2003)"),
    Published("highspeed", "tcp_highspeed", "HighSpeed TCP (RFC 3649)"),
)
"""Names have at most 15 characters: the kernel's limit."""


@dataclass(frozen=True)
class CongestionControl:
    """One of them on this machine: what to call it, and whether it can be had."""

    name: str
    kernel_name: str
    """What `-C` and `TCP_CONGESTION` take."""
    state: State
    reason: str
    """Why the state is what it is, in one line."""


def available(kernel: Kernel | None = None) -> list[CongestionControl]:
    """Every congestion control that farline knows how to get, with its state here.

    `kernel`: it is there without farline's doing; `loaded`: as a BPF program; `loadable`: `load`
    would get it; `unavailable`: the reason says what is in the way. Needs no privilege, and changes
    nothing.

    Raises:
        SystemFailure: when the kernel's list cannot be read.
    """
    machine = kernel or Kernel()
    in_kernel = chosen_from(machine)
    obstacle = struct_ops.obstacle(machine)
    programs = {} if obstacle else _programs()
    may_load = struct_ops.has_privilege(machine)
    return [_state(one, in_kernel, obstacle, programs, may_load) for one in PUBLISHED]


def chosen_from(kernel: Kernel) -> list[str]:
    """The kernel's own list of what a socket can choose.

    Raises:
        SystemFailure: when it cannot be read.
    """
    path = kernel.proc / "sys/net/ipv4/tcp_available_congestion_control"
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from None


def loaded() -> list[str]:
    """Names of those that are loaded as BPF programs, whoever loaded them.

    Raises:
        SystemFailure: without the privilege to see them, or without bpftool.
    """
    known = {one.name for one in PUBLISHED}
    return sorted(known & _programs().keys())


def load(name: str) -> CongestionControl:
    """Makes a congestion control available to every socket of this machine, if it is not yet.

    Raises:
        SpecError: for a name that farline does not know.
        SystemFailure: when it cannot be had here, with the reason.
    """
    known = _known(name)
    found = _find(known)
    if found.state in ("kernel", "loaded"):
        return found
    if found.state == "unavailable":
        raise SystemFailure(found.reason)
    if _has_module(known):
        _modprobe(str(known.module))
    else:
        struct_ops.register(object_path(name))
    if name not in chosen_from(Kernel()):
        raise SystemFailure(f"congestion control {name}: loaded, but not listed by the kernel")
    return _find(known)


def unload(name: str) -> None:
    """Takes a congestion control that is a module or a BPF program out of the kernel again.

    Raises:
        SpecError: for a name that farline does not know, or that is not loaded.
        SystemFailure: while sockets use it or it is a namespace's default.
    """
    known = _known(name)
    if _is_loaded_module(known, Kernel()):
        _modprobe("-r", str(known.module))
        return
    program = _programs().get(name)
    if program is None:
        raise SpecError(f"congestion control {name}: not loaded by farline; {_loaded_text()}")
    if program.users:
        raise SystemFailure(
            f"congestion control {name}: in use by {program.users} sockets or namespace defaults; "
            "unload it when they have ended"
        )
    struct_ops.unregister(program.map_id)


def object_path(name: str) -> Path:
    """The BPF object of a congestion control."""
    return Path(__file__).with_name("bpf") / f"{name}.bpf.o"


def _known(name: str) -> Published:
    for one in PUBLISHED:
        if one.name == name:
            return one
    names = ", ".join(one.name for one in PUBLISHED)
    raise SpecError(f"congestion control {name!r}: not provided by farline, which has {names}")


def _find(known: Published) -> CongestionControl:
    return next(one for one in available() if one.name == known.name)


def _programs() -> dict[str, Registered]:
    return {one.name: one for one in struct_ops.registered()}


def _loaded_text() -> str:
    names = loaded()
    return f"loaded: {', '.join(names)}" if names else "none is loaded"


def _state(
    one: Published,
    in_kernel: list[str],
    obstacle: str | None,
    programs: dict[str, Registered],
    may_load: bool,
) -> CongestionControl:
    """The first rule that holds."""
    state: State
    if one.name in programs:
        state, how = "loaded", "as a BPF program"
    elif one.name in in_kernel:
        state, how = "kernel", "the kernel's own" if obstacle is None else "the kernel lists it"
    elif may_load and _has_module(one):
        state, how = "loadable", f"kernel module {one.module}"
    elif obstacle is None:
        state, how = "loadable", "as a BPF program"
    else:
        state, how = "unavailable", obstacle
    return CongestionControl(one.name, one.name, state, f"{one.title}: {how}")


def _has_module(one: Published) -> bool:
    """Whether modprobe could load the kernel's own; a dry run changes nothing."""
    return one.module is not None and has_module(one.module)


def has_module(module: str) -> bool:
    """Whether modprobe could load a kernel module of that name; a dry run changes nothing."""
    if shutil.which("modprobe") is None:
        return False
    return _run_modprobe("--dry-run", "--quiet", module).returncode == 0


def _is_loaded_module(one: Published, kernel: Kernel) -> bool:
    """Whether it is there as a module, not built in (proc(5), modules)."""
    try:
        lines = (kernel.proc / "modules").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return one.module in {line.split()[0] for line in lines if line}


def _modprobe(*arguments: str) -> None:
    done = _run_modprobe(*arguments)
    if done.returncode != 0:
        said = done.stderr.strip() or done.returncode
        raise SystemFailure(f"modprobe {' '.join(arguments)}: {said}")


def _run_modprobe(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["modprobe", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_MODPROBE_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise TimeoutFailure(
            f"{' '.join(command)}: not finished after {_MODPROBE_LIMIT_S} s"
        ) from None
