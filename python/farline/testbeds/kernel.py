"""Settings of the whole machine that long paths need, raised while beds are up.

All TCP connections of a machine, in all its namespaces, share `net.ipv4.tcp_mem`. A path of
10 Gb/s and 366 ms holds gigabytes in socket buffers; at the default the kernel then throws away
data that it has already acknowledged selectively, and senders wait for time-outs. Socket
buffers that programs ask for are bounded by `rmem_max` and `wmem_max` likewise.

The settings are one for the whole machine, so what was there before them, and which beds need
them, is written down in one place, wherever the beds themselves are: /run/farline/kernel.json,
or $FARLINE_TESTBED_KERNEL_FILE.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from farline.testbeds import places

FILE_VARIABLE = "FARLINE_TESTBED_KERNEL_FILE"
NAMES = ("net.core.rmem_max", "net.core.wmem_max", "net.ipv4.tcp_mem")
"""The settings that are touched, and no others."""

_VALUE = re.compile(r"\d+(\t\d+)*")
_WHOLE_MACHINE = ["0", "0", "4294967295"]
_UID_MAP = Path("/proc/self/uid_map")
_SYSCTLS = Path("/proc/sys")
_HELD_FACTOR = 8
"""TCP memory per byte under way or queued: both ends hold it, with the kernel's overhead, and a
receiver holds up to a window more out of order."""

_MEMORY_SHARE = 0.5
"""Most of the machine's memory that TCP may be given."""

_BUFFER_MAX_BYTES = 2_147_483_647


@dataclass(frozen=True)
class Setting:
    """A setting that was raised: its value before any bed, and those that beds gave it.

    There are two of the latter while one replaces the other: either may be in the kernel.
    """

    before: str
    given: tuple[str, ...]


@dataclass(frozen=True)
class Held:
    """What is written down: TCP memory by the folder of the bed that needs it, and settings."""

    needs: Mapping[str, int]
    settings: Mapping[str, Setting]


def file_for(folder: Path) -> Path:
    """Where settings are written down that beds in `folder` need.

    Root has one place. Who may not change them has nothing to share: it is the beds' own folder.
    """
    given = os.environ.get(FILE_VARIABLE)
    if given:
        return Path(given).absolute()
    if os.geteuid() == 0 and _is_root_of_machine():
        return Path("/run/farline/kernel.json")
    return folder / "kernel.json"


def _is_root_of_machine() -> bool:
    """Whether user 0 here is the machine's, not the root of a user namespace."""
    try:
        return _UID_MAP.read_text(encoding="ascii").split() == _WHOLE_MACHINE
    except OSError:
        return True


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Within the block nobody else changes the settings that `file` is about.

    Raises:
        SystemFailure: when its folder is not this user's own.
    """
    places.make_own(file.parent)
    with places.exclusive(file.with_name(f".{file.name}.lock")):
        yield


def tcp_memory_bytes(topology: Mapping[str, Any]) -> int:
    """Memory for TCP that the topology's links can come to need, by their schedules too."""
    return sum(_HELD_FACTOR * _link_bytes(link) for link in topology["links"])


def _link_bytes(link: Mapping[str, Any]) -> int:
    """What a link holds at most: a bandwidth-delay product, and its queue."""
    forward = link["forward"]
    back = link.get("reverse") or forward
    rtt_s = sum(max(_ever(pipe, "delay_s"), default=0.0) for pipe in (forward, back))
    most = 0
    for pipe in (forward, back):
        product = int(max(_ever(pipe, "rate_bps"), default=0) / 8 * rtt_s)
        most = max(most, product + _queue_bytes(pipe, product))
    return most


def _ever(pipe: Mapping[str, Any], key: str) -> list[Any]:
    """Every value that a field has at the start or by the schedule; 0 and none are left out."""
    changes = [item["change"] for item in pipe.get("schedule") or ()]
    return [value for fields in (pipe, *changes) if (value := fields.get(key))]


def _queue_bytes(pipe: Mapping[str, Any], product: int) -> int:
    queue = pipe.get("queue") or {}
    stated = [
        queue.get("capacity_bytes"),
        queue.get("capacity_bdp") and int(queue["capacity_bdp"] * product),
    ]
    known = [value for value in stated if value]
    later = _ever(pipe, "capacity_bytes")
    later += [int(products * product) for products in _ever(pipe, "capacity_bdp")]
    most: int = max([min(known) if known else product, *later])
    return most


def settle(file: Path, needs: Mapping[str, int]) -> list[str]:
    """Makes the settings serve the beds in `needs`, or puts them back; the file is locked.

    What cannot be set is a warning: short transfers and short paths do without. A value that
    somebody else has set meanwhile is what was there before from then on.
    """
    settings = {
        name: setting
        for name, setting in read(file).settings.items()
        if _get(name) in setting.given
    }
    wanted = _wanted(sum(needs.values()), settings)
    warnings = []
    for name in sorted({*settings, *wanted}):
        value = wanted.get(name)
        setting = settings.get(name) or Setting(_get(name), ())
        if value is None:
            _set(name, setting.before)
            del settings[name]
            continue
        settings[name] = Setting(setting.before, tuple(dict.fromkeys((*setting.given, value))))
        _write(file, Held(needs, settings))
        refused = _set(name, value)
        warnings += refused
        if not refused:
            settings[name] = Setting(setting.before, (value,))
    if needs or settings:
        _write(file, Held(needs, settings))
    else:
        file.unlink(missing_ok=True)
    return warnings


def _wanted(needed_bytes: int, held: Mapping[str, Setting]) -> dict[str, str]:
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
        present = held[name].before if name in held else _get(name)
        before = [int(word) for word in present.split()]
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
        return [f"{name} is left unchanged ({error.strerror}); long fast paths need {shown}"]
    return []


def _path(name: str) -> Path:
    return _SYSCTLS / name.replace(".", "/")


def read(file: Path) -> Held:
    """What is written down; of what is not as `settle` writes it, nothing."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return Held(
            {str(bed): int(need) for bed, need in document["needs"].items()},
            {
                name: Setting(_value(item["before"]), tuple(map(_value, item["given"])))
                for name, item in document["settings"].items()
                if name in NAMES
            },
        )
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return Held({}, {})


def _value(text: Any) -> str:
    """A value of a setting as `_get` gives it.

    Raises:
        ValueError: when it is none.
    """
    if not isinstance(text, str) or not _VALUE.fullmatch(text):
        raise ValueError(f"{text!r} is not a value for a setting")
    return text


def _write(file: Path, held: Held) -> None:
    places.write_json(file, asdict(held))
