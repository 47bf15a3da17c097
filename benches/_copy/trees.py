"""Source trees, the same bytes on every machine, and whether a copy is one."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BLOCK_BYTES = 8 << 20
MIX_SEED, MIX_MEDIAN_BYTES, MIX_SIGMA = 20240601, 256 * 1024, 2.0
NAMES_A_FOLDER = 1000


@dataclass(frozen=True)
class Tree:
    """A folder of files to be copied."""

    path: Path
    files: int
    bytes: int


def one_file(folder: Path, size: int) -> Tree:
    """A single file of random bytes."""
    return _made(folder, {"one": size})


def small_files(folder: Path, count: int, size: int, folders: int = 10) -> Tree:
    """Many files of one size, spread over folders."""
    return _made(folder, {f"d{n % folders:04}/f{n:07}": size for n in range(count)})


def mix(folder: Path, count: int) -> Tree:
    """Sizes of a log-normal distribution with a median of 256 KiB and a sigma of 2."""
    draw = random.Random(MIX_SEED)
    middle = float(np.log(MIX_MEDIAN_BYTES))
    sizes = [int(draw.lognormvariate(middle, MIX_SIGMA)) for _ in range(count)]
    return _made(folder, {f"d{n % 10}/m{n:04}": size for n, size in enumerate(sizes)})


def _made(folder: Path, sizes: Mapping[str, int]) -> Tree:
    """The tree of these files, made unless it is there as it should be."""
    whole = Tree(folder, len(sizes), sum(sizes.values()))
    if folder.exists() and count(folder) == (whole.files, whole.bytes):
        return whole
    shutil.rmtree(folder, ignore_errors=True)
    content = _content(whole.bytes)
    for parent in sorted({folder / Path(name).parent for name in sizes}):
        parent.mkdir(parents=True, exist_ok=True)
    for name, size in sizes.items():
        with (folder / name).open("wb") as file:
            while size > 0:
                size -= file.write(next(content)[:size])
    return whole


def _content(seed: int) -> Iterator[memoryview]:
    """Bytes that no sparse file, no compression and no shared block can spare, without end."""
    generator = np.random.Generator(np.random.SFC64(seed))
    while True:
        block = memoryview(generator.bytes(BLOCK_BYTES))
        # Many small files take their bytes from different places of one block.
        yield from (block[at:] for at in range(0, BLOCK_BYTES // 2, BLOCK_BYTES // 64))


def count(folder: Path) -> tuple[int, int]:
    """Regular files below a folder, and bytes in them."""
    files = size = 0
    for name in _names(folder):
        files += 1
        size += (folder / name).stat().st_size
    return files, size


def _names(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name).relative_to(folder) for name in names)


def difference(source: Path, copied: Path) -> str | None:
    """The first thing in which a copied tree is not its source; None if it is the same."""
    theirs, ours = sorted(_names(source)), sorted(_names(copied))
    if theirs != ours:
        odd = sorted(set(theirs) ^ set(ours))[0]
        return f"{odd} is {'missing' if odd in theirs else 'not of the source'}"
    return next(
        (f"{name} differs" for name in ours if not same(source / name, copied / name)), None
    )


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes."""
    with one.open("rb", buffering=0) as near, other.open("rb", buffering=0) as far:
        if os.fstat(near.fileno()).st_size != os.fstat(far.fileno()).st_size:
            return False
        while block := near.read(BLOCK_BYTES):
            if far.read(BLOCK_BYTES) != block:
                return False
    return True
