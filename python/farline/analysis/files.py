"""Files that a command line names: patterns, folders, and what is Parquet and what a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from farline.errors import UsageError
from farline.spec.user_folders import expanded

PARQUET = b"PAR1"
"""How a Parquet file begins."""
FILES_MAX = 100_000
"""More files than one command line should mean."""


def named_files(names: Sequence[str]) -> list[Path]:
    """The files that are meant: each of a folder (below it, too), or of a pattern; once each.

    A file under two names (`a.log` and `./a.log`, a link and what it leads to) is one, by the
    first.

    Raises:
        UsageError: when a name means no file, or all mean too many.
    """
    found: dict[Path, Path] = {}
    for name in names:
        for path in _files(name):
            found.setdefault(path.resolve(), path)
            if len(found) > FILES_MAX:
                raise UsageError(f"{name}: more than {FILES_MAX:,} files; give fewer")
    return list(found.values())


def _files(name: str) -> list[Path]:
    path = expanded(name)
    if path.is_dir():
        # Names that begin with a dot are other programs' own.
        below = (item for item in path.rglob("*") if not _hidden(item.relative_to(path)))
        files = sorted(item for item in below if item.is_file())
        if not files:
            raise UsageError(f"{name}: this folder has no files")
        return files
    if path.exists():
        return [path]
    anchor = Path(path.anchor)
    pattern = str(path.relative_to(anchor)) if path.anchor else str(path)
    files = sorted(item for item in anchor.glob(pattern) if item.is_file())
    if not files:
        raise UsageError(f"{name}: no such file, folder or pattern")
    return files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does.

    Raises:
        UsageError: when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def is_remote(name: str) -> bool:
    """Whether a name is a URL such as `s3://bucket/logs/*.parquet`, which the engine reads."""
    return "://" in name
