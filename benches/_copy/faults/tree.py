"""Trees with everything a file system allows, and the versions that their files had."""

from __future__ import annotations

import hashlib
import os
import random
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from _copy.faults.plan import Case, Fault, Scale

ODD_NAMES = (
    b"white space", b"new\nline", b"tab\there", b"back\\slash", b"quote\"'", b"-rf", b"*", b"#hash",
    b"caf\xc3\xa9", b"latin\xe9", b"\xff\xfe", b"..dots", b"a:b", b"n" * 255, b"%41", b"$HOME",
    b";ls", b"\\x41", b"~", b" ",
)  # fmt: skip
PAGE_BYTES = 4096
STAGING = ".farline-partial"
OLDER_NS = 9 * 10**17
_SIZES = ((1, 0, 0), (1, 1, 1), (4, 2, 10_240), (4, 10_241, 1 << 20), (3, 1 << 20, 1 << 26))
"""Weights, and the smallest and largest size in bytes."""


@dataclass(frozen=True)
class State:
    """A content and the time of its last change."""

    content: str
    size: int
    changed_ns: int


@dataclass
class Source:
    """A tree that may change, and what each of its files has ever been."""

    root: Path
    versions: dict[str, set[State]] = field(default_factory=dict)
    """What a file is and was, by its name below the root; also what the destination had."""

    altered: set[str] = field(default_factory=set)
    sparse: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total_bytes(self) -> int:
        """Bytes in regular files now."""
        return sum(self.path(name).lstat().st_size for name in files(self.root))

    def path(self, name: str) -> Path:
        """Where a name is."""
        return self.root / name

    def allows(self, name: str, state: State) -> bool:
        """Whether the file is, or was, this: a content with its time."""
        with self.lock:
            return state in self.versions.get(name, ())

    def had(self, name: str, content: str) -> bool:
        """Whether the file has, or had, this content, whenever."""
        with self.lock:
            return any(content == state.content for state in self.versions.get(name, ()))

    def note(self, name: str, path: Path | None = None) -> None:
        """Keeps what a file is now; or what another file is that takes its name."""
        state = state_of(path or self.path(name))
        with self.lock:
            self.versions.setdefault(name, set()).add(state)


def make(root: Path, case: Case, scale: Scale) -> Source:
    """The tree of a case."""
    draw, source = case.draw(), Source(root)
    folders = ["", "plain", "deep/er/still", "odd \N{FILE FOLDER}", os.fsdecode(b"bytes\xfe")]
    for folder in [*folders, "empty", "deep/empty \n"]:
        source.path(folder).mkdir(parents=True, exist_ok=True)
    left = scale.most_tree_bytes
    names = _names(draw, draw.randint(*scale.files), folders)
    for name in names:
        size = min(_size(draw, scale), left)
        left -= size
        source.path(name).write_bytes(draw.randbytes(size))
    source.sparse = "plain/sparse"
    _make_sparse(source.path(source.sparse), draw, min(scale.most_file_bytes, 8 << 20))
    _make_links(source, draw, names)
    for name in [*files(root)]:
        source.path(name).chmod(draw.choice([0o644, 0o600, 0o755, 0o444]))
    _set_times(source, draw)
    for name in files(root):
        source.note(name)
    return source


