"""farline's own engine as a tool: the one user of the extension besides `spec`."""

from __future__ import annotations

import json
import os
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from farline import _native
from farline.errors import AuthError, FarlineError, InternalError, InterruptedRun, from_failure
from farline.logs import Log
from farline.spec.extras import has_numpy
from farline.tools import Capabilities, EventSink, RunResult, Stop, StopQuestion, events
from farline.tools.known_servers import KnownServers

if TYPE_CHECKING:
    from pathlib import Path

    from farline._native import ConnectionKeeper as ConnectionKeeper
    from farline._native import Contact as Contact

    # Making these types takes longer than starting a run.
    from farline.spec._types import (
        AdjustRequest,
        HostFacts,
        Iperf3Config,
        Limits,
        RunRecord,
        RunSpec,
        Scope,
        ServerConfig,
        TicketClaims,
        TicketRecord,
        VersionInfo,
    )
    from farline.tools import Samples
    from farline.tools.events import Columns, Event, Steps

TICKET_VARIABLE = "FARLINE_TICKET"
"""Environment variable whose ticket is used for the server it names."""

_LOG = Log(__name__)

_POLL_S = 0.1
_SUM_BYTES = 64 << 20
"""Read of a file before it is asked whether to go on."""
_Value = TypeVar("_Value")


def checked(call: Callable[..., _Value], *arguments: Any) -> _Value:
    """Calls into the extension; its failures become `farline.errors`.

    Raises:
        FarlineError: whatever the call failed with.
    """
    try:
        return call(*arguments)
    except _native.NativeError as error:
        raise from_failure(str(error.args[0])) from None


FARLINE = "farline"
"""farline's own control protocol."""


@dataclass(frozen=True)
class Target:
    """Where a run goes, and by which right: the ticket is sent only to the pinned key."""

    host: str
    port: int
    ticket: str | None = None
    pin: str | None = None
    protocol: str = FARLINE
    """What it speaks: `farline`, or `iperf3` for measurements alone."""

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def to_json(self) -> str:
        """As the extension takes it."""
        other = None if self.protocol == FARLINE else self.protocol
        known = {"ticket": self.ticket, "pin": self.pin, "protocol": other}
        present = {name: value for name, value in known.items() if value is not None}
        return json.dumps({"host": self.host, "port": self.port, **present})


def parse_target(text: str) -> Target:
    """A target from `farline://…`, `iperf3://host[:port]` or `host[:port]`, as written.

    Raises:
        UsageError: when the text is neither.
    """
    document = json.loads(checked(_native.parse_target, text))
    right = document.get("ticket"), document.get("pin")
    protocol = document.get("protocol", FARLINE)
    return Target(document["host"], document["port"], *right, protocol)


def find_right(target: Target, known: KnownServers) -> Target:
    """Adds what is known about the target: a ticket from the environment or remembered, a key."""
    if target.ticket is not None or target.protocol != FARLINE:
        return target
    text = os.environ.get(TICKET_VARIABLE, "")
    if text:
        given = parse_target(text)
        if given.address == target.address:
            _LOG.debug("ticket taken from the environment", server=target.address)
            return given
    server = known.get(target.address)
    _LOG.debug(
        "remembered of the server", server=target.address,
        has_ticket=server.ticket is not None, server_key=server.fingerprint,
    )  # fmt: skip
    if server.ticket is not None:
        return parse_target(server.ticket)
    return Target(target.host, target.port, None, server.fingerprint or target.pin)


def resolve_spec(spec: RunSpec | Mapping[str, Any]) -> RunSpec:
    """A spec checked as a whole, with farline's own choices filled in.

    Raises:
        SpecError: when a value or a combination is not allowed.
    """
    resolved: RunSpec = json.loads(checked(_native.validate_run_spec, json.dumps(spec)))
    return resolved


def file_sum(path: Path, kind: str, goes_on: Callable[[], bool]) -> str:
    """The sum of a file in hexadecimal, by a word of `--hash`; `goes_on` is asked now and then.

    Raises:
        SystemFailure: when it cannot be read.
        InterruptedRun: when it is not to go on.
    """
    sums = checked(_native.FileSum, path, kind)
    while goes_on():
        digits: str | None = checked(sums.advance, _SUM_BYTES)
        if digits is not None:
            return digits
    raise InterruptedRun("stopped")


