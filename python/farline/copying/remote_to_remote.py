"""A copy between two other hosts: this one gives the orders, the data go directly.

The host that is reached over ssh and has the sources (or, where these are on a server, takes
them) runs `farline copy --order`, which says that it has started, reads one JSON line on its
standard input, tells what happens in `--json-stream`'s events, each behind its mark, and ends when
its input closes. The ticket of the other end goes through that input: nobody sees it in a list of
processes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from farline.copying.adjusting import refused_by
from farline.copying.connector import Connector, from_home
from farline.copying.event_lines import ADJUST, ORDER_SCHEMA, OVER, READY, event_of
from farline.copying.locations import Endpoints, SshHost, StandingServer
from farline.copying.session import Attempt
from farline.errors import (
    FarlineError,
    InterruptedRun,
    ProtocolError,
    TimeoutFailure,
    UsageError,
    VersionError,
    from_failure,
)
from farline.tools import Stop, StopQuestion
from farline.tools.events import FileSettled
from farline.tools.ssh import RemoteCommand

if TYPE_CHECKING:
    from farline.copying.adjusting import Adjusting
    from farline.spec._types import Adjustment, AdjustRequest
    from farline.tools.events import Event, Steps
    from farline.tools.native import Target
    from farline.tools.ssh_command import SshCommand

SILENT_S = 120.0
"""A host from which nothing has come for so long is given up: ssh alone would wait for ever."""

_POLL_S = 0.1


@dataclass
class RemoteToRemote:
    """Sessions of another host, told of here. Retrying is that host's."""

    ssh: SshCommand
    host: SshHost
    """The host that gets the order."""
    connector: Connector
    """Leads to the other one."""
    endpoints: Endpoints
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What that host is told besides: `retries`, `retry_for_s`, `most_streams`, `tunes`."""
    keeps: bool = False
    """Whether the command on that host stays for further orders."""
    silent_s: float = SILENT_S
    """A host from which nothing has come for so long is given up."""
    _command: RemoteCommand | None = None
    _takes_changes: bool = False
    _takes_questions: bool = False
    """Whether farline on that host does."""
    adjusting: Adjusting | None = None
    is_known: bool = False
    far: str | None = None
    repeat = True

    @property
    def pushes(self) -> bool:
        """Whether the host that gets the order has the sources."""
        return self.endpoints.source_host == self.host

    def attempt(
        self, document: Mapping[str, Any], receipt: Path | None, should_stop: StopQuestion
    ) -> Steps[Attempt]:
        """One order, to its end."""
        if self.adjusting is not None:
            self.adjusting.elsewhere = str(self.host)
        is_whole = False
        try:
            order = self._order(document, (yield from self.connector.open(should_stop)))
            command = yield from self.started(should_stop)
            command.send({**order, "more": True} if self.keeps else order)
            with _lines_to(receipt) as file:
                listener = _Listener(command, file, self.silent_s)
                attempt = yield from listener.listen(should_stop)
            is_whole = listener.is_whole
        except FarlineError as error:
            return Attempt(None, error)
        finally:
            if not (self.keeps and is_whole):
                self.end_command()
        return attempt

    def started(self, should_stop: StopQuestion) -> Steps[RemoteCommand]:
        """The command on that host, which waits for an order.

        Raises:
            FarlineError: when it does not start.
        """
        if self._command is None or not self._command.is_alive:
            self.end_command()
            self._command = RemoteCommand(self.ssh, self.host.target, ["copy", "--order"])
            # A start-up file of the shell there may read what is sent before farline runs.
            ready = yield from self._command.start(should_stop)
            _check_ready(self.host.target, ready)
            self._takes_changes = bool(ready["data"].get("adjusts"))
            self._takes_questions = bool(ready["data"].get("looks"))
            self.ssh = self._command.ssh
        return self._command

    @property
    def answering(self) -> RemoteCommand | None:
        """The command there, where it waits for orders and answers what a node sees."""
        return self._command if self._takes_questions else None

    def adjust(self, request: AdjustRequest) -> list[Adjustment]:
        """Passes a change of the copy under way on; `Adjusted` tells what comes of it. What the
        host cannot do is returned, refused."""
        if self._command is None or not self._takes_changes:
            return refused_by(
                request, f"farline on {self.host.target} cannot change a running copy"
            )
        self._command.send({ADJUST: request})
        return []

    def end_command(self) -> None:
        """Ends the command on that host."""
        if self._command is not None:
            self._command.close()
        self._command = None

    def _order(self, document: Mapping[str, Any], target: Target) -> dict[str, Any]:
        sources, destination = self.endpoints.sources, self.endpoints.destination
        if self.pushes:
            ours, theirs = [_at_home(path) for path in sources], self.connector.path(destination)
        else:
            ours, theirs = [self.connector.path(path) for path in sources], _at_home(destination)
        return {
            "schema": ORDER_SCHEMA,
            "target": json.loads(target.to_json()),
            "pushes": self.pushes,
            "sources": ours,
            "destination": theirs,
            "document": document,
            "names": {"other": self.connector.names().other, "own": self.host.target},
            **self.settings,
        }

    def close(self) -> None:
        """Ends both ends, where they were started for this."""
        self.end_command()
        self.connector.close()


def _at_home(path: str) -> str:
    """A path on the host that gets the order, which is in its home folder then."""
    return path if path.startswith("/") else from_home(path, ".")


def ordering_host(ends: Endpoints) -> SshHost:
    """The host that gets the order: the one with the sources, if ssh leads there.

    Raises:
        UsageError: when both ends are servers: neither can be told to begin.
    """
    for host in (ends.source_host, ends.destination_host):
        if isinstance(host, SshHost):
            return host
    assert isinstance(ends.source_host, StandingServer)
    raise UsageError(
        f"{ends.source_host} and {ends.destination_host}: both are servers, so neither can start "
        "the copy; name one of them as [user@]host:path"
    )


def _lines_to(receipt: Path | None) -> AbstractContextManager[TextIO | None]:
    return nullcontext() if receipt is None else receipt.open("w", encoding="utf-8")


@dataclass
class _Listener:
    """Reads the events of one order, and passes a wish to stop on by closing its input."""

    command: RemoteCommand
    receipt: TextIO | None
    silent_s: float = SILENT_S
    is_whole: bool = False
    """Whether the order has come to its end: another may follow."""
    failure: FarlineError | None = None
    heard_s: float = field(default_factory=time.monotonic)

    def listen(self, should_stop: StopQuestion) -> Steps[Attempt]:
        """To the `end`; a command that ends without one has failed."""
        while (wanted := should_stop()) is not Stop.NOW:
            if wanted is not Stop.GO_ON:
                self.command.end_input()
            try:
                event = self.command.line(_POLL_S)
            except FarlineError as error:
                return Attempt(None, self.failure or error)
            if event is None:
                self._check_silence()
                yield None
                continue
            self.heard_s = time.monotonic()
            if event.get("event") == OVER:
                self.is_whole = True
                return Attempt(None, self.failure or InterruptedRun("stopped"))
            record, told = self._taken(event)
            if record is not None:
                self.is_whole = True
                return Attempt(record, self._error(record))
            yield told
        return Attempt(None, InterruptedRun("stopped immediately"))

    def _check_silence(self) -> None:
        if time.monotonic() - self.heard_s > self.silent_s:
            raise TimeoutFailure(
                f"{self.command.target}: no message for {self.silent_s:g} s from the copy on that "
                "host; the ssh connection to it may be broken"
            )

    def _taken(self, line: Mapping[str, Any]) -> tuple[Any, Event | None]:
        try:
            return self._take(line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProtocolError(
                f"{self.command.target}: invalid event: {line.get('event')!r}: {error!r}"
            ) from None

    def _take(self, line: Mapping[str, Any]) -> tuple[Any, Event | None]:
        """One line: the record, if it is the last, and the event that it tells, if any."""
        name, data = line.get("event"), line.get("data")
        if not isinstance(data, dict):
            raise ProtocolError(f"{self.command.target}: an event without data: {name!r}")
        if name == "end":
            return _record_of(data), None
        if name == "error":
            self.failure = from_failure(data)
        event = event_of(str(name), data)
        if not isinstance(event, FileSettled):
            return None, event
        if self.receipt is not None:
            self.receipt.write(json.dumps(data) + "\n")
        return None, None

    def _error(self, record: Mapping[str, Any]) -> FarlineError | None:
        if record["status"] == "complete":
            return None
        failure = record.get("error")
        return InterruptedRun("stopped") if failure is None else from_failure(failure)


def _record_of(data: Mapping[str, Any]) -> Any:
    record = data["farline"]
    if not isinstance(record, dict) or not isinstance(record["status"], str):
        raise ValueError("no record")
    return record


def _check_ready(target: str, event: Mapping[str, Any]) -> None:
    data = event.get("data")
    schema = data.get("schema") if isinstance(data, dict) else None
    if event.get("event") != READY or schema != ORDER_SCHEMA:
        raise VersionError(
            f"{target}: farline on that host accepts orders of version {schema}, but this host "
            f"sends version {ORDER_SCHEMA}: install the same version on both hosts"
        )
