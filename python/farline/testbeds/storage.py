"""File systems of the testbed: stated rates, latency and credits on this machine, through FUSE.

Rates are a tenth of those in the papers, so that a small machine can carry them: what counts is the
shape. Files are in memory, within a capacity. The mount ends with its block, and the kernel ends it
when the process is killed; the name that then stays mounted is freed by the next one there.
"""

from __future__ import annotations

import errno
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline import _native
from farline.errors import SystemFailure, UsageError
from farline.spec.near import unknown
from farline.spec.units import rate_human, size_human, time_human
from farline.testbeds.native import checked
from farline.tools.mounts import mount_of

if TYPE_CHECKING:
    from farline.spec._types import StorageCounters, StorageSpec

SOURCE_PREFIX = "farline-storage-"
CAPACITY_BYTES = 2 << 30
_MESSAGE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class StoragePreset:
    """A kind of file system, and where its figures are from."""

    name: str
    description: str
    values: Mapping[str, Any]


PRESETS: dict[str, StoragePreset] = {
    one.name: one
    for one in (
        StoragePreset(
            "lustre-like",
            "a process has a quarter of what all reach (Rao et al. 2018, Fig. 5a: 12 Gbit/s)",
            {
                "process_read_bps": 400_000_000, "process_write_bps": 300_000_000,
                "total_read_bps": 1_600_000_000, "total_write_bps": 1_200_000_000,
                "latency_s": 0.001,
            },
        ),
        StoragePreset(
            "gpfs-like",
            "many processes reach much together (Rao et al. 2018, Fig. 5b: 60 Gbit/s)",
            {
                "process_read_bps": 1_500_000_000, "process_write_bps": 1_000_000_000,
                "total_read_bps": 6_000_000_000, "total_write_bps": 6_000_000_000,
                "latency_s": 0.0005,
            },
        ),
        StoragePreset(
            "lnet-like",
            "8 messages of 1 MiB in flight at once: W/RTT (Rao et al. 2018, section 4.2)",
            {
                "total_read_bps": 10_000_000_000, "total_write_bps": 10_000_000_000,
                "latency_s": 0.05, "credits": 8,
            },
        ),
        StoragePreset(
            "nvme",
            "one process reaches all there is, at short latency",
            {
                "total_read_bps": 8_000_000_000, "total_write_bps": 8_000_000_000,
                "latency_s": 0.0001,
            },
        ),
    )
}  # fmt: skip


def storage_spec(preset: str, **stated: Any) -> StorageSpec:
    """The figures of a preset, with those that are stated in their place.

    `process_bps` and `total_bps` stand for reads and writes alike.

    Raises:
        UsageError: when there is no such preset.
    """
    if preset not in PRESETS:
        raise UsageError(f"no such storage preset: {preset}; {unknown(preset, PRESETS)}")
    values = {"capacity_bytes": CAPACITY_BYTES, **PRESETS[preset].values}
    for short in ("process", "total"):
        if (rate := stated.pop(f"{short}_bps", None)) is not None:
            values |= {f"{short}_{way}_bps": int(rate) for way in ("read", "write")}
    values |= {name: value for name, value in stated.items() if value is not None}
    spec: StorageSpec = {"name": preset, "message_bytes": _MESSAGE_BYTES, **values}  # type: ignore[typeddict-item]
    return spec


def spec_line(spec: StorageSpec) -> str:
    """`reads 400 Mbit/s by one process, 1.6 Gbit/s in all; writes …; latency 1 ms; room 2 GiB`."""
    words = []
    for way in ("read", "write"):
        each, total = spec.get(f"process_{way}_bps"), spec[f"total_{way}_bps"]  # type: ignore[literal-required]
        by = f"{rate_human(float(str(each)))} by one process, " if each else ""
        words.append(f"{way}s {by}{rate_human(float(total))} in all")
    words.append(f"latency {time_human(1e6 * spec['latency_s'])}")
    if (credits := spec.get("credits")) is not None:
        words.append(f"{credits} credits of {size_human(spec['message_bytes'])}")
    words.append(f"room for {size_human(spec['capacity_bytes'])}")
    return "; ".join(words)


class MountedStorage:
    """A file system that is mounted."""

    def __init__(self, place: Path, mount: _native.StorageMount) -> None:
        """Made by `mounted_storage`."""
        self.place, self._mount = place, mount

    @property
    def is_mounted(self) -> bool:
        """Whether it still serves: somebody may have unmounted it."""
        return checked(self._mount.is_mounted)

    def counters(self) -> StorageCounters:
        """Bytes read and written, messages that waited for a credit."""
        found: StorageCounters = json.loads(checked(self._mount.counters))
        return found


@contextmanager
def mounted_storage(spec: StorageSpec, place: Path) -> Iterator[MountedStorage]:
    """Mounts a file system over the empty folder `place` while the block runs.

    Raises:
        UsageError: when `place` is no folder, or has something in it.
        SystemFailure: when FUSE cannot be used here.
    """
    _free(place)
    if not place.is_dir():
        raise UsageError(f"{place}: not a folder; make one to mount at")
    if any(place.iterdir()):
        raise UsageError(f"{place}: is not empty; what is in it would be hidden")
    mount = checked(_native.start_storage, json.dumps(spec), str(place))
    try:
        yield MountedStorage(place, mount)
    finally:
        checked(mount.stop)


def _free(place: Path) -> None:
    """Unmounts what a killed process has left mounted there."""
    try:
        place.stat()
        return
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            return
    found = mount_of(place.parent / place.name)
    if found is None or not found.source.startswith(SOURCE_PREFIX):
        return
    for words in (("umount", "-l"), ("fusermount3", "-u", "-z")):
        try:
            done = subprocess.run([*words, str(place)], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return
    raise SystemFailure(
        f"{place}: what a killed process left mounted there cannot be unmounted; as root: "
        f"umount -l {place}"
    )
