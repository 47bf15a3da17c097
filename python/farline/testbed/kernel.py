"""Settings of the whole machine that long paths need, raised while beds are up.

All TCP connections of a machine, in all its namespaces, share `net.ipv4.tcp_mem`. A path of
10 Gb/s and 366 ms holds gigabytes in socket buffers; at the default the kernel then throws away
data that it has already acknowledged selectively, and senders wait for time-outs. Socket
buffers that programs ask for are bounded by `rmem_max` and `wmem_max` likewise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_SYSCTLS = Path("/proc/sys")
_HELD_FACTOR = 8
"""TCP memory per byte under way or queued: both ends hold it, with the kernel's overhead, and a
receiver holds up to a window more out of order."""

_MEMORY_SHARE = 0.5
"""Most of the machine's memory that TCP may be given."""

_BUFFER_MAX_BYTES = 2_147_483_647


def tcp_memory_bytes(topology: Mapping[str, Any]) -> int:
    """Memory for TCP that the topology's links can come to need."""
    return sum(_HELD_FACTOR * _link_bytes(link) for link in topology["links"])


def _link_bytes(link: Mapping[str, Any]) -> int:
    """What a link holds at most: a bandwidth-delay product, and its queue."""
    forward = link["forward"]
    back = link.get("reverse") or forward
    rtt_s = forward["delay_s"] + back["delay_s"]
    most = 0
    for pipe in (forward, back):
        product = int((pipe.get("rate_bps") or 0) / 8 * rtt_s)
        most = max(most, product + _queue_bytes(pipe.get("queue") or {}, product))
    return most


def _queue_bytes(queue: Mapping[str, Any], product: int) -> int:
    stated = [
        queue.get("capacity_bytes"),
        queue.get("capacity_bdp") and int(queue["capacity_bdp"] * product),
    ]
    known = [value for value in stated if value]
    return min(known) if known else product


def settle(file: Path, needed_bytes: int, write_json: Callable[[Path, Any], None]) -> list[str]:
    """Makes the settings serve `needed_bytes` of TCP memory, or puts them back for 0.

    `file` keeps what was there before. What cannot be set is a warning: short transfers and
    short paths do without.
    """
    held = _read(file)
    warnings = []
    wanted = _wanted(needed_bytes, held)
    for name in sorted({*held, *wanted}):
        before = held.get(name, {}).get("before", _get(name))
        value = wanted.get(name)
        if value is not None:
            held[name] = {"before": before, "set": value}
            write_json(file, held)
            warnings += _set(name, value)
        else:
            # Somebody else's value stays.
            if _get(name) == held[name]["set"]:
                _set(name, held[name]["before"])
            del held[name]
            write_json(file, held)
    if not held:
        file.unlink(missing_ok=True)
    return warnings


def _wanted(needed_bytes: int, held: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Settings that must be higher than they were before any bed."""
    if not needed_bytes:
        return {}
    limit = min(needed_bytes, int(_memory_bytes() * _MEMORY_SHARE))
    pages = limit // os.sysconf("SC_PAGE_SIZE")
    largest = min(limit // 2, _BUFFER_MAX_BYTES)
    targets = {
        "net.ipv4.tcp_mem": [pages * 3 // 4, pages, pages * 5 // 4],
        "net.core.rmem_max": [largest],
        "net.core.wmem_max": [largest],
    }
    wanted = {}
    for name, target in targets.items():
        before = [int(word) for word in held.get(name, {}).get("before", _get(name)).split()]
        if before and target[-1] > before[-1]:
            wanted[name] = "\t".join(map(str, map(max, before, target)))
    return wanted


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _get(name: str) -> str:
    """Value of a setting with its words one tab apart; empty where this kernel has none."""
    try:
        text = _path(name).read_text(encoding="ascii")
    except OSError:
        return ""
    return "\t".join(text.split())


def _set(name: str, value: str) -> list[str]:
    """Sets it; a warning if that cannot be."""
    if _get(name) == value:
        return []
    try:
        _path(name).write_text(value, encoding="ascii")
    except OSError as error:
        shown = value.replace("\t", " ")
        return [f"{name} stays as it is ({error.strerror}); long fast paths need {shown}"]
    return []


def _path(name: str) -> Path:
    return _SYSCTLS / name.replace(".", "/")


def _read(file: Path) -> dict[str, dict[str, str]]:
    try:
        held: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held
