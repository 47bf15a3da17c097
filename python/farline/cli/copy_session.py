"""Attempts at a copy: one session each, until it is whole or there is no use.

`Direct` drives the engine of this process. A copy between two other hosts is driven by
`copy_third.Ordered`, which answers to the same protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from farline.cli.copy_retry import Retry
from farline.cli.copy_way import (
    Buffers,
    Contact,
    Way,
    first_contact,
    interface_bps,
    own_buffers,
)
from farline.errors import FarlineError, InterruptedRun, SpecError, from_failure
from farline.models.stream_need import UNKNOWN_RATE_BPS, stream_need
from farline.spec.options import copy_flag
from farline.spec.units import rate_human
from farline.tools import Stop, StopQuestion
from farline.tools.copy_run import Columns, CopyEvent, CopyRun

if TYPE_CHECKING:
    from farline.spec._types import RunRecord
    from farline.tools.native import Target

POLL_S = 0.05

NEAR_S = 0.001
"""Up to so long a round trip one stream carries whatever an interface does."""

LOSS_BOUND = 0.01
"""Share of RBUDP's packets lost above which it slows down, where nobody stated a rate."""


class Watcher(Protocol):
    """Is told what happens."""

    def begun(self) -> None:
        """The engine has begun a session, and needs nobody for a while."""

    def event(self, event: CopyEvent) -> None:
        """Something happened in a session."""

    def waits(self, error: FarlineError, wait_s: float) -> None:
        """A session broke off; the next begins in so many seconds."""


@dataclass(frozen=True)
class Attempt:
    """What one session came to; without a record nothing was begun, and `error` says why."""

    record: RunRecord | None
    error: FarlineError | None
    samples: Columns = field(default_factory=dict)
    mover: Columns = field(default_factory=dict)


class Mover(Protocol):
    """Makes one attempt after the other; one that `repeats` begins broken ones again by itself."""

    repeats: bool

    def attempt(
        self,
        document: Mapping[str, Any],
        receipt: Path | None,
        watcher: Watcher,
        should_stop: StopQuestion,
    ) -> Attempt:
        """One session with this spec document, to its end or until somebody stops it."""

    def close(self) -> None:
        """Ends what was started for it."""


@dataclass
class Direct:
    """Sessions between this process and the other end of a way."""

    way: Way
    sources: tuple[str, ...]
    destination: str
    pushes: bool
    on_loopback: bool = False
    most_streams: int | None = None
    """Most streams for which there are ports at the other end."""
    repeats = False

    def attempt(
        self,
        document: Mapping[str, Any],
        receipt: Path | None,
        watcher: Watcher,
        should_stop: StopQuestion,
    ) -> Attempt:
        """One session; what it failed with stands in the attempt."""
        try:
            target = self.way.open(should_stop)
            spec = self._spec(document, target, watcher)
            run = CopyRun(target, spec, None if receipt is None else str(receipt))
        except FarlineError as error:
            return Attempt(None, in_flags(error))
        try:
            watcher.begun()
            record = follow(run, watcher, should_stop, self.on_loopback)
        finally:
            run.close()
        return Attempt(record, self._error(record), run.samples, run.mover)

    def _spec(
        self, document: Mapping[str, Any], target: Target, watcher: Watcher
    ) -> dict[str, Any]:
        copy = dict(document.get("copy") or {})
        if self.pushes:
            copy |= {"sources": list(self.sources), "destination": self.way.path(self.destination)}
        else:
            there = [self.way.path(source) for source in self.sources]
            copy |= {"sources": there, "destination": self.destination}
        direction = "forward" if self.pushes else "reverse"
        spec = {**document, "direction": direction, "copy": copy}
        for reason in self._settle_rates(spec, target):
            watcher.event(CopyEvent("detail", reason))
        return spec

    def _settle_rates(self, spec: dict[str, Any], target: Target) -> list[str]:
        """Chooses what was not stated: TCP's streams, RBUDP's rate. Says why, a line each."""
        transport = spec.get("transport", "tcp")
        if transport == "rbudp" and "rate_bps" not in spec:
            return [self._settle_blasts(spec, target)]
        if transport != "tcp" or "streams" in spec:
            return []
        if self.on_loopback:
            spec["streams"] = 1
            return ["1 stream: both ends are on this host"]
        contact = first_contact(target, spec.get("ip_version"))
        rtt_s = contact.rtt_s if contact is not None else 0.0
        here = own_buffers()
        there = self.way.buffers() or here
        sender, receiver = (here, there) if self.pushes else (there, here)
        send, receive = stated_buffers(spec, sender, receiver)
        rate_bps = wanted_bps(spec, contact) if rtt_s > NEAR_S else None
        need = stream_need(rtt_s, send, receive, rate_bps)
        spec["streams"] = min(need.streams, self.most_streams or need.streams)
        fewer = spec["streams"] < need.streams
        ports = f"; {spec['streams']}, for so many there are ports" if fewer else ""
        return [need.reason + ports]

    def _settle_blasts(self, spec: dict[str, Any], target: Target) -> str:
        """RBUDP sends at a stated rate; unstated it aims high and gives way to loss."""
        contact = first_contact(target, spec.get("ip_version"))
        streams = spec.setdefault("streams", 1)
        rate_bps = (wanted_bps(spec, contact) or UNKNOWN_RATE_BPS) // streams
        blasts = spec.get("rbudp") or {}
        spec["rate_bps"], spec["rbudp"] = rate_bps, {"loss_bound": LOSS_BOUND, **blasts}
        bound = spec["rbudp"]["loss_bound"]
        return f"rbudp at {rate_human(rate_bps)} a stream, less while more than {bound:g} is lost"

    def _error(self, record: RunRecord) -> FarlineError | None:
        failure = record.get("error")
        if record["status"] == "complete":
            return None
        if failure is None:
            return InterruptedRun("stopped")
        error = from_failure(failure)
        # Only where nothing ran can the way be what was wrong.
        advice = self.way.advice(error) if not record["streams"] else ""
        return in_flags(type(error)(error.message + advice, error.retry_after_s))

    def close(self) -> None:
        """Closes the way."""
        self.way.close()


