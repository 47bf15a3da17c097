"""Attempts at a copy: one session each, until it is whole or there is no use.

`Direct` drives the engine of this process. A copy between two other hosts is driven by
`third.Ordered`, which answers to the same protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from farline.cli.copy.glance import are_many_and_small
from farline.cli.copy.retry import Retry
from farline.cli.copy.way import (
    BackWay,
    Buffers,
    Way,
    first_contact,
    interface_bps,
    own_buffers,
    own_cores,
    tell_waits,
)
from farline.errors import FarlineError, InterruptedRun, from_failure
from farline.spec.options import copy_flag
from farline.spec.units import rate_human
from farline.tools import Stop, StopQuestion
from farline.tools.copy_run import Columns, CopyEvent, CopyRun

if TYPE_CHECKING:
    from farline.spec._types import RunRecord
    from farline.tools.native import Contact, Target

POLL_S = 0.05

NEAR_S = 0.001
"""Up to so long a round trip one stream carries whatever an interface does."""

BACK_STREAMS = 4
"""Streams where nothing can be found out about the path beforehand."""

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


@dataclass(eq=False, repr=False)
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
            tell_waits(self.way, lambda text: watcher.event(CopyEvent("notice", text)))
            target = self.way.open(should_stop)
            contact = self._contact(document, target)
            spec = self._spec(document, contact, watcher)
            run = self._begun(target, spec, None if receipt is None else str(receipt), contact)
        except FarlineError as error:
            return Attempt(None, in_flags(self.way.names().error(error)))
        try:
            watcher.begun()
            record = self.way.names().record(follow(run, watcher, should_stop))
        finally:
            run.close()
        return Attempt(record, self._error(record), run.samples, run.mover)

    def _contact(self, document: Mapping[str, Any], target: Target) -> Contact | None:
        """The connection to the other end, where something is to be found out about the path."""
        if unsettled(document) is None or self.on_loopback or isinstance(self.way, BackWay):
            return None
        return first_contact(target, document.get("ip_version"))

    def _begun(
        self, target: Target, spec: dict[str, Any], receipt: str | None, contact: Contact | None
    ) -> CopyRun:
        if not isinstance(self.way, BackWay):
            return CopyRun(target, spec, receipt, contact=contact)
        run = CopyRun(target, spec, receipt, listen=self.way.listen_address())
        while (event := run.poll(POLL_S)) is None or event.kind != "listening":
            if run.record is not None:
                return run
        self.way.listens(event.text)
        return run

    def _spec(
        self, document: Mapping[str, Any], contact: Contact | None, watcher: Watcher
    ) -> dict[str, Any]:
        copy = dict(document.get("copy") or {})
        if self.pushes:
            copy |= {"sources": list(self.sources), "destination": self.way.path(self.destination)}
        else:
            there = [self.way.path(source) for source in self.sources]
            copy |= {"sources": there, "destination": self.destination}
        direction = "forward" if self.pushes else "reverse"
        spec = {**document, "direction": direction, "copy": copy}
        for reason in self._settle_rates(spec, contact):
            watcher.event(CopyEvent("detail", reason))
        return spec

    def _settle_rates(self, spec: dict[str, Any], contact: Contact | None) -> list[str]:
        """Chooses what was not stated: streams, RBUDP's rate. Says why, a line each."""
        wanted = unsettled(spec)
        if wanted is None:
            return []
        if wanted == "rate_bps":
            return self._settle_blasts(spec, contact)
        from farline.models.stream_need import UNKNOWN_RATE_BPS, core_streams, stream_need

        cores = own_cores()
        if self.on_loopback:
            streams = core_streams(UNKNOWN_RATE_BPS, cores)
            spec["streams"] = streams
            return [f"{streams} stream{'' if streams == 1 else 's'}: both ends are on this host"]
        if isinstance(self.way, BackWay):
            spec["streams"] = BACK_STREAMS
            return [f"{BACK_STREAMS} streams: the path is not known before that host connects"]
        if spec.get("transport") == "udt":
            return [self._settle_cores(spec, contact)]
        rtt_s = contact.rtt_s if contact is not None else 0.0
        here = own_buffers()
        there = self.way.buffers() or here
        sender, receiver = (here, there) if self.pushes else (there, here)
        send, receive = stated_buffers(spec, sender, receiver)
        rate_bps = wanted_bps(spec, contact) if rtt_s > NEAR_S else None
        small = self.pushes and are_many_and_small(self.sources)
        need = stream_need(rtt_s, send, receive, rate_bps, cores, small)
        return [need.reason + self._within_ports(spec, need.streams)]

    def _within_ports(self, spec: dict[str, Any], streams: int) -> str:
        """States so many streams, or fewer where there are ports for fewer: then it says so."""
        spec["streams"] = min(streams, self.most_streams or streams)
        fewer = spec["streams"] < streams
        return f"; {spec['streams']}, for so many there are ports" if fewer else ""

    def _settle_cores(self, spec: dict[str, Any], contact: Contact | None) -> str:
        """UDT and RBUDP fill a path with one stream, if one thread at each end can."""
        from farline.models.stream_need import IDLE_CORES, UNKNOWN_RATE_BPS, core_streams

        streams = core_streams(wanted_bps(spec, contact) or UNKNOWN_RATE_BPS, own_cores())
        reason = f"{streams} streams: {IDLE_CORES}"
        if streams == 1:
            reason = "1 stream: it fills a path whatever the round-trip time"
        return reason + self._within_ports(spec, streams)

    def _settle_blasts(self, spec: dict[str, Any], contact: Contact | None) -> list[str]:
        """RBUDP sends at a stated rate; unstated it aims high and gives way to loss."""
        from farline.models.stream_need import UNKNOWN_RATE_BPS

        said = [] if "streams" in spec else [self._settle_cores(spec, contact)]
        rate_bps = (wanted_bps(spec, contact) or UNKNOWN_RATE_BPS) // spec["streams"]
        blasts = spec.get("rbudp") or {}
        spec["rate_bps"], spec["rbudp"] = rate_bps, {"loss_bound": LOSS_BOUND, **blasts}
        bound = spec["rbudp"]["loss_bound"]
        rate = rate_human(rate_bps)
        return [*said, f"rbudp at {rate} a stream, less while more than {bound:g} is lost"]

    def _error(self, record: RunRecord) -> FarlineError | None:
        failure = record.get("error")
        if record["status"] == "complete":
            return None
        if failure is None:
            return InterruptedRun("stopped")
        error = from_failure(failure)
        # Only where nothing ran can the way be what was wrong.
        advice = self.way.advice(error) if not record["streams"] else ""
        return in_flags(error.reworded(error.message + advice))

    def close(self) -> None:
        """Closes the way."""
        self.way.close()