def looks_into(rules: Sequence[str], path: bytes) -> bool:
    """Whether a copy with these rules looks into the folder at `path` below its destination."""
    return checked(_native.looks_into, list(rules), path)


def host_facts() -> HostFacts:
    """What this host is."""
    facts: HostFacts = json.loads(checked(_native.host_facts))
    return facts


def version_info() -> VersionInfo:
    """Versions behind this build."""
    info: VersionInfo = json.loads(checked(_native.version_info))
    return info


def memory_copy_bps(threads: int, seconds: float) -> int:
    """Bits per second that `threads` threads copy in memory."""
    return checked(_native.memory_copy_bps, threads, seconds)


def mint_ticket(
    state_dir: str,
    address: str,
    scope: Scope,
    limits: Limits,
    lifetime_s: float,
    keys_dir: str | None = None,
) -> str:
    """A ticket for `address`, signed with the key in `keys_dir`, or in `state_dir`."""
    what = json.dumps(scope), json.dumps(limits), lifetime_s
    return checked(_native.mint_ticket, state_dir, address, *what, keys_dir)


def list_tickets(state_dir: str, keys_dir: str | None = None) -> list[TicketRecord]:
    """Tickets that the server whose state is in `state_dir` remembers, the oldest first."""
    tickets: list[TicketRecord] = json.loads(checked(_native.list_tickets, state_dir, keys_dir))
    return tickets


def inspect_ticket(state_dir: str, ticket: str, keys_dir: str | None = None) -> TicketRecord:
    """What a ticket says; with what the server whose state is in `state_dir` knows of it.

    Raises:
        UsageError: when the text is no ticket.
    """
    record: TicketRecord = json.loads(checked(_native.inspect_ticket, state_dir, ticket, keys_dir))
    return record


def revoke_ticket(state_dir: str, claims: TicketClaims, keys_dir: str | None = None) -> None:
    """Has the servers whose state is in `state_dir` refuse a ticket from its next use on."""
    checked(_native.revoke_ticket, state_dir, json.dumps(claims), keys_dir)


def connection_keeper() -> ConnectionKeeper:
    """Keeps a control connection from run to run, for as long as it lives."""
    return _native.ConnectionKeeper()


def make_contact(target: Target, ip_version: str, timeout_s: float) -> Contact:
    """Connects to a server, saying nothing: tells the round-trip time; a run can begin with it.

    Raises:
        FarlineError: when it does not come about.
    """
    return checked(_native.make_contact, target.to_json(), ip_version, timeout_s)


class _Listening:
    """A server in this process; ends with `stop` and `join`."""

    _server: _native.Server | _native.Iperf3Server

    def addresses(self) -> list[str]:
        """Addresses it listens on; an iperf3 server over TCP and UDP."""
        return self._server.addresses()

    def poll(self, timeout_s: float) -> tuple[str, Any] | None:
        """Next event as kind and document, or None after `timeout_s`."""
        event = checked(self._server.poll, timeout_s)
        return None if event is None else (event[0], json.loads(event[1]))

    def stop(self) -> None:
        """Takes no more sessions and ends those that run."""
        self._server.stop()

    def join(self) -> None:
        """Waits until it has ended."""
        checked(self._server.join)


class Server(_Listening):
    """A server of farline's own."""

    _server: _native.Server

    def __init__(
        self, config: ServerConfig, connect_to: str | None = None, sockets: Sequence[int] = ()
    ) -> None:
        """Starts to listen; with `connect_to` (`address:port`), serves who waits there and ends.

        With `sockets` it listens on these descriptors, whatever `config` says of addresses.

        Raises:
            FarlineError: when the configuration is not allowed, the port is taken, or one of
                `sockets` does not listen for TCP.
        """
        document = json.dumps(config)
        self._server = checked(_native.start_server, document, connect_to, list(sockets))

    def fingerprint(self) -> str:
        """Fingerprint of its key."""
        return self._server.fingerprint()


