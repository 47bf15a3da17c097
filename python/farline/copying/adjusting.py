"""Changes of a copy while it runs: who wants them, what came of them, what later sessions keep.

Any thread may ask; nothing here waits for the network unless it is told to. What came of a wish is
said by the events of the session, so by the thread that drives the copy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from farline.errors import UsageError
from farline.tools.events import Adjusted, Stages

if TYPE_CHECKING:
    from farline.spec._types import Adjustment, AdjustRequest, CopyStages
    from farline.tools.events import Event

MOST_STREAMS = 256
MOST_FILES = 1_000_000

KNOBS: dict[str, str] = {
    "streams": "streams",
    "concurrency": "concurrency",
    "total_rate_bps": "total-rate",
}
"""What a request calls it, and what an adjustment does."""


def request_of(
    streams: int | None = None, concurrency: int | None = None, rate_bps: int | None = None
) -> AdjustRequest:
    """A request for what is given; a rate of 0 is without limit.

    Raises:
        UsageError: for a value out of range, or nothing at all.
    """
    request: AdjustRequest = {}
    if streams is not None:
        request["streams"] = _within("streams", streams, 1, MOST_STREAMS)
    if concurrency is not None:
        request["concurrency"] = _within("concurrency", concurrency, 1, MOST_FILES)
    if rate_bps is not None:
        request["total_rate_bps"] = _within("rate", rate_bps, 0, 10**15)
    if not request:
        raise UsageError("nothing to change: give streams, concurrency or a rate")
    return request


def _within(what: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise UsageError(f"{what}: {value} is out of range; allowed: {least} to {most}")
    return int(value)


class AdjustableRun(Protocol):
    """What runs and can be changed: a session of this process, or those of several nodes."""

    @property
    def run_id(self) -> str:
        """Its name."""

    def adjust(self, request: AdjustRequest) -> None:
        """Wants it to go on in another way, from any thread; `note` is told what comes of it."""


class Adjusting:
    """The changes of one copy, over all its sessions."""

    def __init__(self, most_streams: int | None = None) -> None:
        """Nothing is wanted yet; `most_streams` is for how many there are ports, if few."""
        self._changed = threading.Condition()
        self._run: AdjustableRun | None = None
        self._kept: AdjustRequest = {}
        self._told: list[Adjustment] = []
        self._is_over = False
        self._most_streams = most_streams
        self.elsewhere: str | None = None
        """The host that drives the copy, if it is not this one."""
        self.stages: CopyStages | None = None
        """How far reading, network and writing are, as it was told last."""

    @property
    def is_over(self) -> bool:
        """Whether nothing changes any more."""
        return self._is_over

    @property
    def run_id(self) -> str | None:
        """Name of the session that runs now."""
        run = self._run
        return None if run is None else run.run_id

    def want(self, request: AdjustRequest) -> bool:
        """Asks for a change and returns at once; whether a session runs that it goes to.

        Where none runs the next one begins with it.

        Raises:
            FarlineError: when the copy is over, runs on another host, or has no ports for so many.
        """
        with self._changed:
            if self._is_over:
                raise UsageError("the copy has ended: nothing can be changed")
            if self.elsewhere is not None:
                raise UsageError(
                    f"this copy is run by {self.elsewhere}: use farline adjust on that host"
                )
            most = self._most_streams
            if most is not None and (request.get("streams") or 1) > most:
                raise UsageError(
                    f"streams: {request['streams']} requested, but there are ports for {most}"
                )
            run = self._run
            if run is None:
                self._kept = {**self._kept, **request}
                return False
        run.adjust(request)
        return True

    def change(self, request: AdjustRequest, timeout_s: float) -> list[Adjustment]:
        """Asks for a change and waits until it is in force or refused: what came of each knob.

        Empty where no session runs: the next one begins with it.

        Raises:
            FarlineError: as `want`; when nothing was said for `timeout_s`.
        """
        with self._changed:
            place = len(self._told)
        if not self.want(request):
            return []
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                found = self._outcome(request, place)
                if found is not None:
                    return found
                left = deadline - time.monotonic()
                if self._is_over or left <= 0:
                    why = "the copy ended" if self._is_over else f"no answer within {timeout_s:g} s"
                    raise UsageError(f"changing the copy failed: {why}")
                self._changed.wait(left)

    def _outcome(self, request: AdjustRequest, place: int) -> list[Adjustment] | None:
        """What came of every knob of `request` since `place`; None while one is missing."""
        found = []
        for name, knob in KNOBS.items():
            if name not in request:
                continue
            wanted = request[name] or None  # type: ignore[literal-required]
            told = [one for one in self._told[place:] if one["knob"] == knob]
            fits = [one for one in told if one.get("after") == wanted or one.get("refused")]
            # A server that allows no more says what it allows instead.
            last = fits or (told if wanted is None else [])
            if not last:
                return None
            found.append(last[-1])
        return found

    def begun(self, run: AdjustableRun) -> None:
        """A session runs from now on."""
        with self._changed:
            self._run, self.stages = run, None

    def ended(self) -> None:
        """It does not run any more; another may follow."""
        with self._changed:
            self._run = None

    def over(self) -> None:
        """No session follows."""
        with self._changed:
            self._is_over, self._run = True, None
            self._changed.notify_all()

    def note(self, event: Event) -> None:
        """Takes what a session says of changes and stages."""
        if isinstance(event, Stages):
            self.stages = event.report
        elif isinstance(event, Adjusted):
            with self._changed:
                self._told.append(event.change)
                self._keep(event.change)
                self._changed.notify_all()

    def _keep(self, change: Adjustment) -> None:
        """What is in force holds for sessions that follow, too."""
        if change.get("refused"):
            return
        name = next(name for name, knob in KNOBS.items() if knob == change["knob"])
        self._kept = {**self._kept, name: change.get("after") or 0}  # type: ignore[misc]

    def applied(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A spec document with what was changed before this session."""
        with self._changed:
            kept: dict[str, Any] = dict(self._kept)
        spec = dict(document)
        if "streams" in kept:
            spec["streams"] = kept.pop("streams")
        if kept:
            spec["copy"] = {**spec.get("copy", {}), **kept}
        return spec


def refused_by(request: AdjustRequest, why: str) -> list[Adjustment]:
    """Every change of a request, as one that was refused."""
    refused = taken_by(request)
    for change in refused:
        change["refused"] = why
    return refused


def taken_by(request: AdjustRequest) -> list[Adjustment]:
    """Every change of a request, as one with which a session begins."""
    found: list[Adjustment] = []
    for name, knob in KNOBS.items():
        if name in request:
            change: Any = {"at_us": 0, "knob": knob}
            if after := request[name] or None:  # type: ignore[literal-required]
                change["after"] = after
            found.append(change)
    return found


def change_text(change: Adjustment) -> str:
    """A change as one line: `8 -> 12 streams`."""
    names = {"streams": "streams", "concurrency": "files at once", "total-rate": ""}
    unit = names[change["knob"]]
    before, after = (_value(change, which) for which in ("before", "after"))
    line = f"{before} -> {after} {unit}".rstrip()
    refused = change.get("refused")
    return f"{line}: {refused}" if refused else line


def _value(change: Adjustment, which: str) -> str:
    value = change.get(which)
    if change["knob"] == "total-rate":
        from farline.spec.units import rate_text

        return "no limit" if not value else rate_text(int(value))  # type: ignore[call-overload]
    return "automatic" if value is None else str(value)
