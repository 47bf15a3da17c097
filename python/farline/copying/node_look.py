"""What a node of several sees and can do, asked over the channel of orders before a copy begins.

```text
-> {"schema": 1, "look": {"make": "/archive/run", "name": ".farline-nodes-NONCE"}}
<- {"event": "looked", "data": {"made": "/archive/.farline-nodes-NONCE"}}
-> {"schema": 1, "look": {"see": ["/archive/.farline-nodes-NONCE"], "capacity": "/archive/run"}}
<- {"event": "looked", "data": {"seen": [true], "capacity": {"cpus": 8, ...}}}
-> {"schema": 1, "look": {"place": {"own": "10.0.0.1", "towards": "10.1.0.1"}}}
<- {"event": "looked", "data": {"place": {"cpus": [8, 9], "why": "ens1 is at NUMA node 1"}}}
```

A file that one node makes and the others see is the one proof that they share a file system: names
and numbers of mounts say little, and images that were cloned have the same. It is removed when the
node is asked no more, and so is never there for longer than the start of a copy.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

LOOKED = "looked"
"""The event that answers."""

PREFIX = ".farline-nodes-"
_NAME = re.compile(re.escape(PREFIX) + r"[0-9a-f]{32}")
_MOST_PATHS = 1024


class NodeLook:
    """Answers questions about this node, and takes back what it made for them at `close`."""

    def __init__(self) -> None:
        """Nothing is made."""
        self._made: list[Path] = []

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked for; a question that makes no sense has no answer."""
        found: dict[str, Any] = {}
        if isinstance(path := asked.get("make"), str):
            found["made"] = self._make(path, str(asked.get("name")))
        if isinstance(paths := asked.get("see"), list):
            found["seen"] = [os.path.lexists(str(one)) for one in paths[:_MOST_PATHS]]
        if isinstance(path := asked.get("capacity"), str):
            found["capacity"] = capacity(path)
        if isinstance(place := asked.get("place"), dict):
            from farline.copying.stream_places import stream_place

            found["place"] = stream_place(place).document()
        return found

    def _make(self, path: str, name: str) -> str | None:
        """An empty file in the folder that `path` is or would be in; None where none can be."""
        if not _NAME.fullmatch(name):
            return None
        file = nearest_folder(path) / name
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError:
            return None
        self._made.append(file)
        return str(file)

    def close(self) -> None:
        """Removes what was made."""
        for file in self._made:
            with suppress(OSError):
                file.unlink()
        self._made = []


def nearest_folder(path: str) -> Path:
    """The folder `path`, or the one nearest above it that is there."""
    at = Path(path)
    return next((one for one in (at, *at.parents) if one.is_dir()), Path("/"))


def capacity(path: str) -> dict[str, Any]:
    """What this node has: `cpus` that farline may use there, `cores`, `numa_nodes`, `memory_bytes`,
    `nic_bps` of the fastest interface that is up, `disk_bytes` and `free_bytes` of the file system
    at `path`; what it does not say is absent."""
    from farline.tools.host_layout import host_layout

    layout = host_layout()
    memory = sum(node.memory_bytes or 0 for node in layout.nodes) or _memory_bytes()
    speeds = [nic.speed_bps for nic in layout.nics if nic.is_up and nic.speed_bps]
    found: dict[str, Any] = {"cpus": len(os.sched_getaffinity(0)), "memory_bytes": memory}
    found["cores"], found["numa_nodes"] = len(layout.siblings), len(layout.nodes)
    found["nic_bps"] = max(speeds, default=0)
    with suppress(OSError):
        disk = shutil.disk_usage(nearest_folder(path))
        found["disk_bytes"], found["free_bytes"] = disk.total, disk.free
    return {name: value for name, value in found.items() if value}


def _memory_bytes() -> int:
    """Of a kernel without NUMA, whose sysfs has no nodes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