def put_older(source: Source, target: Path, case: Case) -> None:
    """Gives the destination older files of some names, as a copy of the day before left them."""
    draw = random.Random(f"{case.seed}.older")
    names = [name for name in sorted(files(source.root)) if _is_alterable(source, name)]
    for name in draw.sample(names, len(names) // 3):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(draw.randint(1, 100_000)))
        os.utime(path, ns=(OLDER_NS, OLDER_NS))
        source.note(name, path)


def _names(draw: random.Random, count: int, folders: list[str]) -> list[str]:
    odd = [os.fsdecode(name) for name in draw.sample(ODD_NAMES, min(len(ODD_NAMES), count // 2))]
    plain = [f"file-{number}" for number in range(count - len(odd))]
    return [str(Path(draw.choice(folders), name)) for name in [*odd, *plain]]


def _size(draw: random.Random, scale: Scale) -> int:
    weights = [weight for weight, *_ in _SIZES]
    _, least, most = draw.choices(_SIZES, weights)[0]
    return min(draw.randint(least, most), scale.most_file_bytes)


def _make_sparse(path: Path, draw: random.Random, size: int) -> None:
    with path.open("wb") as file:
        for part in (0.1, 0.6):
            file.seek(int(size * part))
            file.write(draw.randbytes(draw.randint(1, 2 * PAGE_BYTES)))
        file.truncate(size)


def _make_links(source: Source, draw: random.Random, names: list[str]) -> None:
    """Symbolic links near, far and to nowhere; second names of one file."""
    for number, target in enumerate(
        ["file-0", "../nowhere", "/etc/hostname", os.fsdecode(b"\xe9")]
    ):
        source.path(f"plain/link-{number}").symlink_to(target)
    for number, name in enumerate(draw.sample(names, 2)):
        source.path(f"deep/second-{number}").hardlink_to(source.path(name))


def _set_times(source: Source, draw: random.Random) -> None:
    """Times of last change that no copy gets by accident; folders last, the deepest first."""
    folders = sorted(_folders(source.root), key=len, reverse=True)
    for name in [*files(source.root), *folders]:
        changed_ns = draw.randint(10**18, 17 * 10**17)
        os.utime(source.path(name), ns=(changed_ns, changed_ns))


def entries(root: Path) -> Iterator[str]:
    """Every name below a root, staging left out."""
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != STAGING]
        for name in [*folders, *names]:
            yield str(Path(parent, name).relative_to(root))


def files(root: Path) -> Iterator[str]:
    """Names of regular files below a root."""
    for name in entries(root):
        facts = _facts(root / name)
        if facts is not None and stat.S_ISREG(facts.st_mode):
            yield name


def _folders(root: Path) -> Iterator[str]:
    for name in entries(root):
        facts = _facts(root / name)
        if facts is not None and stat.S_ISDIR(facts.st_mode):
            yield name


def _facts(path: Path) -> os.stat_result | None:
    """What a name is; None if it has gone."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def state_of(path: Path) -> State:
    """What a file is."""
    with path.open("rb") as file:
        facts = os.fstat(file.fileno())
        content = hashlib.file_digest(file, "blake2b").hexdigest()
    return State(content, facts.st_size, facts.st_mtime_ns)


def alter(source: Source, fault: Fault) -> str | None:
    """Does to one of the larger files what the fault says; its name, None if none is left.

    Only files with one name are altered, so that a version belongs to a name.
    """
    names = [name for name in sorted(files(source.root)) if _is_alterable(source, name)]
    if not names:
        return None
    names.sort(key=lambda name: source.path(name).lstat().st_size)
    name = names[len(names) // 2 :][int(fault.amount * len(names[len(names) // 2 :]))]
    source.altered.add(name)
    _ALTER[fault.kind](source, name, fault)
    return name


def _is_alterable(source: Source, name: str) -> bool:
    return name != source.sparse and source.path(name).lstat().st_nlink == 1


def _change(source: Source, name: str, fault: Fault) -> None:
    """A page of it is written over."""
    path = source.path(name)
    content = path.read_bytes()
    at = int(fault.amount * len(content)) // PAGE_BYTES * PAGE_BYTES
    page = bytes(byte ^ 0x55 for byte in content[at : at + PAGE_BYTES])
    with path.open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), page, at)
    source.note(name)


def _grow(source: Source, name: str, _fault: Fault) -> None:
    with source.path(name).open("ab", buffering=0) as file:
        file.write(b"and more" * 100)
    source.note(name)


def _shrink(source: Source, name: str, _fault: Fault) -> None:
    path = source.path(name)
    os.truncate(path, path.lstat().st_size // 2)
    source.note(name)


def _empty(source: Source, name: str, _fault: Fault) -> None:
    """Nothing is left in it, as a log that is rotated by copying."""
    os.truncate(source.path(name), 0)
    source.note(name)


def _rewrite(source: Source, name: str, fault: Fault) -> None:
    """Its program writes it anew in place, shorter than it was."""
    path = source.path(name)
    size = path.lstat().st_size
    with path.open("wb", buffering=0) as file:
        source.note(name)
        file.write(random.Random(fault.amount).randbytes(int(size * fault.amount)))
    source.note(name)


def _time_back(source: Source, name: str, fault: Fault) -> None:
    """It is edited, and gets its old time back."""
    path = source.path(name)
    before = path.lstat()
    _change(source, name, fault)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    source.note(name)


def _remove(source: Source, name: str, _fault: Fault) -> None:
    source.path(name).unlink()


def _replace(source: Source, name: str, _fault: Fault) -> None:
    """Another file takes its name, as editors write."""
    path, other = source.path(name), source.root.with_name("new")
    other.write_bytes(b"another" * 5000)
    source.note(name, other)
    other.replace(path)


def _turn(source: Source, name: str, fault: Fault) -> None:
    """A folder, a symbolic link or a pipe takes its name."""
    path = source.path(name)
    path.unlink()
    make = (path.mkdir, lambda: path.symlink_to("../nowhere"), lambda: os.mkfifo(path))
    make[int(fault.amount * len(make))]()


_ALTER = {
    "change": _change, "grow": _grow, "shrink": _shrink, "empty": _empty, "rewrite": _rewrite,
    "time-back": _time_back, "remove": _remove, "replace": _replace, "turn": _turn,
}  # fmt: skip
