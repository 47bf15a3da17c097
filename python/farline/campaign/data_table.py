"""The table `[data]` of a plan: which files its copies move, and from where to where.

```toml
[data]
files = ["1x1GiB", "1000x10KiB"]   # COUNTxSIZE: made before the first run, removed after the last
source = "/dev/shm"                # folder in which they are made
destination = "/var/tmp"           # folder into which they are copied; the source's if absent
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farline.errors import SpecError
from farline.spec.near import unknown
from farline.spec.table import COPY
from farline.spec.units import parse_size

DATA = "data"
"""Name of the table."""
MOST_FILES = 1_000_000
MOST_BYTES = 1 << 42
_KEYS = ("files", "source", "destination")
_FILES = re.compile(r"\s*(\d{1,7})\s*x\s*(\S.*?)\s*", re.ASCII)


@dataclass(frozen=True)
class DataTable:
    """Files by number and size in bytes, and the folders at both ends."""

    files: tuple[tuple[int, int], ...]
    source: str
    destination: str

    @property
    def count(self) -> int:
        """Files in all."""
        return sum(count for count, _ in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes in all."""
        return sum(count * size for count, size in self.files)

    def document(self) -> dict[str, Any]:
        """As the table has it."""
        files = [f"{count}x{size}" for count, size in self.files]
        return {"files": files, "source": self.source, "destination": self.destination}


def read_data_table(table: Mapping[str, Any]) -> DataTable | None:
    """The table, or None where a plan has none.

    Raises:
        SpecError: when something in it is unknown or not allowed.
    """
    if not table:
        return None
    for key in table:
        if key not in _KEYS:
            raise SpecError(f"[{DATA}] {key}: unknown; {unknown(key, _KEYS)}")
    source = _folder("source", table.get("source"))
    destination = _folder("destination", table.get("destination", source))
    data = DataTable(_files(table.get("files")), source, destination)
    if not 0 < data.count <= MOST_FILES or data.size_bytes > MOST_BYTES:
        raise SpecError(
            f"[{DATA}] files: {data.count} files with {data.size_bytes} bytes in total; allowed: "
            f"1 to {MOST_FILES} files of {MOST_BYTES} bytes"
        )
    return data


def check_copies(data: DataTable | None, paths: set[str], ways: set[object]) -> None:
    """Refuses options of copies without data, and data that would be copied the other way.

    `paths` are all options that the plan says anything of, `ways` all values of `direction`.

    Raises:
        SpecError: with what is missing.
    """
    options = sorted(path for path in paths if path.partition(".")[0] == COPY)
    if data is None and options:
        raise SpecError(
            f"{options[0]}: a plan with copies needs a table [{DATA}] that lists their files"
        )
    if data is not None and ways - {"forward"}:
        raise SpecError("direction: copies in a plan go forward only, from this host to the other")


def _folder(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        raise SpecError(f"[{DATA}] {key}: {value!r} is not a folder such as '/dev/shm'")
    return value


def _files(raw: object) -> tuple[tuple[int, int], ...]:
    texts = [raw] if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not texts:
        raise SpecError(f"[{DATA}] files: {raw!r} is not a list such as ['1x1GiB', '1000x10KiB']")
    return tuple(_some(text) for text in texts)


def _some(text: object) -> tuple[int, int]:
    match = _FILES.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise SpecError(f"[{DATA}] files: {text!r} is not COUNTxSIZE, such as '1000x10KiB'")
    try:
        return int(match[1]), parse_size(match[2])
    except ValueError as error:
        raise SpecError(f"[{DATA}] files: {text!r}: {error}") from None
