"""What testbeds leave on this machine, written down before it is made, and its removal.

```text
DIR/                    /run/farline/testbeds (root), $XDG_RUNTIME_DIR/farline/testbeds, or
  .lock                 $FARLINE_TESTBED_DIR; flock: one `up`, clean-up or recovery at a time
  kernel.json           settings of the whole machine that were raised, and their values before
  NAME/state.json       `BedState`
  NAME/control          the keeper's socket
  NAME/hosts-TOKEN      /etc/hosts of the hosts; the name proves that a process is inside
  NAME/log              what the keeper said
```

A bed whose keeper lives is cleaned up by the keeper. One whose keeper is dead is cleaned up by
whoever comes next: `recover`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from farline.errors import SystemFailure, UsageError
from farline.testbed import caps, kernel, processes

DIRECTORY_VARIABLE = "FARLINE_TESTBED_DIR"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


@dataclass(frozen=True)
class BedState:
    """Everything that has to be undone when a bed ends.

    `pid` and `start_ticks` are the keeper's; 0 while it is being started by `starter_pid`.
    """

    name: str
    topology: str
    token: str
    boot_id: str
    started_unix_s: float
    starter_pid: int
    starter_ticks: int
    pid: int = 0
    start_ticks: int = 0
    owned: bool = False
    namespaces: tuple[int, ...] = ()
    cgroups: tuple[str, ...] = ()
    tcp_memory_bytes: int = 0

    @property
    def hosts_file(self) -> str:
        """Name of the hosts file in the bed's folder."""
        return f"hosts-{self.token}"

    def is_alive(self) -> bool:
        """Whether its keeper, or who is starting it, lives."""
        if self.boot_id != processes.boot_id():
            return False
        if self.pid:
            return processes.is_alive(self.pid, self.start_ticks)
        return processes.is_alive(self.starter_pid, self.starter_ticks)


@dataclass(frozen=True)
class BedInfo:
    """A living bed as `list` shows it."""

    name: str
    topology: str
    pid: int
    started_unix_s: float
    folder: Path
    owned: bool = field(default=False)
    """Whether it ends with the program that started it."""


def directory() -> Path:
    """Where this user's beds are written down.

    Raises:
        SystemFailure: when there is no such place.
    """
    given = os.environ.get(DIRECTORY_VARIABLE)
    if given:
        return Path(given).absolute()
    if os.geteuid() == 0:
        return Path("/run/farline/testbeds")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime:
        raise SystemFailure(
            f"testbed: neither XDG_RUNTIME_DIR nor {DIRECTORY_VARIABLE} says where to keep it"
        )
    return Path(runtime) / "farline" / "testbeds"


@contextmanager
def locked() -> Iterator[Path]:
    """The directory, which nobody else changes meanwhile.

    Raises:
        SystemFailure: when it cannot be made.
    """
    folder = directory()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SystemFailure(f"testbed: {folder}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(lock)


def check_name(name: str) -> None:
    """Refuses what cannot be a bed's name.

    Raises:
        UsageError: with what is allowed.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"testbed {name!r}: allowed are 1 to 32 of a-z, 0-9 and -, not - first")


def new(folder: Path, name: str, topology: str) -> BedState:
    """Writes down a bed that is about to be made; the directory is locked and recovered.

    Raises:
        UsageError: when a bed of that name is up.
    """
    if (folder / name).exists():
        raise UsageError(f"testbed {name!r} is up: `farline testbed down {name}` ends it")
    (folder / name).mkdir(mode=0o700)
    own = os.getpid()
    state = BedState(
        name=name,
        topology=topology,
        token=secrets.token_hex(8),
        boot_id=processes.boot_id(),
        started_unix_s=time.time(),
        starter_pid=own,
        starter_ticks=processes.start_ticks(own) or 0,
    )
    write(folder / name, state)
    return state


def write(folder: Path, state: BedState) -> None:
    """Writes a bed's state whole or not at all."""
    _write_json(folder / "state.json", asdict(state))


def _write_json(path: Path, document: Any) -> None:
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(document), encoding="utf-8")
    scratch.rename(path)


def read(folder: Path) -> BedState | None:
    """State of the bed in `folder`; None if there is none to read."""
    try:
        document = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        # Another version may have written more than this one knows.
        known = {
            item.name: document[item.name] for item in fields(BedState) if item.name in document
        }
        state = BedState(**known)
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return replace(state, namespaces=tuple(state.namespaces), cgroups=tuple(state.cgroups))


def list_beds() -> list[BedInfo]:
    """Beds that are up, by name; what dead ones left is removed first.

    Raises:
        SystemFailure: when the directory cannot be used.
    """
    with locked() as folder:
        recover(folder)
        states = [(path, read(path)) for path in sorted(_folders(folder))]
    return [
        BedInfo(state.name, state.topology, state.pid, state.started_unix_s, path, state.owned)
        for path, state in states
        if state is not None and state.pid
    ]


def recover(folder: Path) -> list[str]:
    """Removes what beds with dead keepers left; gives their names. The directory is locked."""
    gone = []
    for path in _folders(folder):
        state = read(path)
        if state is None or not state.is_alive():
            remove(path, state, held=False)
            gone.append(path.name)
    if gone:
        settle_kernel(folder)
    return gone


def remove(path: Path, state: BedState | None, held: bool) -> None:
    """Removes everything of one bed but settings of the whole machine.

    `held` says that the caller holds the bed's namespaces open, so that their numbers mean them.
    """
    if state is not None and state.boot_id == processes.boot_id():
        if held:
            processes.end_inside(state.namespaces, None)
        processes.end_inside(state.namespaces, state.hosts_file)
        caps.remove(state.cgroups)
    shutil.rmtree(path, ignore_errors=True)


def settle_kernel(folder: Path) -> list[str]:
    """Raises or restores settings of the whole machine for the beds there are; gives warnings."""
    states = [state for path in _folders(folder) if (state := read(path)) is not None]
    needed = sum(state.tcp_memory_bytes for state in states)
    return kernel.settle(folder / "kernel.json", needed, _write_json)


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]