class Iperf3Server(_Listening):
    """A server for iperf3's clients."""

    def __init__(self, config: Iperf3Config) -> None:
        """Starts to listen.

        Raises:
            FarlineError: when the configuration is not allowed, a port is taken or a file is not
                what it should be.
        """
        self._server = checked(_native.start_iperf3_server, json.dumps(config))


class NativeTool:
    """farline's own engine behind the `Tool` protocol."""

    def __init__(
        self, known: KnownServers | None = None, keeper: ConnectionKeeper | None = None
    ) -> None:
        """Remembers servers in `known`, or in the user's own list.

        With `keeper` a run goes over the control connection of the one before it.
        """
        self._known, self._keeper = known or KnownServers(), keeper

    def capabilities(self) -> Capabilities:
        """Every transport and direction, with samples."""
        return Capabilities(
            "native",
            ("tcp", "udp", "udt", "rbudp", "quic", "null"),
            ("forward", "reverse", "bidirectional"),
            samples=True,
        )

    def run(
        self, target: str, spec: RunSpec, on_event: EventSink, should_stop: StopQuestion
    ) -> RunResult:
        """One run; the record of a failed or stopped run comes back like any other.

        Raises:
            FarlineError: when nothing could be started: a bad target or spec, a refused key.
        """
        steps = self.steps(target, spec, should_stop)
        try:
            while True:
                if (event := next(steps)) is not None:
                    on_event(event)
        except StopIteration as end:
            result: RunResult = end.value
            return result
        finally:
            steps.close()

    def steps(self, target: str, spec: RunSpec, should_stop: StopQuestion) -> Steps[RunResult]:
        """The same run, told event by event."""
        followed = RunFollower(parse_target(target), spec, self._known, keeper=self._keeper)
        try:
            yield from followed.events(should_stop)
        finally:
            followed.close()
        assert followed.record is not None
        samples = followed.samples or {name: array("q") for name in _sample_columns()}
        return RunResult(followed.record, as_arrays(samples), as_arrays(followed.file_samples))


def _sample_columns() -> Iterable[str]:
    from farline.spec._types import SAMPLE_COLUMNS

    return SAMPLE_COLUMNS


_RUN_STAGE = "PROFILING_START"
"""Notices before this stage are the server's, of what it granted; those that come in it are this
end's own, of the cipher of a copy's files."""


