"""How a file system spreads a file over what it is made of, and which requests suit that.

Read from the programs of Lustre (`lfs getstripe`), GPFS (`mmlsattr`, `mmlsfs`) and XFS
(`xfs_info`), from the options of NFS mounts and from what Linux says of RAID (/proc/mdstat). A
program that is not there, or does not answer, is no error: then nothing is known. The parsers are
pure and take any text.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farline.spec.units import counted, size_human
from farline.tools.mounts import Mount, mount_of

_TIMEOUT_S = 5.0
_MOST_TEXT = 1 << 20
_SYS_BLOCK = Path("/sys/dev/block")
_MDSTAT = Path("/proc/mdstat")


@dataclass(frozen=True, slots=True)
class Striping:
    """What is known of one layer. `unit_bytes` is what lies together on one part of it.

    `width_bytes` is a unit on each part: what keeps all of them busy. None is unknown.
    """

    layer: str
    facts: tuple[str, ...]
    unit_bytes: int | None = None
    width_bytes: int | None = None
    limit_bytes: int | None = None
    """Largest request that goes in one piece, where there is such a limit (NFS)."""

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "layer": self.layer,
            "facts": list(self.facts),
            "unit_bytes": self.unit_bytes,
            "width_bytes": self.width_bytes,
            "limit_bytes": self.limit_bytes,
        }


def striping_of(path: Path) -> tuple[Striping, ...]:
    """What is known of the layers below `path`, the file system first."""
    mount = mount_of(path)
    if mount is None:
        return ()
    found = [*_of_file_system(path, mount), *_of_raid(mount)]
    return tuple(found)


def advice(layers: Sequence[Striping]) -> str | None:
    """One sentence on requests that suit the layers; None where nothing is known."""
    limits = [one for one in layers if one.limit_bytes]
    if limits:
        limit = limits[0].limit_bytes or 0
        return (
            f"requests above {size_human(limit)} are cut into pieces of {size_human(limit)}; "
            "several in flight hide the round trip of each"
        )
    units = [one for one in layers if one.unit_bytes]
    if not units:
        return None
    one = units[0]
    unit, width = one.unit_bytes or 0, one.width_bytes or 0
    line = f"requests of {size_human(unit)} or a multiple of it, at such offsets, touch whole units"
    if width > unit:
        line += f"; {size_human(width)} keeps all {width // unit} parts busy"
    return line


def _of_file_system(path: Path, mount: Mount) -> Iterator[Striping]:
    if mount.kind == "lustre":
        if text := _said("lfs", "getstripe", *(["-d"] if path.is_dir() else []), str(path)):
            yield from lustre(text)
    elif mount.kind == "gpfs":
        attributes = _said("mmlsattr", "-L", str(path)) or ""
        flags = _said("mmlsfs", mount.source.rpartition("/")[2], "-B") or ""
        block = os.statvfs(path).f_bsize
        yield gpfs(attributes, flags, block)
    elif mount.kind == "xfs":
        if text := _said("xfs_info", mount.point):
            yield from xfs(text)
    elif mount.kind in ("nfs", "nfs4"):
        yield from nfs(mount)


def lustre(text: str) -> Iterator[Striping]:
    """Of the output of `lfs getstripe`, of a file or with `-d` of a folder, composite or not."""
    parts = list(_lustre_parts(text))
    if not parts:
        return
    facts = []
    for end, count, size, pattern in parts:
        over = "all targets" if count < 0 else counted(count, "target")
        where = "" if len(parts) == 1 else ("rest: " if end is None else f"to {size_human(end)}: ")
        kind = "" if pattern in ("", "0", "1", "raid0") else f" ({pattern})"
        facts.append(f"{where}stripes of {size_human(size)} over {over}{kind}")
    _, count, size, _ = parts[-1]
    width = size * count if count > 0 else None
    yield Striping("lustre", tuple(facts), size, width)


_LUSTRE = re.compile(
    r"(?P<end>lcme_extent\.e_end):\s*(?P<at>\d+|EOF)"
    r"|(?<![a-z])(?:lmm_)?stripe_count:\s*(?P<count>-?\d+)"
    r"|(?<![a-z])(?:lmm_)?stripe_size:\s*(?P<size>\d+)"
    r"|(?<![a-z])(?:lmm_)?pattern:\s*(?P<pattern>[\w,]+)"
)


def _lustre_parts(text: str) -> Iterator[tuple[int | None, int, int, str]]:
    """End, stripes, size and pattern of the components; those on metadata targets have none."""
    end: int | None = None
    count: int | None = None
    size = 0
    for match in _LUSTRE.finditer(text):
        if match["end"]:
            end = None if match["at"] == "EOF" else int(match["at"])
        elif match["count"]:
            count = int(match["count"])
        elif match["size"]:
            size = int(match["size"])
            if count:
                pattern = _LUSTRE.search(text, match.end())
                yield end, count, size, (pattern and pattern["pattern"]) or ""
            count = None


def gpfs(attributes: str, flags: str, block_bytes: int) -> Striping:
    """Of `mmlsattr -L` and `mmlsfs -B`, and the block size that statfs(2) gives."""
    asked = re.search(r"^\s*-B\s+(\d+)", flags, re.MULTILINE)
    unit = int(asked[1]) if asked else block_bytes
    facts = [f"blocks of {size_human(unit)}, spread over all disks of the pool"]
    if pool := _field(attributes, "storage pool name"):
        facts.append(f"storage pool {pool}")
    if copies := re.match(r"\d+", _field(attributes, "data replication")):
        facts.append(f"each block is kept {counted(int(copies[0]), 'time')}")
    return Striping("gpfs", tuple(facts), unit)


def _field(text: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}:[ \t]*(\S.*)?$", text, re.MULTILINE | re.IGNORECASE)
    return (found[1] or "").strip() if found else ""


def xfs(text: str) -> Iterator[Striping]:
    """Of the output of `xfs_info`, whose units of stripes are blocks of the file system."""
    groups = re.search(r"agcount=(\d+), agsize=(\d+) blks", text)
    data = re.search(r"^data\s.*?bsize=(\d+).*?sunit=(\d+)\s+swidth=(\d+) blks", text, re.M | re.S)
    if groups is None or data is None:
        return
    block, unit, width = (int(number) for number in data.groups())
    size = size_human(int(groups[2]) * block)
    facts = [f"{counted(int(groups[1]), 'allocation group')} of {size}"]
    extent = re.search(r"^realtime\s.*?extsz=(\d+)\s+blocks=(\d+)", text, re.MULTILINE)
    if extent is not None and int(extent[2]):
        facts.append(f"realtime extents of {size_human(int(extent[1]))}")
    if unit:
        facts.append(f"stripe unit {size_human(unit * block)}, width {size_human(width * block)}")
    yield Striping("xfs", tuple(facts), unit * block or None, width * block or None)


def nfs(mount: Mount) -> Iterator[Striping]:
    """Of the options of an NFS mount."""
    read, write = (mount.options.get(name, "") for name in ("rsize", "wsize"))
    if not (read.isdigit() and write.isdigit()):
        return
    facts = [f"reads of up to {size_human(int(read))}, writes of up to {size_human(int(write))}"]
    if version := mount.options.get("vers"):
        facts.append(f"NFS version {version}")
    if (lines := mount.options.get("nconnect", "")).isdigit():
        facts.append(counted(int(lines), "connection") + " to the server")
    yield Striping("nfs", tuple(facts), limit_bytes=min(int(read), int(write)))


_MD = re.compile(
    r"^(?P<name>md\w+) : active (?:\([^)]*\) )?(?P<level>raid\d+) .*\n"
    r"(?P<rest>.*?(?P<chunk>\d+)[kK] chunks?\b.*)$",
    re.MULTILINE,
)


def raid(name: str, mdstat: str) -> Striping | None:
    """Of /proc/mdstat, for the array of that name; None for one without stripes."""
    for match in _MD.finditer(mdstat):
        if match["name"] != name:
            continue
        members = re.search(r"\[(\d+)/\d+\]", match["rest"])
        line = mdstat[match.start() : mdstat.index("\n", match.start())]
        # A striped array without redundancy shows no [n/m]: its members are listed.
        count = int(members[1]) if members else len(re.findall(r"\[\d+\](?!\(S\))", line))
        unit = int(match["chunk"]) << 10
        data = {"raid0": count, "raid5": count - 1, "raid4": count - 1, "raid6": count - 2,
                "raid10": count // 2}.get(match["level"], 0)  # fmt: skip
        facts = f"{name}: {match['level']} of {count} disks, chunks of {size_human(unit)}"
        return Striping("raid", (facts,), unit, unit * data if data > 0 else None)
    return None


def _of_raid(mount: Mount) -> Iterator[Striping]:
    try:
        text = _MDSTAT.read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    for name in _below(_SYS_BLOCK / mount.device):
        if name.startswith("md") and (found := raid(name, text)) is not None:
            yield found


def _below(device: Path, depth: int = 8) -> Iterator[str]:
    """Names of a block device and of those that it is made of: partitions, volumes, arrays."""
    try:
        place = device.resolve(strict=True)
        if (place / "partition").exists():
            place = place.parent
        yield place.name
        parts = sorted((place / "slaves").iterdir()) if depth else []
    except OSError:
        return
    for part in parts:
        yield from _below(part, depth - 1)


def _said(*words: str) -> str | None:
    """What a program prints; None where there is none, or it fails."""
    environment = {**os.environ, "LC_ALL": "C"}
    places = environment.get("PATH", "") + ":/usr/sbin:/sbin:/usr/lpp/mmfs/bin"
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
            env={**environment, "PATH": places}, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout[:_MOST_TEXT].decode("utf-8", "replace") if done.returncode == 0 else None
