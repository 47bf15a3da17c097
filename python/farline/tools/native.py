"""farline's own engine as a tool: the one user of the extension besides `spec`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from farline import _native
from farline.errors import AuthError, FarlineError, from_failure
from farline.tools import Capabilities, Event, EventSink, RunResult, Stop, StopQuestion
from farline.tools.known_servers import KnownServers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from farline._native import Contact as Contact

    # Making these types takes longer than starting a run.
    from farline.spec._types import (
        HostFacts,
        Limits,
        RunRecord,
        RunSpec,
        Scope,
        ServerConfig,
        VersionInfo,
    )
    from farline.tools import Samples

TICKET_VARIABLE = "FARLINE_TICKET"
"""Environment variable whose ticket is used for the server it names."""

_POLL_S = 0.1
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


@dataclass(frozen=True)
class Target:
    """Where a run goes, and by which right: the ticket is sent only to the pinned key."""

    host: str
    port: int
    ticket: str | None = None
    pin: str | None = None

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def to_json(self) -> str:
        """As the extension takes it."""
        known = {"ticket": self.ticket, "pin": self.pin}
        present = {name: value for name, value in known.items() if value is not None}
        return json.dumps({"host": self.host, "port": self.port, **present})


def parse_target(text: str) -> Target:
    """A target from `farline://…` or `host[:port]`, as written.

    Raises:
        UsageError: when the text is neither.
    """
    document = json.loads(checked(_native.parse_target, text))
    return Target(document["host"], document["port"], document.get("ticket"), document.get("pin"))


def find_right(target: Target, known: KnownServers) -> Target:
    """Adds what is known about the target: a ticket from the environment or remembered, a key."""
    if target.ticket is not None:
        return target
    text = os.environ.get(TICKET_VARIABLE, "")
    if text:
        given = parse_target(text)
        if given.address == target.address:
            return given
    server = known.get(target.address)
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
    state_dir: str, address: str, scope: Scope, limits: Limits, lifetime_s: float
) -> str:
    """A ticket for `address`, signed with the key in `state_dir`."""
    return checked(
        _native.mint_ticket, state_dir, address, json.dumps(scope), json.dumps(limits), lifetime_s
    )


def make_contact(target: Target, ip_version: str, timeout_s: float) -> Contact:
    """Connects to a server, saying nothing: tells the round-trip time; a run can begin with it.

    Raises:
        FarlineError: when it does not come about.
    """
    return checked(_native.make_contact, target.to_json(), ip_version, timeout_s)


def start_copy(
    target: Target,
    spec: Mapping[str, Any],
    receipt: str | None,
    listen: str | None = None,
    contact: Contact | None = None,
) -> _native.Run:
    """Starts a run with a `copy` section; a line per name goes to the file `receipt`.

    With `listen` (`address:port`) the server is waited for there; `contact` is a connection to it
    that is there already.

    Raises:
        FarlineError: when nothing could be started: a bad target or spec.
    """
    return checked(_native.start_run, target.to_json(), json.dumps(spec), receipt, listen, contact)


class Server:
    """A server in this process; ends with `stop` and `join`."""

    def __init__(self, config: ServerConfig, connect_to: str | None = None) -> None:
        """Starts to listen; with `connect_to` (`address:port`), serves who waits there and ends.

        Raises:
            FarlineError: when the configuration is not allowed or the port is taken.
        """
        self._server = checked(_native.start_server, json.dumps(config), connect_to)

    def addresses(self) -> list[str]:
        """Addresses it listens on."""
        return self._server.addresses()

    def fingerprint(self) -> str:
        """Fingerprint of its key."""
        return self._server.fingerprint()

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


class NativeTool:
    """farline's own engine behind the `Tool` protocol."""

    def __init__(self, known: KnownServers | None = None) -> None:
        """Remembers servers in `known`, or in the user's own list."""
        self._known = known or KnownServers()

    def capabilities(self) -> Capabilities:
        """Every transport and direction, with samples."""
        return Capabilities(
            "native",
            ("tcp", "udp", "udt", "rbudp", "null"),
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
        return run(parse_target(target), spec, on_event, should_stop, self._known)


def run(
    target: Target,
    spec: RunSpec,
    on_event: EventSink,
    should_stop: StopQuestion,
    known: KnownServers,
) -> RunResult:
    """Runs `spec` towards `target`; see `NativeTool.run`."""
    right = find_right(target, known)
    handle = checked(_native.start_run, right.to_json(), json.dumps(spec))
    follower = _Follower(handle, on_event, first_contact=right.pin is None)
    try:
        record = follower.follow(should_stop)
    finally:
        handle.abort()
    if right.pin is None and follower.server_key is not None:
        known.remember_key(target.address, follower.server_key)
    if target.pin is None and follower.server_key not in (None, right.pin):
        record = with_mend(record, right)
    return RunResult(record, follower.samples(), follower.mover())


class _Follower:
    """Follows one run to its record."""

    def __init__(self, handle: _native.Run, on_event: EventSink, first_contact: bool) -> None:
        self._handle = handle
        self._first_contact = first_contact
        self._on_event = on_event
        self._rows: list[Samples] = []
        self._mover: list[Samples] = []
        self.server_key: str | None = None

    def follow(self, should_stop: StopQuestion) -> RunRecord:
        """Polls to the end; asks before each slice whether to stop, and passes a wish on once."""
        asked = Stop.GO_ON
        while True:
            wanted = should_stop()
            if wanted > asked:
                asked = wanted
                (self._handle.abort if wanted is Stop.NOW else self._handle.stop)()
            event = checked(self._handle.poll, _POLL_S)
            if event is None:
                continue
            kind, text, columns = event
            if kind == "done":
                record: RunRecord = json.loads(text)
                return record
            self._tell(kind, text, columns)

    def _tell(self, kind: str, text: str, columns: _native.Columns | None) -> None:
        if kind == "progress":
            return
        if columns is not None and kind == "mover_samples":
            self._mover.append(_arrays(columns))
            return
        if columns is not None:
            self._rows.append(_arrays(columns))
            self._on_event(Event(kind, samples=self._rows[-1]))
            return
        told = _as_text(text)
        self._on_event(Event(kind, told))
        if kind == "server_key":
            self.server_key = told
            if self._first_contact:
                self._on_event(Event("notice", f"first contact, its key is remembered: {told}"))

    def samples(self) -> Samples:
        """All rows so far, as one array per column."""
        return _joined(self._rows)

    def mover(self) -> Samples:
        """All samples of the files of a copy; no column for other runs."""
        return _joined(self._mover) if self._mover else {}


def _as_text(payload: str) -> str:
    value = json.loads(payload)
    return value if isinstance(value, str) else ""


def _arrays(columns: _native.Columns) -> Samples:
    import numpy as np

    return {name: np.frombuffer(columns.column(name), dtype="<i8") for name in columns.names()}


def _joined(parts: list[Samples]) -> dict[str, npt.NDArray[np.int64]]:
    import numpy as np

    from farline.spec._types import SAMPLE_COLUMNS

    names: Iterable[str] = parts[0] if parts else SAMPLE_COLUMNS
    empty = np.zeros(0, dtype=np.int64)
    return {name: np.concatenate([empty, *(part[name] for part in parts)]) for name in names}


def with_mend(record: RunRecord, target: Target) -> RunRecord:
    """A server with another key than the remembered one: says how to forget that one."""
    error = record.get("error")
    if not error or error["kind"] != AuthError.kind or target.pin is None:
        return record
    mend = f"farline trust --forget {target.address}"
    message = f"{error['message']}; if the server was set up anew: {mend}"
    return {**record, "error": {**error, "message": message}}


def error_of(result: RunResult) -> FarlineError | None:
    """The error a failed run carries, as an exception to raise; None if it did not fail."""
    error = result.record.get("error")
    if result.record["status"] != "failed" or error is None:
        return None
    return from_failure(error)
