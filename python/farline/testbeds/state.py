"""What testbeds leave on this machine, written down before it is made, and its removal.

```text
DIR/                    /run/farline/testbeds (root), $XDG_RUNTIME_DIR/farline/testbeds, or
  .lock                 $FARLINE_TESTBED_DIR; flock: one `up`, clean-up or recovery at a time
  NAME/state.json       `BedState`
  NAME/control          the keeper's socket
  NAME/hosts-TOKEN      /etc/hosts of the hosts; the name proves that a process is inside
  NAME/log              what the keeper said
```

A bed whose keeper lives is cleaned up by the keeper. One whose keeper is dead is cleaned up by
whoever comes next: `recover`. What cannot be undone yet stays written down for the one after.

Only what is known to be a bed's is removed. The directory may be anybody's choice: folders in
it that are something else, or whose state this version cannot read, are left alone.

Settings of the whole machine are written down elsewhere: see `kernel`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from farline.errors import SystemFailure, UsageError
from farline.testbeds import caps, kernel, places, processes

DIRECTORY_VARIABLE = "FARLINE_TESTBED_DIR"
STATE_FILE = "state.json"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_TOKEN = re.compile(r"[0-9a-f]{16}")
_SERVERS = r"\.?known_servers\.json(\..+)?"
"""Keys of servers that programs inside a bed have met; one may be written when the bed is gone."""
_FILES = re.compile(
    rf"state\.(json|new)|start\.json|control|log|hosts-[0-9a-f]{{16}}(\..+)?|{_SERVERS}"
)
"""Names of the files in a bed's folder."""


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
            f"testbed: no folder for its state: set XDG_RUNTIME_DIR or {DIRECTORY_VARIABLE}"
        )
    return Path(runtime) / "farline" / "testbeds"


def own_directory() -> Path:
    """The same, made if it was not there: what stands in it can be believed.

    Raises:
        SystemFailure: when it cannot be made, or others may write in it.
    """
    folder = directory()
    places.make_own(folder)
    return folder


@contextmanager
def locked(folder: Path | None = None) -> Iterator[Path]:
    """The directory, this user's unless stated, which nobody else changes meanwhile.

    Raises:
        SystemFailure: when it cannot be made, or others may write in it.
    """
    folder = folder or directory()
    places.make_own(folder)
    with places.exclusive(folder / ".lock"):
        yield folder


