"""What to do next with a transfer: a table of what is wanted and what is there.

No file, clock or process is touched here. The shell (`runner`) looks, asks, and does what it is
told; since it looks anew every time, it does not matter where an earlier one was stopped.

```text
queued ──Begin──► running ──Settle──► succeeded | failed | cancelled | paused
   ▲                 │ the keeper is gone without an end: Begin again, up to MOST_STARTS times
   └──── resume ─────┴──── paused
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["queued", "running", "paused", "succeeded", "failed", "cancelled"]
Wanted = Literal["run", "pause", "cancel"]

ENDED = frozenset({"succeeded", "failed", "cancelled"})
MOST_STARTS = 5
"""Times that one attempt is begun: its process may be killed, or the machine restarted."""


@dataclass(frozen=True)
class Seen:
    """A transfer as its row has it, and what its folder shows."""

    state: State
    wanted: Wanted
    starts: int
    """Times that the attempt was begun."""
    is_alive: bool = False
    """Whether a process works on it."""
    end: Mapping[str, Any] | None = None
    """What the attempt came to: `exit_code`, `error`; None while it has not ended."""
    is_due: bool = True
    """Whether its time has come: a reservation that it waits for is active, and a place is free."""
    is_over: bool = False
    """Whether the time of its reservation has ended."""


@dataclass(frozen=True)
class Begin:
    """Start a process for this attempt."""


@dataclass(frozen=True)
class Stop:
    """Ask the process to stop; what is there stays, and a later attempt continues."""


@dataclass(frozen=True)
class Settle:
    """The attempt is over: this is what the transfer is now."""

    state: State
    failure: Mapping[str, Any] | None = None


Step = Begin | Stop | Settle | None

_LOST = {
    "kind": "system",
    "message": f"the process of this transfer ended {MOST_STARTS} times without a result; see "
    "keeper.log in the folder of the transfer",
}
_OUT_OF_TIME = {
    "kind": "limit",
    "message": "the reservation ended before the transfer was complete; resume it to continue "
    "without a reservation",
}


def next_step(seen: Seen) -> Step:
    """What to do now; None where there is nothing to do."""
    if seen.state in ENDED or seen.state == "paused":
        return Settle("cancelled") if seen.state == "paused" and seen.wanted == "cancel" else None
    if seen.state == "running" and seen.end is not None:
        return _settled(seen, seen.end)
    if seen.is_alive:
        return Stop() if seen.wanted != "run" or seen.is_over else None
    if seen.wanted != "run":
        return Settle("cancelled" if seen.wanted == "cancel" else "paused")
    if seen.is_over:
        return Settle("paused", _OUT_OF_TIME)
    if seen.starts >= MOST_STARTS:
        return Settle("failed", _LOST)
    return Begin() if seen.is_due or seen.state == "running" else None


def _settled(seen: Seen, end: Mapping[str, Any]) -> Settle:
    """An attempt that was complete is a success, whatever was wanted meanwhile."""
    if end["exit_code"] == 0:
        return Settle("succeeded")
    if not end.get("stopped"):
        return Settle("failed", end.get("error"))
    if seen.wanted == "run":
        # Somebody resumed it before it had stopped, or the machine was shut down.
        return Settle("paused", _OUT_OF_TIME) if seen.is_over else Settle("queued")
    return Settle("cancelled" if seen.wanted == "cancel" else "paused")
