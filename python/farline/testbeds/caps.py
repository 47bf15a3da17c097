"""Limits on what a host's programs may use: CPU time and disk speed, by control groups.

A host with a limit gets a control group of its own in each hierarchy that the limit needs;
`host.Host.command` puts a program there before it starts. Version 2 of the kernel's interface
is used where it has the controller, version 1 elsewhere.

With version 1 a disk limit holds for reads, and for direct and synchronous writes: what goes
through the page cache is written later by the kernel in nobody's name. `status` says so.

A group's name has the bed's token in it: it belongs to that bed and no other of its name.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from farline.errors import SpecError, SystemFailure
from farline.testbeds import processes

_PREFIX = "farline-testbed"
_PERIOD_US = 100_000
_MOUNTS = Path("/proc/self/mountinfo")
_BLOCK = Path("/sys/block")
_NO_DISKS = ("ram", "zram", "loop")
_CONTROLLERS = {"cpu": "cpu", "disk": "blkio"}
"""Controllers of version 1 by what they limit; version 2 calls the second `io`."""

_TRIES = 50
"""Times that removing a group is tried, 20 ms apart."""

V1_DISK_NOTE = "disk limits apply to reads and to direct and synchronous writes (cgroup v1)"


@dataclass(frozen=True)
class Hierarchy:
    """Where control groups for one limit are made."""

    root: Path
    version: int


@dataclass(frozen=True)
class Setting:
    """One line for one file of a control group."""

    file: str
    line: str


@dataclass(frozen=True)
class Group:
    """A control group to be made, and its settings."""

    path: Path
    hierarchy: Hierarchy
    controller: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class HostCaps:
    """Control groups of one host; empty if nothing limits it."""

    groups: tuple[Group, ...]
    notes: tuple[str, ...]


def plan(bed: str, token: str, topology: Mapping[str, Any]) -> dict[str, HostCaps]:
    """What limits each host of a bed that has a limit; nothing is made yet.

    Raises:
        SpecError: when a host is to use CPUs that this machine does not have.
        SystemFailure: when the kernel has no controller for a limit that was asked for.
    """
    plans = {}
    for host in topology["hosts"]:
        _check_cpus(host)
        group_name = f"{_PREFIX}.{bed}.{token}.{host['name']}"
        groups = [*_cpu_groups(group_name, host), *_disk_groups(group_name, host)]
        notes = {V1_DISK_NOTE for group in groups if _is_v1_disk(group)}
        if groups:
            plans[host["name"]] = HostCaps(tuple(groups), tuple(sorted(notes)))
    return plans


def _is_v1_disk(group: Group) -> bool:
    return group.controller == "disk" and group.hierarchy.version == 1


def _check_cpus(host: Mapping[str, Any]) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    for cpu in host.get("cpus") or ():
        if cpu not in allowed:
            raise SpecError(
                f"hosts.{host['name']}.cpus: no CPU {cpu}; allowed: {', '.join(map(str, allowed))}"
            )


def _cpu_groups(group_name: str, host: Mapping[str, Any]) -> Iterator[Group]:
    share = host.get("cpu_limit")
    if share is None:
        return
    hierarchy = _hierarchy("cpu", f"hosts.{host['name']}.cpu_limit")
    quota_us = round(share * _PERIOD_US)
    settings = (
        (Setting("cpu.max", f"{quota_us} {_PERIOD_US}"),)
        if hierarchy.version == 2
        else (
            Setting("cpu.cfs_period_us", str(_PERIOD_US)),
            Setting("cpu.cfs_quota_us", str(quota_us)),
        )
    )
    yield Group(hierarchy.root / group_name, hierarchy, "cpu", settings)


def _disk_groups(group_name: str, host: Mapping[str, Any]) -> Iterator[Group]:
    read, write = host.get("disk_read_bytes_per_s"), host.get("disk_write_bytes_per_s")
    if read is None and write is None:
        return
    hierarchy = _hierarchy("disk", f"hosts.{host['name']}.disk_read_bytes_per_s")
    settings = tuple(
        setting
        for device in _disks()
        for setting in _disk_settings(hierarchy.version, device, read, write)
    )
    yield Group(hierarchy.root / group_name, hierarchy, "disk", settings)


def _disk_settings(
    version: int, device: str, read: int | None, write: int | None
) -> Iterator[Setting]:
    if version == 2:
        limits = [f"{key}={value}" for key, value in (("rbps", read), ("wbps", write)) if value]
        yield Setting("io.max", f"{device} {' '.join(limits)}")
        return
    if read is not None:
        yield Setting("blkio.throttle.read_bps_device", f"{device} {read}")
    if write is not None:
        yield Setting("blkio.throttle.write_bps_device", f"{device} {write}")


def _disks() -> list[str]:
    """Numbers `MAJOR:MINOR` of the machine's disks."""
    names = (path for path in sorted(_BLOCK.iterdir()) if not path.name.startswith(_NO_DISKS))
    return [(path / "dev").read_text(encoding="ascii").strip() for path in names]