def check_name(name: str) -> None:
    """Refuses what cannot be a bed's name.

    Raises:
        UsageError: with what is allowed.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"testbed {name!r}: a name has 1 to 32 of a-z, 0-9 and -, and does not start with -"
        )


def new(folder: Path, name: str, topology: str) -> BedState:
    """Writes down a bed that is about to be made; the directory is locked and recovered.

    Raises:
        UsageError: when a bed of that name is up.
        SystemFailure: when there is something else of that name.
    """
    there = read(folder / name)
    if there is not None and there.is_alive():
        raise UsageError(
            f"testbed {name!r} is already up: remove it with `farline testbed down {name}`"
        )
    try:
        (folder / name).mkdir(mode=0o700)
    except FileExistsError:
        raise SystemFailure(why_left(folder / name)) from None
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
    places.write_json(folder / STATE_FILE, asdict(state))


def read(folder: Path) -> BedState | None:
    """State of the bed in `folder`; None if there is none that this version can read."""
    try:
        document = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        # Another version may have written more than this one knows.
        known = {
            item.name: document[item.name] for item in fields(BedState) if item.name in document
        }
        state = BedState(**known)
        whole = replace(state, namespaces=tuple(state.namespaces), cgroups=tuple(state.cgroups))
        return whole if whole.name == folder.name and _is_sound(whole) else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _is_sound(state: BedState) -> bool:
    """Whether its fields are of the kinds that what is done by them relies on."""
    numbers = (
        state.starter_pid,
        state.starter_ticks,
        state.pid,
        state.start_ticks,
        state.tcp_memory_bytes,
        *state.namespaces,
    )
    texts = (state.topology, state.boot_id, *state.cgroups)
    return (
        all(isinstance(number, int) for number in numbers)
        and all(isinstance(text, str) for text in texts)
        and isinstance(state.started_unix_s, int | float)
        and bool(_TOKEN.fullmatch(state.token))
    )


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


@dataclass(frozen=True)
class Recovery:
    """What became of beds without a keeper: names of those removed, and why others are not."""

    gone: tuple[str, ...]
    left: dict[str, str]
    """One line for each folder that was left, by its name."""


def recover(folder: Path) -> Recovery:
    """Removes what beds with dead keepers left. The directory is locked."""
    gone, left = [], {}
    for path in _folders(folder):
        state = read(path)
        if state is not None and state.is_alive():
            continue
        if state is None and not _is_bare(path):
            left[path.name] = why_left(path)
        elif remove(path, state, held=False):
            gone.append(path.name)
        else:
            left[path.name] = why_left(path)
    # Whoever raised them may have been killed before and after there was a folder.
    if kernel.file_for(folder).exists():
        settle_kernel(folder)
    return Recovery(tuple(gone), left)


def sweep() -> Recovery:
    """Removes what dead beds of this user left.

    Raises:
        SystemFailure: when the directory cannot be used.
    """
    with locked() as folder:
        return recover(folder)


def remove(path: Path, state: BedState | None, held: bool) -> bool:
    """Removes everything of one bed; says whether it could.

    What could not be undone yet stays written down. `held` says that the caller holds the bed's
    namespaces open, so that their numbers mean them.
    """
    if state is not None and state.boot_id == processes.boot_id():
        if held:
            processes.end_inside(state.namespaces, None)
        running = processes.end_inside(state.namespaces, state.hosts_file)
        groups = caps.remove(state.cgroups, state.token)
        if running or groups:
            _note_rest(path, state, bool(running), groups)
            return False
    if kernel.file_for(path.parent).exists():
        settle_kernel(path.parent, without=path)
    return _unlink(path)


def _note_rest(path: Path, state: BedState, is_inside: bool, groups: list[str]) -> None:
    """Writes down what a bed that has ended left: nobody keeps it now."""
    rest = replace(
        state,
        pid=0,
        start_ticks=0,
        starter_pid=0,
        starter_ticks=0,
        namespaces=state.namespaces if is_inside else (),
        cgroups=tuple(groups),
        tcp_memory_bytes=0,
    )
    write(path, rest)
    if kernel.file_for(path.parent).exists():
        settle_kernel(path.parent)


def _unlink(path: Path) -> bool:
    """Removes a bed's files, its state last, and its folder if nothing else is in it."""
    try:
        names = [item.name for item in path.iterdir() if _FILES.fullmatch(item.name)]
        for name in sorted(names, key=lambda name: name == STATE_FILE):
            (path / name).unlink()
        path.rmdir()
    except OSError:
        return not path.exists()
    return True


def _is_bare(path: Path) -> bool:
    """Whether a folder is what a bed has before its state is written, or after it is removed."""
    try:
        names = [item.name for item in path.iterdir()]
        return all(name == "state.new" or re.fullmatch(_SERVERS, name) for name in names)
    except OSError:
        return False


def why_left(path: Path) -> str:
    """Why a folder is still there though no bed of it lives, in one line."""
    state = read(path)
    if state is not None:
        what = ", ".join(state.cgroups) or "programs that are still running"
        return (
            f"testbed {path.name!r}: {what} could not be removed yet; try again with `farline "
            f"testbed down {path.name}`"
        )
    if os.path.lexists(path / STATE_FILE):
        return (
            f"{path}: left unchanged, because its {STATE_FILE} is from another version of "
            "farline; remove the folder when nothing of that testbed runs"
        )
    return (
        f"{path}: left unchanged, because it is not the folder of a testbed; testbeds need their "
        "own directory"
    )


def settle_kernel(folder: Path, without: Path | None = None) -> list[str]:
    """Raises or restores settings of the whole machine for the beds that live; gives warnings.

    Beds elsewhere that are known to need them count too. `without` is a bed that is ending.
    """
    file = kernel.file_for(folder)
    with kernel.locked(file):
        noted = {Path(bed) for bed in kernel.read(file).needs}
        needs = {}
        for path in sorted({*noted, *_folders(folder)} - {without}):
            state = read(path)
            if state is not None and state.tcp_memory_bytes and state.is_alive():
                needs[str(path)] = state.tcp_memory_bytes
        return kernel.settle(file, needs)


def _folders(folder: Path) -> list[Path]:
    """Folders that can be beds': their names are, and they are this user's own."""
    return [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and _is_own(path)]


def _is_own(path: Path) -> bool:
    try:
        facts = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
