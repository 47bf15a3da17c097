"""What a copy over nodes is asked to change while it runs, and what came of it on every pair. Pure.

Streams and files at once are those of each pair, as in the spec; a rate is one of all pairs
together, shared by those that carry parts now. A pair is told what differs from what it has, so a
part that begins later begins with it, and a rate is shared out anew when pairs come or go. One that
refuses goes on as before; the change says which.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from farline.copying.adjusting import KNOBS

if TYPE_CHECKING:
    from farline.spec._types import Adjustment, AdjustRequest

ANSWER_S = 10.0
"""A pair that does not answer for so long is named; it hangs, or its node is gone."""

_ENDING = ("the copy is ending", "the copy is over")
"""A part that ends refuses with these: the next one begins with the change."""

_NAMES = {knob: name for name, knob in KNOBS.items()}
_RATE = "total_rate_bps"


@dataclass
class _Pair:
    """A pair that carries a part now."""

    name: str
    has: dict[str, int | None]
    """What its session was told last."""


@dataclass
class _Change:
    """One knob, on its way to all pairs."""

    name: str
    before: int | None
    wanted: int | None
    since_s: float
    waits: set[int]
    answers: list[Adjustment] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Changes:
    """Of one copy, begun by `document`. May be asked from any thread."""

    def __init__(
        self, run_id: str, document: Mapping[str, Any], carriers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`carriers` is how many pairs share a rate."""
        self.run_id = run_id
        self.all_told: list[Adjustment] = []
        """What has come of all changes so far, for the record."""
        copy = document.get("copy") or {}
        self._now: dict[str, int | None] = {
            "streams": document.get("streams"),
            "concurrency": copy.get("concurrency"),
            _RATE: copy.get(_RATE) or None,
        }
        self._carriers = carriers
        self._clock, self._began_s = clock, clock()
        self._pairs: dict[int, _Pair] = {}
        self._kept: dict[tuple[int, str], int | None] = {}
        """What a pair stays at that refused a change, until the next change of the same thing."""
        self._open: list[_Change] = []
        self._told: deque[Adjustment] = deque()
        self._lock = threading.Lock()

    def adjust(self, request: AdjustRequest) -> None:
        """Asks for a change; `told` gives what came of it."""
        with self._lock:
            for name in KNOBS:
                if name in request:
                    self._ask(name, cast("dict[str, int | None]", request)[name] or None)

    def _ask(self, name: str, wanted: int | None) -> None:
        before = self._now[name]
        self._now[name] = wanted
        for key in [key for key in self._kept if key[1] == name]:
            del self._kept[key]
        waits = {
            lane for lane, pair in self._pairs.items() if pair.has[name] != self._of(lane)[name]
        }
        self._open.append(_Change(name, before, wanted, self._clock(), waits))
        self._settle()

    def carriers(self, count: int) -> None:
        """So many pairs share a rate from now on."""
        with self._lock:
            self._carriers = max(1, count)

    def begun(self, lane: int, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """A pair begins a part: the spec document of its session, of that of the copy."""
        with self._lock:
            has = self._of(lane)
            self._pairs[lane] = _Pair(name, has)
            copy = {**document["copy"], "concurrency": has["concurrency"], _RATE: has[_RATE]}
            copy = {
                key: value
                for key, value in copy.items()
                if value is not None or key not in ("concurrency", _RATE)
            }
            spec = {**document, "copy": copy}
            return spec if has["streams"] is None else {**spec, "streams": has["streams"]}

    def _of(self, lane: int) -> dict[str, int | None]:
        """What a pair should have."""
        found = dict(self._now)
        if (total_bps := found[_RATE]) is not None:
            # A bound of the copy is one of all pairs together.
            found[_RATE] = max(1, total_bps // self._carriers)
        return {name: self._kept.get((lane, name), value) for name, value in found.items()}

    def to_send(self, lane: int) -> AdjustRequest | None:
        """What a pair that carries a part must be told now, if anything."""
        with self._lock:
            pair = self._pairs.get(lane)
            if pair is None:
                return None
            wanted = self._of(lane)
            found = {name: value or 0 for name, value in wanted.items() if value != pair.has[name]}
            pair.has = wanted
            return cast("AdjustRequest", found) if found else None

    def note(self, lane: int, change: Adjustment) -> None:
        """What a pair's session says of a change."""
        name, why = _NAMES[change["knob"]], change.get("refused")
        with self._lock:
            pair = self._pairs.get(lane)
            if pair is None:
                return
            if why in _ENDING:
                why = None
            elif why:
                pair.has[name] = self._kept[(lane, name)] = change.get("before")
            for one in self._open:
                if one.name == name and lane in one.waits:
                    one.waits.discard(lane)
                    one.answers.append(change)
                    if why:
                        one.refused.append(f"{pair.name}: {why}")
            self._settle()

    def ended(self, lane: int) -> None:
        """A pair's part is over; its next one begins with what is wanted then."""
        with self._lock:
            if self._pairs.pop(lane, None) is None:
                return
            for one in self._open:
                one.waits.discard(lane)
            self._settle()

    def told(self) -> list[Adjustment]:
        """What has come of changes since this was asked last, each once."""
        with self._lock:
            for one in self._open:
                if one.waits and self._clock() - one.since_s > ANSWER_S:
                    silent = [self._pairs[lane].name for lane in sorted(one.waits)]
                    one.refused += [f"{name}: no answer within {ANSWER_S:g} s" for name in silent]
                    one.waits.clear()
            self._settle()
            found = list(self._told)
            self._told.clear()
            return found

    def _settle(self) -> None:
        """Tells of the changes that no pair has to answer any more."""
        for one in [one for one in self._open if not one.waits]:
            self._open.remove(one)
            self._tell(one)

    def _tell(self, one: _Change) -> None:
        told: Adjustment = {
            "at_us": round(1e6 * (self._clock() - self._began_s)),
            "knob": cast("Any", KNOBS[one.name]),
        }
        before = one.before
        if before is None and one.name != _RATE:
            before = next((answer["before"] for answer in one.answers if "before" in answer), None)
        if before is not None:
            told["before"] = before
        if one.wanted is not None:
            told["after"] = one.wanted
        if one.refused:
            taken = len(one.answers) - len(one.refused)
            others = "; the other pairs have changed" if taken > 0 else ""
            told["refused"] = f"{'; '.join(one.refused)}{others}"
            if taken <= 0 and self._now[one.name] == one.wanted:
                self._now[one.name] = one.before
        self._told.append(told)
        self.all_told.append(told)
