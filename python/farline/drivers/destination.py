"""What lies at an end of a copy: names, sizes, hashes. A tool's exit code proves nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farline.drivers.driver import FilePair, Task, refuse
from farline.drivers.places import OverSsh, Place, Standing
from farline.errors import ProtocolError, SystemFailure, UsageError
from farline.spec.path_text import to_path_text

HASH_S = 6 * 3600.0
"""Hashing at another host may take so long."""

_LIST = (
    'if [ -d "$1" ]; then cd -- "$1" && find . -type f -printf "%s %T@ %P\\0";'
    ' elif [ -e "$1" ]; then find "$1" -maxdepth 0 -type f -printf "%s %T@ \\0"; fi'
)
_HASH = (
    'if [ -d "$1" ]; then cd -- "$1" && find . -type f -print0 | xargs -0 -r sha256sum -z --;'
    ' elif [ -e "$1" ]; then sha256sum -z -- "$1"; fi'
)
_FOLDER = '[ -d "$1" ] && echo folder || { [ -e "$1" ] && echo file; }; true'


@dataclass(frozen=True)
class Name:
    """One regular file: its size and time of last change."""

    size_bytes: int
    changed_at_s: float

    def is_as_old_as(self, other: Name) -> bool:
        """Whether both were changed in the same second: some tools keep no more of it."""
        return abs(self.changed_at_s - other.changed_at_s) < 1.0


@dataclass(frozen=True)
class End:
    """One end of a copy: the paths of its pairs, and the place where they are."""

    place: Place
    paths: tuple[str, ...]

    def names(self) -> dict[str, Name]:
        """Every regular file, by number of its pair and name below it."""
        found = {}
        for number, path in enumerate(self.paths):
            listed = (
                _listed_there(self.place, path)
                if isinstance(self.place, OverSsh)
                else _listed(path)
            )
            found.update({f"{number}/{name}": one for name, one in listed})
        return found

    def hashes(self) -> dict[str, str]:
        """SHA-256 of every regular file, by the same names."""
        found = {}
        for number, path in enumerate(self.paths):
            hashed = (
                _hashed_there(self.place, path)
                if isinstance(self.place, OverSsh)
                else _hashed(path)
            )
            found.update({f"{number}/{name}": one for name, one in hashed})
        return found


def both_ends(files: Sequence[FilePair], source: Place, destination: Place) -> tuple[End, End]:
    """The ends that files come from and go to."""
    return (
        End(source, tuple(pair.source for pair in files)),
        End(destination, tuple(pair.destination for pair in files)),
    )


def names_of(task: Task) -> list[str]:
    """Every path that a tool is to carry: both of each pair, and files below source folders.

    Those of a running server cannot be seen from here.
    """
    names = [name for pair in task.files for name in (pair.source, pair.destination)]
    return [*names, *(name for below in files_below(task).values() for name in below)]


def files_below(task: Task) -> dict[str, list[str]]:
    """Files below each source folder that can be seen, by their paths below it."""
    place: Any = task.client if task.forward else task.server
    folders = [pair.source for pair in task.files if pair.is_folder]
    if isinstance(place, Standing):
        return {}
    return {
        path: [name.partition("/")[2] for name in End(place, (path,)).names()] for path in folders
    }


def refuse_names(tool: str, task: Task, lost: str, is_carried: Callable[[str], bool]) -> None:
    """For tools that lose or change some names: `lost` says which, in the plural.

    Raises:
        SpecError: with the first such name.
    """
    for name in names_of(task):
        if not is_carried(name):
            shown = to_path_text(os.fsencode(name))
            raise refuse(
                tool, "copy.sources",
                f"does not carry {lost}, such as {shown}; use another tool, such as rsync, or "
                "rename it",
            )  # fmt: skip


def refuse_empty(tool: str, task: Task) -> None:
    """For tools to which a folder without files is a mistake in their command line.

    Raises:
        SpecError: with the first such folder.
    """
    for path, names in files_below(task).items():
        if not names:
            shown = to_path_text(os.fsencode(path))
            raise refuse(tool, "copy.sources", f"has nothing to copy: no file is below {shown}")


def kind_at(place: Place, path: str) -> str:
    """`folder`, `file` or nothing."""
    if isinstance(place, OverSsh):
        return place.ask(["sh", "-c", _FOLDER, "farline", path]).stdout.strip()
    return "folder" if Path(path).is_dir() else "file" if Path(path).exists() else ""


def make_folder(place: Place, path: str) -> None:
    """Makes a folder with those above it, if it is not there.

    Raises:
        SystemFailure: when it cannot be made.
    """
    if isinstance(place, OverSsh):
        done = place.ask(["mkdir", "-p", "--", path])
        if done.returncode:
            raise SystemFailure(f"{path} on {place}: {done.stderr.strip()}")
        return
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from None


def refuse_replacing(tool: str, files: Sequence[FilePair], source: End, destination: End) -> None:
    """Refuses a copy that would replace files which differ, where nobody asked for that.

    Raises:
        UsageError: with the first such name.
    """
    ours, theirs = source.names(), destination.names()
    both = [name for name in ours if name in theirs]
    differ = [name for name in both if ours[name].size_bytes != theirs[name].size_bytes]
    if not differ and any(not ours[name].is_as_old_as(theirs[name]) for name in both):
        hashes, others = source.hashes(), destination.hashes()
        differ = [name for name in both if hashes[name] != others[name]]
    if differ:
        raise UsageError(
            f"{_shown(files, differ[0])} exists and differs, and {tool} would replace it: use "
            "--overwrite different to allow that, or another destination"
        )


def prove(
    tool: str, files: Sequence[FilePair], source: End, destination: End, with_hashes: bool
) -> tuple[int, int]:
    """Compares both ends: number of files, and bytes in them.

    Raises:
        ProtocolError: for the first file that is missing, short or different; says how many are.
    """
    wanted, there = source.names(), destination.names()
    wrong = [
        (name, _why(one, there.get(name)))
        for name, one in wanted.items()
        if name not in there or there[name].size_bytes != one.size_bytes
    ]
    if not wrong and with_hashes:
        ours, theirs = source.hashes(), destination.hashes()
        wrong = [
            (name, "its content differs from the source's")
            for name in wanted
            if ours.get(name) != theirs.get(name)
        ]
    if wrong:
        name, why = wrong[0]
        more = f" ({len(wrong)} of {len(wanted)} files are wrong)" if len(wanted) > 1 else ""
        raise ProtocolError(f"{tool} failed: {_shown(files, name)}: {why}{more}; run it again")
    return len(wanted), sum(one.size_bytes for one in wanted.values())


def _why(one: Name, there: Name | None) -> str:
    if there is None:
        return "it is not at the destination"
    return f"it has {there.size_bytes} bytes at the destination, {one.size_bytes} at the source"


def _shown(files: Sequence[FilePair], name: str) -> str:
    number, _, below = name.partition("/")
    whole = str(Path(files[int(number)].destination) / below)
    return to_path_text(os.fsencode(whole))


def _listed(path: str) -> Iterator[tuple[str, Name]]:
    for name, full in _files(path):
        stat = full.stat()
        yield name, Name(stat.st_size, stat.st_mtime)


def _files(path: str) -> Iterator[tuple[str, Path]]:
    """Regular files below a folder, or the file itself under an empty name."""
    root = Path(path)
    if root.is_file():
        yield "", root
        return
    for folder, _, names in os.walk(path):
        for name in names:
            full = Path(folder) / name
            if full.is_file() and not full.is_symlink():
                yield str(full.relative_to(root)), full


def _hashed(path: str) -> Iterator[tuple[str, str]]:
    for name, full in _files(path):
        try:
            with full.open("rb") as file:
                yield name, hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise SystemFailure(f"{full}: {error.strerror}") from None


def _listed_there(place: OverSsh, path: str) -> Iterator[tuple[str, Name]]:
    for line in _ask(place, _LIST, path):
        size, when, name = line.split(" ", 2)
        yield name, Name(int(size), float(when))


def _hashed_there(place: OverSsh, path: str) -> Iterator[tuple[str, str]]:
    for line in _ask(place, _HASH, path):
        digest, _, name = line.partition("  ")
        yield ("" if name == path else name.removeprefix("./")), digest


def _ask(place: OverSsh, script: str, path: str) -> list[str]:
    done = place.ask(["sh", "-c", script, "farline", path], timeout_s=HASH_S)
    if done.returncode:
        raise SystemFailure(f"{path} on {place}: {done.stderr.strip() or 'it cannot be read'}")
    return [line for line in done.stdout.split("\0") if line]
