"""What must hold at any moment, and at the end."""

from __future__ import annotations

import json
import os
import random
import re
import stat
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from _copy.faults.tree import STAGING, Source, State, entries, files, state_of

EXIT_WHOLE, EXIT_PARTIAL, EXIT_VANISHED = 0, 23, 24
DONE = (EXIT_WHOLE, EXIT_PARTIAL, EXIT_VANISHED)
_ESCAPE = re.compile(rb"\\(\\|x[0-9a-fA-F]{2})")


def unescaped(text: str) -> str:
    """A name as documents write it, as Python has it."""

    def one(match: re.Match[bytes]) -> bytes:
        word = match[1]
        return b"\\" if word == b"\\" else bytes([int(word[1:], 16)])

    return os.fsdecode(_ESCAPE.sub(one, text.encode()))


@dataclass(frozen=True)
class Receipt:
    """The last line of a receipt for each name."""

    lines: Mapping[str, Mapping[str, object]]

    @property
    def failed(self) -> dict[str, str]:
        """Reasons of names that failed."""
        return {
            name: str(line.get("reason") or "")
            for name, line in self.lines.items()
            if line["status"] == "failed"
        }


def read_receipt(path: Path) -> Receipt:
    """A receipt; empty if there is none."""
    if not path.exists():
        return Receipt({})
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return Receipt({unescaped(line["path"]): line for line in lines})


@dataclass
class Watch:
    """Looks at the destination at random moments while copies run; notes what must not be."""

    source: Source
    target: Path
    seed: int
    looks: int = 0
    _seen: dict[tuple[str, int, int, int], State] = field(default_factory=dict)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._look_often, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        assert self._thread is not None
        self._thread.join()

    def _look_often(self) -> None:
        draw = random.Random(self.seed)
        while not self._end.wait(draw.uniform(0.02, 0.4)):
            self.look()

    def look(self) -> None:
        """Notes what every final name that is new or new again holds."""
        for name in files(self.target):
            path = self.target / name
            try:
                facts = path.lstat()
                key = (name, facts.st_ino, facts.st_size, facts.st_mtime_ns)
                if key not in self._seen:
                    self._seen[key] = state_of(path)
            except FileNotFoundError:
                continue
        self.looks += 1

    def wrong(self) -> Iterator[str]:
        """What a final name held that neither its source nor the destination ever had."""
        for (name, *_), state in self._seen.items():
            if not self.source.allows(name, state):
                yield f"{name!r} was {state} under its final name, which its source never was"


@dataclass(frozen=True)
class End:
    """How a case's last run ended."""

    exit_code: int
    receipt: Receipt
    hard_links: bool


def problems(source: Source, target: Path, end: End) -> Iterator[str]:
    """Everything that is not as it must be at the end."""
    failed = end.receipt.failed
    if end.exit_code not in DONE:
        yield f"the last run ended with {end.exit_code}"
        return
    if (end.exit_code == EXIT_WHOLE) != (not failed):
        yield f"exit code {end.exit_code} with {len(failed)} failed names in the receipt"
    yield from (f"{name!r} failed without a reason" for name, why in failed.items() if not why)
    surplus = set(entries(target)) - set(entries(source.root)) - source.altered
    yield from (f"{name!r} is not of the source" for name in sorted(surplus))
    if os.path.lexists(target / STAGING) and not failed:
        yield ".farline-partial is left of a whole copy"
    for name in entries(source.root):
        if stat.S_ISFIFO(source.path(name).lstat().st_mode):
            continue  # skipped, and counted
        if name in failed:
            if name not in source.altered:
                yield f"{name!r} failed, and nothing was done to it: {failed[name]}"
            continue
        wrong = difference(source, target, name)
        if wrong:
            yield f"{name!r} {wrong}"
    if end.hard_links and not failed:
        yield from _lost_links(source.root, target)


def difference(source: Source, target: Path, name: str) -> str | None:
    """In what a name at the destination is not the source's; None if it is the same."""
    path = target / name
    theirs = source.path(name).lstat()
    try:
        ours = path.lstat()
    except FileNotFoundError:
        return "is missing, and not named as failed"
    if stat.S_ISREG(ours.st_mode) and name in source.altered:
        return None if source.allows(name, state_of(path)) else "is what its source never was"
    if stat.S_IFMT(ours.st_mode) != stat.S_IFMT(theirs.st_mode):
        return "is of another kind"
    if stat.S_ISLNK(theirs.st_mode):
        is_same = path.readlink() == source.path(name).readlink()
        return None if is_same else "points elsewhere"
    if stat.S_ISREG(theirs.st_mode) and not source.had(name, state_of(path).content):
        return "has another content"
    if name in source.altered or (stat.S_ISDIR(theirs.st_mode) and source.altered):
        return None
    return _other_facts(ours, theirs, name == source.sparse)


def _other_facts(ours: os.stat_result, theirs: os.stat_result, is_sparse: bool) -> str | None:
    if stat.S_IMODE(ours.st_mode) != stat.S_IMODE(theirs.st_mode):
        return f"has the mode {ours.st_mode:o}, not {theirs.st_mode:o}"
    if ours.st_mtime_ns != theirs.st_mtime_ns:
        return f"changed at {ours.st_mtime_ns}, not {theirs.st_mtime_ns}"
    if is_sparse and ours.st_blocks * 512 > ours.st_size // 2:
        return "has lost its holes"
    return None


def _lost_links(source: Path, target: Path) -> Iterator[str]:
    """Names of one file that are no longer names of one file."""
    first: dict[int, str] = {}
    for name in sorted(files(source)):
        inode = (source / name).lstat().st_ino
        twin = first.setdefault(inode, name)
        here = ((target / each).lstat().st_ino for each in (name, twin))
        if len(set(here)) > 1:
            yield f"{name!r} is no longer the same file as {twin!r}"