def stated_buffers(spec: Mapping[str, Any], sender: Buffers, receiver: Buffers) -> tuple[int, int]:
    """Bytes of the sender's and the receiver's buffer: as stated, else what the kernels allow."""
    tcp = spec.get("tcp") or {}
    send = tcp.get("send_buffer_bytes") or sender.send_bytes
    return send, tcp.get("receive_buffer_bytes") or receiver.receive_bytes


def wanted_bps(spec: Mapping[str, Any], contact: Contact | None) -> int | None:
    """The rate that was stated for the whole copy, else that of the interface, if known."""
    stated: int | None = (spec.get("copy") or {}).get("total_rate_bps")
    if stated or contact is None:
        return stated
    return interface_bps(contact.address)


def follow(
    run: CopyRun, watcher: Watcher, should_stop: StopQuestion, calmly: bool = False
) -> RunRecord:
    """Follows one session to its record; asks before each slice whether to stop.

    `calmly`: what a session gives notice of (clear text) is a detail within one host.
    """
    while run.record is None:
        run.ask(should_stop())
        if (event := run.poll(POLL_S)) is not None:
            calm = calmly and event.kind == "notice"
            watcher.event(replace(event, kind="detail") if calm else event)
    return run.record


def in_flags(error: FarlineError) -> FarlineError:
    """A refusal of a field of the spec, in the words of the command line."""
    if not isinstance(error, SpecError):
        return error
    path, colon, rest = error.message.partition(":")
    flag = copy_flag(path)
    return SpecError(f"{flag}:{rest}", error.retry_after_s) if colon and flag else error


@dataclass
class Repeated:
    """Attempts with pauses between, as `Retry` decides; `each` is told of every one that ends."""

    mover: Mover
    retry: Retry
    watcher: Watcher
    should_stop: StopQuestion
    each: Callable[[Attempt], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    attempts: int = 0
    _best: tuple[int, ...] = (0, 0, 0)
    """Most names and bytes settled, and bytes moved, in any session: less than that is no news."""

    def run(self, document: Mapping[str, Any], receipt: Path | None) -> Attempt:
        """The last attempt."""
        while True:
            attempt = self.mover.attempt(document, receipt, self, self.should_stop)
            self.attempts += 1
            self.each(attempt)
            if attempt.error is None or self.should_stop() is not Stop.GO_ON:
                return attempt
            wait_s = self.retry.wait_s(attempt.error, self.clock())
            if wait_s is None or not self._pause(attempt.error, wait_s):
                return attempt

    def begun(self) -> None:
        """Passed on."""
        self.watcher.begun()

    def event(self, event: CopyEvent) -> None:
        """Notes progress, and passes the event on."""
        if event.progress is not None:
            one = event.progress
            now = (one["settled_files"], one["settled_bytes"], one["moved_bytes"])
            best = tuple(map(max, now, self._best))
            if best != self._best:
                self._best = best
                self.retry.moved(self.clock())
        self.watcher.event(event)

    def waits(self, error: FarlineError, wait_s: float) -> None:
        """Passed on."""
        self.watcher.waits(error, wait_s)

    def _pause(self, error: FarlineError, wait_s: float) -> bool:
        """Waits; says whether to go on then."""
        self.watcher.waits(error, wait_s)
        until = self.clock() + wait_s
        while self.should_stop() is Stop.GO_ON:
            left = until - self.clock()
            if left <= 0:
                return True
            self.sleep(min(left, 0.1))
        return False
