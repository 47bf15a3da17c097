"""Whether a copy between two folders of this host would copy a folder into itself.

Asked before anything is made. Folders are known by what the kernel says of them, and not by their
names: links, `..` and the names of bind mounts lead to the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farline.errors import UsageError
from farline.spec.path_text import from_path_text, to_path_text

_Identity = tuple[int, int]
"""Device and inode."""

_CONTENT = ("/", "/.", "/..")
"""Ends of a source that stands for what is in the folder."""


@dataclass(frozen=True)
class _Source:
    text: str
    """As it was written."""
    path: Path
    is_content: bool

    @property
    def is_link(self) -> bool:
        """Whether it is a link, and copied as one unless links are followed."""
        return not self.is_content and self.path.is_symlink()


def check_not_into_itself(
    sources: Sequence[str], destination: str, copy: Mapping[str, Any], listed: bool = False
) -> None:
    """Refuses what would never end, or would put a file over itself; `copy` is a spec's section.

    With `listed` only names of a list are copied from the source, which may then hold the
    destination. What cannot be looked at is left to the copy, which says why.

    Raises:
        UsageError: with the source and the destination, and what to do.
    """
    target = Path(os.fsdecode(from_path_text(destination)))
    try:
        holders = _holders(target)
    except (OSError, RuntimeError):  # the latter for links that form a loop, up to Python 3.12
        return
    for text in sources:
        path = os.fsdecode(from_path_text(text))
        is_content = path.endswith(_CONTENT) or path in (".", "..")
        source = _Source(text, Path(path), is_content)
        try:
            _check_same(source, destination, target)
            if source.path.is_dir() and (copy.get("links") == "follow" or not source.is_link):
                _check_kept(source, destination, target, copy)
                if not listed and copy.get("recursive", True):
                    _check_outside(source, destination, target, holders, copy)
        except (OSError, RuntimeError):  # the latter for links that form a loop, up to Python 3.12
            continue


def _goes_to(source: _Source, target: Path) -> Path:
    """What the source becomes at the destination."""
    return target if source.is_content or not target.is_dir() else target / source.path.name


def _check_same(source: _Source, destination: str, target: Path) -> None:
    """Refuses a source that is what it would become; two names of one file (hard links) are not."""
    goes_to = _goes_to(source, target)
    if not os.path.lexists(goes_to):
        return
    if source.is_content:
        is_same = goes_to.exists() and source.path.samefile(goes_to)
    else:
        first, second = source.path.lstat(), goes_to.lstat()
        # Where a and A are one name, both are the one that there is.
        is_same = os.path.samestat(first, second) and (
            first.st_nlink == 1 or _name(source.path) == _name(goes_to)
        )
    if is_same:
        what = "folder" if source.path.is_dir() else "file"
        raise UsageError(
            f"{source.text} and {destination}: source and destination are the same {what}; choose "
            "another destination"
        )


def _name(path: Path) -> tuple[_Identity, str]:
    return _identity(path.parent), path.name


def _identity(path: Path) -> _Identity:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


def _check_kept(source: _Source, destination: str, target: Path, copy: Mapping[str, Any]) -> None:
    """Refuses a deletion at a destination that the source itself is in."""
    if copy.get("delete") is None and not copy.get("force"):
        return
    goes_to = _goes_to(source, target)
    if goes_to.is_dir() and _identity(goes_to) in _holders(source.path):
        raise UsageError(
            f"{source.text} into {destination}: the source is inside the destination, and --delete "
            "or --force may delete it; leave them out, or choose another destination"
        )


def _check_outside(
    source: _Source,
    destination: str,
    target: Path,
    holders: Mapping[_Identity, str],
    copy: Mapping[str, Any],
) -> None:
    """Refuses a destination inside the source, unless the rules leave it out."""
    way = holders.get(_identity(source.path))
    if way is None and (way := _way_on_device(source.path, target)) is None:
        return
    below = way if source.is_content else f"{source.path.name}/{way}".rstrip("/")
    rules = copy.get("filters", ())
    if rules and below:
        from farline.tools.native import looks_into

        if not looks_into(rules, os.fsencode(below)):
            return
    leave_out = f", or leave it out with --exclude '/{_text(below)}'" if way else ""
    raise UsageError(
        f"{source.text} into {destination}: the destination is inside the source, so the copy "
        f"would contain itself; choose a destination outside of {source.text}{leave_out}"
    )


def _text(path: str) -> str:
    return to_path_text(os.fsencode(path))


def _holders(path: Path) -> dict[_Identity, str]:
    """The folder that `path` is or will be in, and all above it: the way from each to `path`."""
    folder, way = _existing(path)
    found: dict[_Identity, str] = {}
    for above in (folder, *folder.parents):
        rest = folder.relative_to(above).as_posix()
        parts = [part for part in (rest, way) if part not in (".", "")]
        found.setdefault(_identity(above), "/".join(parts))
    return found


def _existing(path: Path) -> tuple[Path, str]:
    """`path` without links; of one that is not there the folder that it is to be made in."""
    if path.is_dir():
        return path.resolve(), ""
    return path.parent.resolve(), path.name


def _way_on_device(source: Path, target: Path) -> str | None:
    """The way from `source` to `target` where both are on one device, whatever leads there.

    A bind mount of a folder inside the source leads into it without passing through it.
    """
    outside, inside = _on_device(source), _on_device(target)
    if outside[0] != inside[0] or not inside[1].is_relative_to(outside[1]):
        return None
    way = inside[1].relative_to(outside[1]).as_posix()
    return "" if way == "." else way


def _on_device(path: Path) -> tuple[str, Path]:
    """Device and path from that device's own root: what each name of a bind mount stands for."""
    folder, name = _existing(path)
    at, device, root = Path("/"), "", "/"
    for point, of_device, of_root in _mounts():
        # Of two mounts at one place the later one is what is seen.
        if folder.is_relative_to(point) and len(point.parts) >= len(at.parts):
            at, device, root = point, of_device, of_root
    return device, Path(root) / folder.relative_to(at) / name


def _mounts() -> Iterator[tuple[Path, str, str]]:
    """Mount points with their device and the folder of it that they show (proc(5), mountinfo)."""
    with Path("/proc/self/mountinfo").open("rb") as table:
        for line in table:
            _, _, device, root, point, *_ = line.split(b" ")
            yield Path(_plain(point)), device.decode(), _plain(root)


def _plain(text: bytes) -> str:
    """A path without the escapes of that file."""
    for escape, letter in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n")):
        text = text.replace(escape, letter)
    return os.fsdecode(text.replace(b"\\134", b"\\"))