def unsettled(spec: Mapping[str, Any]) -> str | None:
    """What follows from the path and was not stated: `streams`, or RBUDP's `rate_bps`."""
    field = {"tcp": "streams", "udt": "streams", "rbudp": "rate_bps"}[spec.get("transport", "tcp")]
    return None if field in spec else field


def stated_buffers(spec: Mapping[str, Any], sender: Buffers, receiver: Buffers) -> tuple[int, int]:
    """Bytes of the sender's and the receiver's buffer: as stated, else what the kernels allow."""
    tcp = spec.get("tcp") or {}
    send = tcp.get("send_buffer_bytes") or sender.send_bytes
    return send, tcp.get("receive_buffer_bytes") or receiver.receive_bytes


def wanted_bps(spec: Mapping[str, Any], contact: Contact | None) -> int | None:
    """The rate that was stated for the whole copy, else that of the interface, if known."""
    stated: int | None = (spec.get("copy") or {}).get("total_rate_bps")
    if stated or contact is None or contact.address is None:
        return stated
    return interface_bps(contact.address)


def follow(run: CopyRun, watcher: Watcher, should_stop: StopQuestion) -> RunRecord:
    """Follows one session to its record; asks before each slice whether to stop."""
    while run.record is None:
        run.ask(should_stop())
        if (event := run.poll(POLL_S)) is not None:
            watcher.event(event)
    return run.record


def in_flags(error: FarlineError) -> FarlineError:
    """A refusal of a field of the spec, in the words of the command line."""
    path, colon, rest = error.message.partition(":")
    flag = copy_flag(path) if colon else None
    return error.reworded(f"{flag}:{rest}") if flag else error


@dataclass(eq=False, repr=False)
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