def _hierarchy(controller: str, place: str) -> Hierarchy:
    """Where the kernel limits what `controller` names.

    Raises:
        SystemFailure: when it does nowhere.
    """
    v1_name = _CONTROLLERS[controller]
    v2_name = "io" if controller == "disk" else controller
    for root, kind, options in _cgroup_mounts():
        if kind == "cgroup" and v1_name in options:
            return Hierarchy(root, 1)
        if kind == "cgroup2" and v2_name in _words(root / "cgroup.controllers"):
            return Hierarchy(root, 2)
    raise SystemFailure(
        f"{place}: this machine has no control groups with the controller {v2_name}"
    )


def _cgroup_mounts() -> Iterator[tuple[Path, str, list[str]]]:
    """Mounted hierarchies: place, type, options (proc(5), mountinfo)."""
    for line in _MOUNTS.read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            yield Path(before.split()[4]), kind, options.split(",")


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []


def make(plans: Iterable[HostCaps]) -> None:
    """Makes the control groups, which the bed's state must name already.

    Raises:
        SystemFailure: when the kernel refuses one.
    """
    for group in (group for caps in plans for group in caps.groups):
        try:
            if group.hierarchy.version == 2:
                _delegate(group)
            group.path.mkdir(exist_ok=True)
            for setting in group.settings:
                (group.path / setting.file).write_text(setting.line, encoding="ascii")
        except OSError as error:
            where = error.filename or group.path
            raise SystemFailure(
                f"limit on {group.controller} refused: {where}: {error.strerror}; root and a "
                "control group that allows children are needed"
            ) from None


def _delegate(group: Group) -> None:
    name = "io" if group.controller == "disk" else group.controller
    control = group.hierarchy.root / "cgroup.subtree_control"
    if name not in _words(control):
        control.write_text(f"+{name}", encoding="ascii")


def remove(paths: Iterable[str], token: str) -> list[str]:
    """Removes a bed's control groups and ends what is still in them; gives those that stay.

    Paths that are no control groups of the bed with this token are not touched.
    """
    ours = re.compile(rf"{_PREFIX}\.[a-z0-9-]+\.{re.escape(token)}\.[^/]+")
    roots = {root for root, _, _ in _cgroup_mounts()}
    groups = [Path(path) for path in paths]
    meant = [group for group in groups if group.parent in roots and ours.fullmatch(group.name)]
    return [str(group) for group in meant if not _take_apart(group)]


def _take_apart(group: Path) -> bool:
    """Ends the members of a control group and removes it; says whether it is gone."""
    for _ in range(_TRIES):
        for pid in _members(group):
            processes.end_if(pid, partial(_is_member, group, pid))
        try:
            group.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            time.sleep(0.02)  # a process that was killed is still being taken apart
        else:
            return True
    return False


def _members(group: Path) -> set[int]:
    """Processes in a group, but for this one, and for those of other process namespaces (0)."""
    return {int(word) for word in _words(group / "cgroup.procs")} - {0, os.getpid()}


def _is_member(group: Path, pid: int) -> bool:
    return pid in _members(group)
