"""The setting that was chosen for a path, kept for copies that state none.

One small JSON file per far host and direction, `STORE/paths/to-HOST.json` or `from-HOST.json`, so
that a copy opens one file and imports nothing for it. HOST is how the other end is addressed. What
was found for a driven tool stands apart, in `to-HOST+TOOL.json`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.spec.json_text import read_object

if TYPE_CHECKING:
    from pathlib import Path

CHOICE_SCHEMA = 1
NATIVE = "farline"

STALE_S = 30 * 86_400.0
"""Age from which a choice counts no more: after a month a path is hardly better known than a new
one (the change between campaigns of the same path is as large as between paths)."""

RTT_CHANGE, RTT_SLACK_MS, MOST_QUEUE = 1.5, 2.0, 4.0
"""A round-trip time beyond this factor, and by more than the slack, is another route. What lies
between the shortest time and that under load may be the same route with others on it, in whose
queue a handshake waits; and where load lengthens it by a factor, the shortest time that was met may
have been lengthened by as much, at most by `MOST_QUEUE`."""


@dataclass(frozen=True, slots=True)
class HostsNow:
    """What is known of the two ends and the route at this moment; None is not compared."""

    rtt_ms: float | None = None
    here_kernel: str | None = None
    there_kernel: str | None = None
    nic_bps: float | None = None


@dataclass(frozen=True, slots=True)
class StoredChoice:
    """How to use a path, as it was found. A knob that is None was not chosen."""

    far: str
    pushes: bool
    made_s: float
    streams: int | None
    concurrency: int | None
    pipelining: int | None
    rate_bps: float
    low_bps: float
    high_bps: float
    basis: str
    """What it stands on, for people: `5 samples`, `12 transfers on this path`."""
    reason: str
    """Why the search ended there: `gain`, `cap:nic`, `noise` and so on."""
    goal: str = "throughput"
    rtt_ms: float | None = None
    here_kernel: str | None = None
    there_kernel: str | None = None
    nic_bps: float | None = None
    transport: str = "tcp"
    file_bytes: float | None = None
    """Mean size of the files it was found with; None for data in memory."""
    tool: str = NATIVE
    block_bytes: int | None = None
    """A copy's chunk, where it was found with files."""
    buffer_bytes: int | None = None
    """Of both ends, for each stream."""
    loaded_rtt_ms: float | None = None
    """The mean while data flowed."""
    congestion_control: str | None = None

    def changes(self, now: HostsNow, now_s: float | None = None) -> tuple[str, ...]:
        """What is not as it was when this was found, a phrase each; none if it still holds."""
        found = [*_route(self, now), *_hosts(self, now)]
        age_s = (time.time() if now_s is None else now_s) - self.made_s
        if age_s > STALE_S:
            found.append(f"it is {age_s / 86_400:.0f} days old")
        return tuple(found)


def _route(then: StoredChoice, now: HostsNow) -> Iterator[str]:
    if then.rtt_ms is None or now.rtt_ms is None:
        return
    loaded_ms = max(then.rtt_ms, then.loaded_rtt_ms or 0.0)
    empty_ms = then.rtt_ms / min(loaded_ms / then.rtt_ms, MOST_QUEUE) if then.rtt_ms else 0.0
    if is_longer(empty_ms, now.rtt_ms) or is_longer(now.rtt_ms, loaded_ms):
        load = f" ({loaded_ms:.3g} ms under load)" if is_longer(loaded_ms, then.rtt_ms) else ""
        yield f"the RTT was {then.rtt_ms:.3g} ms{load} and is {now.rtt_ms:.3g} ms"


def is_longer(one_ms: float, other_ms: float) -> bool:
    """Whether a round trip is so much longer than another that it is that of another route."""
    return one_ms > RTT_CHANGE * other_ms and one_ms - other_ms > RTT_SLACK_MS


def _hosts(then: StoredChoice, now: HostsNow) -> Iterator[str]:
    for name, old, new in (
        ("this host's kernel", then.here_kernel, now.here_kernel),
        ("the other host's kernel", then.there_kernel, now.there_kernel),
    ):
        if old and new and old != new:
            yield f"{name} was {old} and is {new}"
    if then.nic_bps and now.nic_bps and then.nic_bps != now.nic_bps:
        yield f"the interface had {then.nic_bps / 1e9:g} Gbit/s and has {now.nic_bps / 1e9:g}"


def choice_path(folder: Path, far: str, pushes: bool, tool: str = NATIVE) -> Path:
    """Where the choice for a path is kept, in the folder `paths` of a store."""
    safe = "".join(c if c.isalnum() or c in ".-_" else f"%{ord(c):x}" for c in far.casefold())
    other = "" if tool == NATIVE else f"+{tool}"
    return folder / f"{'to' if pushes else 'from'}-{safe[:200]}{other}.json"


def read_choice(folder: Path, far: str, pushes: bool, tool: str = NATIVE) -> StoredChoice | None:
    """The choice for a path; None where there is none, or none that this version can read."""
    return _read(choice_path(folder, far, pushes, tool))


def read_tool_choices(folder: Path, far: str, pushes: bool) -> tuple[StoredChoice, ...]:
    """Those for driven tools, by the tool's name."""
    found = map(_read, _of_tools(folder, far, pushes))
    return tuple(choice for choice in found if choice is not None)


def write_choice(folder: Path, temp: Path, choice: StoredChoice) -> Path:
    """Keeps a choice in place of the one before.

    Raises:
        SystemFailure: when the store refuses.
    """
    from farline.store.disk import make_folder, publish_text

    make_folder(folder)
    target = choice_path(folder, choice.far, choice.pushes, choice.tool)
    publish_text(temp, target, json.dumps({"schema": CHOICE_SCHEMA, **asdict(choice)}, indent=1))
    return target


def forget_choice(folder: Path, far: str, pushes: bool) -> bool:
    """Deletes the choices for a path, those for driven tools too; whether there were any."""
    from farline.store.disk import system_failures

    paths = [choice_path(folder, far, pushes), *_of_tools(folder, far, pushes)]
    found = [path for path in paths if path.exists()]
    for path in found:
        with system_failures(f"deleting {path}"):
            path.unlink(missing_ok=True)
    return bool(found)


def _of_tools(folder: Path, far: str, pushes: bool) -> list[Path]:
    own = choice_path(folder, far, pushes)
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.name.startswith(f"{own.stem}+"))


def _read(path: Path) -> StoredChoice | None:
    try:
        with path.open("rb") as file:
            return _of_document(read_object(file.read()))
    except (OSError, SpecError, ValueError, TypeError, KeyError):
        return None


def _of_document(document: dict[str, Any]) -> StoredChoice:
    if document.pop("schema") != CHOICE_SCHEMA:
        raise ValueError("another version")
    known = {field.name for field in fields(StoredChoice)}
    choice = StoredChoice(**{name: document[name] for name in known & document.keys()})
    for knob in (choice.streams, choice.concurrency, choice.pipelining):
        if knob is not None and (not isinstance(knob, int) or not 1 <= knob <= 1024):
            raise ValueError(f"{knob!r} is not a count")
    return choice