class RunFollower:
    """A run or a session of a copy that goes on by itself: tells its events, holds its rows.

    Rows stay columns of machine integers (`array`): a copy of many small files is over before
    numpy could be imported.
    """

    def __init__(
        self,
        target: Target,
        spec: Mapping[str, Any],
        known: KnownServers | None = None,
        *,
        receipt: str | None = None,
        listen: str | None = None,
        contact: Contact | None = None,
        keeper: ConnectionKeeper | None = None,
    ) -> None:
        """Starts it; a line per name of a copy goes to the file `receipt`.

        With `listen` (`address:port`) the server is waited for there; `Listening` tells the port.
        `contact` is a connection to the server that is there already; `keeper` has one that an
        earlier run left, and keeps it for the next.

        Raises:
            FarlineError: when nothing could be started: a bad target or spec.
        """
        self._known = known or KnownServers()
        self._target, self._right = target, find_right(target, self._known)
        documents = self._right.to_json(), json.dumps(spec)
        self._handle = checked(_native.start_run, *documents, receipt, listen, contact, keeper)
        self._asked = Stop.GO_ON
        self._stage = ""
        self._key: str | None = None
        self._to_come: deque[Event] = deque()
        self._samples: dict[str, array[int]] = {}
        self._file_samples: dict[str, array[int]] = {}
        self.record: RunRecord | None = None
        """The record, once `SessionEnded` has come."""

    @property
    def samples(self) -> Columns:
        """Rows of the streams so far."""
        return self._samples

    @property
    def file_samples(self) -> Columns:
        """Rows of both ends' files so far; no column for what is no copy."""
        return self._file_samples

    @property
    def run_id(self) -> str:
        """Name of the run, as in its record."""
        return self._handle.run_id

    def adjust(self, request: AdjustRequest) -> None:
        """Wants a copy to go on in another way, from any thread; `Adjusted` tells what comes of it.

        Raises:
            FarlineError: when the run is over, or too many changes wait.
        """
        checked(self._handle.adjust, json.dumps(request))

    def ask(self, wanted: Stop) -> None:
        """Passes a wish to stop on, once."""
        if wanted > self._asked:
            self._asked = wanted
            (self._handle.abort if wanted is Stop.NOW else self._handle.stop)()

    def events(self, should_stop: StopQuestion, poll_s: float = _POLL_S) -> Steps[None]:
        """All events to the end, and None after each `poll_s` in which nothing happened.

        `should_stop` is asked before each; a wish is passed on.
        """
        while self.record is None:
            self.ask(should_stop())
            yield self.poll(poll_s)

    def poll(self, timeout_s: float) -> Event | None:
        """The next event, or None after `timeout_s`."""
        if self._to_come:
            return self._to_come.popleft()
        polled = checked(self._handle.poll, timeout_s)
        return None if polled is None else self._event(*polled)

    def _event(self, kind: str, text: str, columns: _native.Columns | None) -> Event:
        if columns is not None:
            rows = {name: array("q", columns.column(name)) for name in columns.names()}
            if kind == "mover_samples":
                return events.FileSamples(_grown(self._file_samples, rows))
            return events.StreamSamples(_grown(self._samples, rows))
        document = json.loads(text)
        match kind:
            case "stage":
                self._stage = document
                return events.Stage(document)
            case "server_key":
                return self._shown_key(document)
            case "listening":
                return events.Listening(document)
            case "notice":
                is_own = self._stage == _RUN_STAGE
                about = events.NoticeKind.CIPHER if is_own else events.NoticeKind.GRANTED
                return events.Notice(about, document)
            case "progress":
                return events.Progress(document)
            case "stages":
                return events.Stages(document)
            case "adjusted":
                return events.Adjusted(document)
            case "done":
                self.record = self._remembered(document)
                return events.SessionEnded(self.record)
        raise InternalError(f"the engine sent an event of unknown kind {kind!r}")

    def _shown_key(self, fingerprint: str) -> Event:
        self._key = fingerprint
        if self._right.pin is None:
            kept = "stored" if self._known.is_kept else "not stored, as there is no home folder"
            line = f"first contact with this server; its key was {kept}: {fingerprint}"
            self._to_come.append(events.Notice(events.NoticeKind.FIRST_CONTACT, line))
        return events.ServerKey(fingerprint)

    def _remembered(self, record: RunRecord) -> RunRecord:
        if self._right.pin is None and self._key is not None and self._known.is_kept:
            self._known.remember_key(self._target.address, self._key)
        if self._target.pin is None and self._key not in (None, self._right.pin):
            return with_trust_advice(record, self._right)
        return record

    def close(self) -> None:
        """Ends it at once, if it still goes on."""
        self._handle.abort()


def _grown(table: dict[str, array[int]], rows: Columns) -> Columns:
    """`rows`, which `table` has from now on as well."""
    for name, values in rows.items():
        table.setdefault(name, array("q")).extend(values)
    return rows


def as_arrays(columns: Mapping[str, Any]) -> Samples:
    """Columns of machine integers as numpy arrays over the same memory; as they are without it."""
    if not has_numpy():
        return dict(columns)
    import numpy as np

    return {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}


def with_trust_advice(record: RunRecord, target: Target) -> RunRecord:
    """A server with another key than the remembered one: says how to forget that one."""
    error = record.get("error")
    if not error or error["kind"] != AuthError.kind or target.pin is None:
        return record
    fix = f"farline trust --forget {target.address}"
    message = f"{error['message']}; if the server was reinstalled: {fix}"
    return {**record, "error": {**error, "message": message}}


def error_of(result: RunResult) -> FarlineError | None:
    """The error a failed run carries, as an exception to raise; None if it did not fail."""
    error = result.record.get("error")
    if result.record["status"] != "failed" or error is None:
        return None
    return from_failure(error)
