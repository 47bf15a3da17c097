"""The start of a bed: what it needs, what it leaves written down, its keeper's process."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import InternalError, SystemFailure, from_failure
from farline.testbeds import caps, keeper, kernel, needs, processes, state

if TYPE_CHECKING:
    from farline.spec._types import Topology

READY_TIMEOUT_S = 120.0
"""Time a keeper has to start: the emulator touches gigabytes of memory first on a long path."""

_READY_FD = 3


def start(topology: Topology, name: str, keep: bool) -> Path:
    """Starts a bed and gives its folder; unless `keep`, the bed ends with this process.

    Raises:
        UsageError: when a bed of that name is up.
        SystemFailure: when this machine lacks what a bed needs.
    """
    state.check_name(name)
    needs.check()
    with state.locked() as folder:
        found = state.recover(folder)
        known = state.new(folder, name, topology["name"])
        try:
            plans = caps.plan(name, known.token, topology)
            _start(folder / name, known, topology, plans, keep, list(found.left.values()))
        except BaseException:
            _undo(folder / name)
            raise
    return folder / name


def _start(
    folder: Path,
    known: state.BedState,
    topology: Topology,
    plans: Mapping[str, caps.HostCaps],
    keep: bool,
    warnings: list[str],
) -> None:
    groups = [str(group.path) for limits in plans.values() for group in limits.groups]
    memory = kernel.tcp_memory_bytes(topology)
    known = replace(known, cgroups=tuple(groups), tcp_memory_bytes=memory, owned=not keep)
    state.write(folder, known)
    caps.make(plans.values())
    warnings = [*warnings, *state.settle_kernel(folder.parent)]
    notes = {note for limits in plans.values() for note in limits.notes}
    begin = keeper.Start(
        topology=dict(topology),
        owner_pid=0 if keep else os.getpid(),
        user_namespace=os.geteuid() != 0,
        host_groups={
            host: [str(group.path) for group in limits.groups] for host, limits in plans.items()
        },
        warnings=[*warnings, *sorted(notes)],
    )
    (folder / keeper.START_FILE).write_text(json.dumps(asdict(begin)), encoding="utf-8")
    _run_keeper(folder)


def _run_keeper(folder: Path) -> None:
    """Starts the keeper and waits until the bed is up.

    Raises:
        FarlineError: what the keeper failed at.
    """
    ready, told = os.pipe()
    try:
        pid = _spawn(folder, told)
    finally:
        os.close(told)
    try:
        _check(_wait_for(ready), folder)
    except BaseException:
        processes.end(pid)
        raise
    finally:
        os.close(ready)


def _check(said: bytes, folder: Path) -> None:
    """Whether what a keeper said is that its bed is up."""
    if not said:
        raise InternalError(
            f"testbed: its keeper process ended without a message: {_last_words(folder)}"
        )
    answer = json.loads(said)
    if "failed" in answer:
        raise from_failure(answer["failed"])


def _spawn(folder: Path, told: int) -> int:
    """The keeper's process, in a session of its own: a Ctrl-C here is not meant for it."""
    command = [sys.executable, "-m", "farline.testbeds.keeper", str(folder), str(_READY_FD)]
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    actions = [
        (os.POSIX_SPAWN_DUP2, nothing, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
        (os.POSIX_SPAWN_DUP2, told, _READY_FD),
    ]
    try:
        return os.posix_spawn(
            sys.executable, command, os.environ, file_actions=actions, setsid=True
        )
    except OSError as error:
        raise SystemFailure(f"testbed: {sys.executable}: {error.strerror}") from None
    finally:
        os.close(log)
        os.close(nothing)


def _wait_for(ready: int) -> bytes:
    """What the keeper says; empty if it ends first.

    Raises:
        SystemFailure: when it says nothing in time.
    """
    said = bytearray()
    while select.select([ready], [], [], READY_TIMEOUT_S)[0]:
        data = os.read(ready, 65536)
        if not data:
            return bytes(said)
        said += data
    raise SystemFailure(f"testbed: its keeper process is not ready after {READY_TIMEOUT_S:.0f} s")


def _last_words(folder: Path) -> str:
    try:
        lines = (folder / "log").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return "no log"
    said = [line for line in lines if line.strip()]
    return said[-1] if said else "its log is empty"


def _undo(folder: Path) -> None:
    """Removes a bed that did not come up; the directory is locked."""
    state.remove(folder, state.read(folder), held=False)
