"""What earlier copies placed on nodes with disks of their own, kept on the host that orders them.

```text
$XDG_STATE_HOME/farline/placements/SITE-AND-PATH/NODE.jsonl
{"schema": 1, "site": "", "path": "/archive/run", "node": "dtn1"}
{"path": "a/b", "bytes": 5000}
```

Nodes that answer are always asked what they have. The file says what those have that do not, and
where a file is that had only begun to come; without it, names alone say where files are.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from farline.errors import SystemFailure
from farline.logs import Log
from farline.spec.user_folders import needed, user_folder

_LOG = Log(__name__)
_SCHEMA = 1
_LETTERS = 32


def placements_folder() -> Path | None:
    """`$XDG_STATE_HOME/farline/placements`; None for a user without a folder of state."""
    state = user_folder("XDG_STATE_HOME", ".local/state")
    return None if state is None else state / "farline" / "placements"


@dataclass(frozen=True)
class PlacementFile:
    """Of a folder on the nodes of a site; knows and keeps nothing without a folder of state."""

    site: str
    """What names of nodes are unique in: a testbed, a partition of Slurm; empty for hosts."""
    path: str

    @property
    def folder(self) -> Path:
        """Where its files are, one for each node.

        Raises:
            UsageError: when there is no folder of state.
        """
        said = f"{self.site}\0{self._plain_path}".encode("utf-8", "surrogateescape")
        state = needed(placements_folder(), "placement", "XDG_STATE_HOME")
        return state / hashlib.sha256(said).hexdigest()[:_LETTERS]

    @property
    def _plain_path(self) -> str:
        return self.path.rstrip("/") or "/"

    def nodes(self) -> list[str]:
        """All nodes on which something was placed."""
        return sorted(found[0] for path in self._files() if (found := _read(path)) is not None)

    def read(self, node: str) -> dict[str, int]:
        """Paths on a node, and their bytes; none where nothing is known."""
        found = _read(self._file(node)) if placements_folder() is not None else None
        return {} if found is None else found[1]

    def add(self, placed: Mapping[str, Mapping[str, int]]) -> None:
        """Notes by node what is on it from now on; on no other node, then.

        Raises:
            SystemFailure: when the disk refuses.
        """
        if placements_folder() is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locked():
                for node in {*placed, *self.nodes()}:
                    self._add(node, placed)
        except OSError as error:
            raise SystemFailure(f"placement {self.folder}: {error.strerror}") from None

    def forget(self, node: str, paths: Iterable[str]) -> None:
        """Notes what is no longer on a node.

        Raises:
            SystemFailure: when the disk refuses.
        """
        gone = set(paths)
        try:
            if gone and placements_folder() is not None and self.folder.exists():
                with self._locked():
                    before = self.read(node)
                    left = {path: size for path, size in before.items() if path not in gone}
                    self._write(node, before, left)
        except OSError as error:
            raise SystemFailure(f"placement {self.folder}: {error.strerror}") from None

    def _add(self, node: str, placed: Mapping[str, Mapping[str, int]]) -> None:
        before = self.read(node)
        elsewhere = {path for other, names in placed.items() if other != node for path in names}
        now = {path: size for path, size in before.items() if path not in elsewhere}
        self._write(node, before, {**now, **placed.get(node, {})})

    def _write(self, node: str, before: Mapping[str, int], now: Mapping[str, int]) -> None:
        if now == before:
            return
        head = {"schema": _SCHEMA, "site": self.site, "path": self._plain_path, "node": node}
        lines = [head, *({"path": path, "bytes": size} for path, size in now.items())]
        file = self._file(node)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        draft.replace(file)

    def _file(self, node: str) -> Path:
        return self.folder / f"{quote(node, safe='')}.jsonl"

    def _files(self) -> list[Path]:
        return [] if placements_folder() is None else sorted(self.folder.glob("*.jsonl"))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _read(file: Path) -> tuple[str, dict[str, int]] | None:
    """The node, and what is on it; a damaged file says nothing."""
    try:
        with file.open(encoding="utf-8") as lines:
            head = json.loads(next(lines))
            if head["schema"] != _SCHEMA:
                return None
            rows = map(json.loads, lines)
            return str(head["node"]), {str(row["path"]): int(row["bytes"]) for row in rows}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        _LOG.warning("a placement cannot be read", file=str(file), reason=str(error))
        return None
