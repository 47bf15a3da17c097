"""A copy between two other hosts: this one gives the orders, the data go directly.

The host that is reached over ssh and has the sources (or, where these are on a server, takes
them) runs `farline copy --order`, which says that it has started, reads one JSON line on its
standard input, tells what happens in `--json-stream`'s events, each behind its mark, and ends when
its input closes. The ticket of the other end goes through that input: nobody sees it in a list of
processes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from farline.cli.copy.place import Ends, ServerPlace, SshHost
from farline.cli.copy.session import Attempt, Watcher
from farline.cli.copy.way import Way, from_home, tell_waits
from farline.errors import (
    FarlineError,
    InterruptedRun,
    ProtocolError,
    TimeoutFailure,
    UsageError,
    VersionError,
    from_failure,
)
from farline.spec.json_text import read_object
from farline.tools import Stop, StopQuestion
from farline.tools.copy_run import CopyEvent

if TYPE_CHECKING:
    from farline.tools.native import Target
    from farline.tools.ssh import RemoteCommand, SshCommand

ORDER_SCHEMA = 1
MAX_ORDER_BYTES = 1 << 20

READY = "ready"
"""The event by which a host says that it waits for its order."""

ALIVE = "alive"
"""The event by which it says every `ALIVE_S` that it goes on, whatever the copy waits for."""

ALIVE_S = 10.0
SILENT_S = 120.0
"""A host from which nothing has come for so long is given up: ssh alone would wait for ever."""

ORDER_S = 60.0
"""So long a host waits for its order."""

_POLL_S = 0.1


@dataclass
class Ordered:
    """Sessions of another host, told of here. Retrying is that host's."""

    ssh: SshCommand
    host: SshHost
    way: Way
    ends: Ends
    manner: Mapping[str, Any] = field(default_factory=dict)
    repeats = True

    @property
    def pushes(self) -> bool:
        """Whether the host that gets the order has the sources."""
        return self.ends.source == self.host

    def attempt(
        self,
        document: Mapping[str, Any],
        receipt: Path | None,
        watcher: Watcher,
        should_stop: StopQuestion,
    ) -> Attempt:
        """One order, to its end."""
        from farline.tools.ssh import RemoteCommand

        try:
            tell_waits(self.way, _teller(watcher))
            order = self._order(document, self.way.open(should_stop))
            command = RemoteCommand(self.ssh, self.host.target, ["copy", "--order"])
        except FarlineError as error:
            return Attempt(None, error)
        try:
            # A start-up file of the shell there may read what is sent before farline runs.
            _check_ready(self.host.target, command.start(should_stop, _teller(watcher)))
            command.send(order)
            with _lines_to(receipt) as file:
                return _Listener(command, watcher, file).listen(should_stop)
        except FarlineError as error:
            return Attempt(None, error)
        finally:
            command.close()

    def _order(self, document: Mapping[str, Any], target: Target) -> dict[str, Any]:
        sources, destination = self.ends.sources, self.ends.destination
        if self.pushes:
            ours, theirs = [_at_home(path) for path in sources], self.way.path(destination)
        else:
            ours, theirs = [self.way.path(path) for path in sources], _at_home(destination)
        return {
            "schema": ORDER_SCHEMA,
            "target": json.loads(target.to_json()),
            "pushes": self.pushes,
            "sources": ours,
            "destination": theirs,
            "document": document,
            "names": {"other": self.way.names().other, "own": self.host.target},
            **self.manner,
        }

    def close(self) -> None:
        """Ends the other end, where it was started for this."""
        self.way.close()


def _at_home(path: str) -> str:
    """A path on the host that gets the order, which is in its home folder then."""
    return path if path.startswith("/") else from_home(path, ".")


def ordered_ends(ends: Ends) -> SshHost:
    """The host that gets the order: the one with the sources, if ssh leads there.

    Raises:
        UsageError: when both ends are servers: neither can be told to begin.
    """
    for host in (ends.source, ends.target):
        if isinstance(host, SshHost):
            return host
    assert isinstance(ends.source, ServerPlace)
    raise UsageError(
        f"{ends.source} and {ends.target}: both are servers, and neither can be told to begin;"
        " name one of them as [user@]host:path"
    )


class _Nowhere:
    """Takes lines and keeps none."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _lines_to(receipt: Path | None) -> Any:
    return _Nowhere() if receipt is None else receipt.open("w", encoding="utf-8")


@dataclass
class _Listener:
    """Reads the events of one order, and passes a wish to stop on by closing its input."""

    command: RemoteCommand
    watcher: Watcher
    receipt: TextIO | None
    failure: FarlineError | None = None
    heard_s: float = field(default_factory=time.monotonic)

    def listen(self, should_stop: StopQuestion) -> Attempt:
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
                continue
            self.heard_s = time.monotonic()
            if (record := self._taken(event)) is not None:
                return Attempt(record, self._error(record))
        return Attempt(None, InterruptedRun("stopped at once"))

    def _check_silence(self) -> None:
        if time.monotonic() - self.heard_s > SILENT_S:
            raise TimeoutFailure(
                f"{self.command.target}: nothing heard for {SILENT_S:g} s from the copy there;"
                " the connection of ssh to it may be broken"
            )

    def _taken(self, event: Mapping[str, Any]) -> Any:
        try:
            return self._take(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProtocolError(
                f"{self.command.target}: an event that makes no sense:"
                f" {event.get('event')!r}: {error!r}"
            ) from None

    def _take(self, event: Mapping[str, Any]) -> Any:
        """One event; the record, if it is the last."""
        name, data = event.get("event"), event.get("data")
        if not isinstance(data, dict):
            raise ProtocolError(f"{self.command.target}: an event without data: {name!r}")
        if name == "progress":
            self.watcher.event(CopyEvent("progress", progress=data))  # type: ignore[arg-type]
        elif name == "notice":
            self.watcher.event(CopyEvent(str(data.get("kind")), str(data.get("text"))))
        elif name == "file" and self.receipt is not None:
            self.receipt.write(json.dumps(data) + "\n")
        elif name == "error":
            self.failure = from_failure(data)
            if "again_in_s" in data:
                self.watcher.waits(self.failure, float(data["again_in_s"]))
        elif name == "end":
            return _record_of(data)
        return None

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
            f"{target}: farline there takes orders of version {schema}, this one gives version"
            f" {ORDER_SCHEMA}: install the same version on both hosts"
        )


def _teller(watcher: Watcher) -> Callable[[str], None]:
    return lambda text: watcher.event(CopyEvent("notice", text))


def read_order(file: TextIO | None = None) -> dict[str, Any]:
    """The order on standard input.

    Raises:
        ProtocolError: when it is none, or one of another version.
    """
    line = (file or sys.stdin).readline(MAX_ORDER_BYTES)
    try:
        order = read_object(line)
        if order["schema"] != ORDER_SCHEMA:
            raise ValueError(f"version {order['schema']}, allowed is {ORDER_SCHEMA}")
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"--order: no order on standard input ({error})") from None
    return order
