"""One session of a copy: an attempt to bring all of it to its end.

`DirectSessions` drives the engine of this process. A copy between two other hosts is driven by
`remote_to_remote.RemoteToRemote`, which answers to the same protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from farline.copying.connector import Connector, ReverseConnector
from farline.copying.stream_choice import StreamChoice
from farline.errors import FarlineError, InterruptedRun, from_failure
from farline.logs import Log
from farline.tools.events import (
    Adjusted,
    Listening,
    Notice,
    NoticeKind,
    SessionBegun,
    SessionEnded,
    Stages,
)
from farline.tools.native import RunFollower

if TYPE_CHECKING:
    from farline.copying.adjusting import Adjusting
    from farline.spec._types import RunRecord
    from farline.tools import StopQuestion
    from farline.tools.events import Columns, Steps
    from farline.tools.native import Contact, Target

_LOG = Log(__name__)

POLL_S = 0.05


@dataclass(frozen=True)
class Attempt:
    """What one session came to; without a record nothing was begun, and `error` says why."""

    record: RunRecord | None
    error: FarlineError | None
    samples: Columns = field(default_factory=dict)
    file_samples: Columns = field(default_factory=dict)


class Sessions(Protocol):
    """Makes one attempt after the other; those that `repeat` begin broken ones again themselves."""

    repeat: bool
    adjusting: Adjusting | None
    """What changes while they run, where somebody may change it."""
    is_known: bool
    """Whether the number of streams comes from what was found for the path."""
    far: str | None
    """The other host as it is addressed, once it is known."""

    def attempt(
        self, document: Mapping[str, Any], receipt: Path | None, should_stop: StopQuestion
    ) -> Steps[Attempt]:
        """One session with this spec document, to its end or until somebody stops it."""

    def close(self) -> None:
        """Ends what was started for it."""


@dataclass(eq=False, repr=False)
class DirectSessions:
    """Sessions between this process and the other end of a connector."""

    connector: Connector
    sources: tuple[str, ...]
    destination: str
    pushes: bool
    on_loopback: bool = False
    most_streams: int | None = None
    """Most streams for which there are ports at the other end."""
    paths: Path | None = None
    """Folder of the settings that were found for paths before; None uses none."""
    single_port: bool = False
    """Whether control and data share one port of the other end."""
    adjusting: Adjusting | None = None
    is_known: bool = False
    far: str | None = None
    repeat = False

    def attempt(
        self, document: Mapping[str, Any], receipt: Path | None, should_stop: StopQuestion
    ) -> Steps[Attempt]:
        """One session; what it failed with stands in the attempt."""
        choice = StreamChoice(
            self.connector,
            self.sources,
            self.pushes,
            self.on_loopback,
            self.most_streams,
            self.paths,
            self.single_port,
        )
        try:
            target = yield from self.connector.open(should_stop)
            contact = choice.contact(document, target)
            spec = self._spec(document)
            for reason in choice.settle(spec, contact):
                _LOG.debug("streams and rate chosen", reason=reason)
                passed_over = reason == choice.passed_over
                yield Notice(NoticeKind.NOT_USED if passed_over else NoticeKind.CHOICE, reason)
            self.is_known, self.far = choice.is_tuned, target.host
            if self.adjusting is not None:
                spec = self.adjusting.applied(spec)
            run = self._begun(target, spec, None if receipt is None else str(receipt), contact)
        except FarlineError as error:
            return Attempt(None, self.connector.names().error(error))
        try:
            if self.adjusting is not None:
                self.adjusting.begun(run)
            yield SessionBegun()
            followed = _followed(run, should_stop, self.adjusting)
            record = self.connector.names().record((yield from followed))
        finally:
            if self.adjusting is not None:
                self.adjusting.ended()
            run.close()
        return Attempt(record, self._error(record), run.samples, run.file_samples)

    def _begun(
        self, target: Target, spec: dict[str, Any], receipt: str | None, contact: Contact | None
    ) -> RunFollower:
        if not isinstance(self.connector, ReverseConnector):
            return RunFollower(target, spec, receipt=receipt, contact=contact)
        run = RunFollower(target, spec, receipt=receipt, listen=self.connector.listen_address())
        while run.record is None:
            if isinstance(event := run.poll(POLL_S), Listening):
                self.connector.listens(event.address)
                break
        return run

    def _spec(self, document: Mapping[str, Any]) -> dict[str, Any]:
        copy = dict(document.get("copy") or {})
        path = self.connector.path
        if self.pushes:
            copy |= {"sources": list(self.sources), "destination": path(self.destination)}
        else:
            copy |= {"sources": list(map(path, self.sources)), "destination": self.destination}
        return {**document, "direction": "forward" if self.pushes else "reverse", "copy": copy}

    def _error(self, record: RunRecord) -> FarlineError | None:
        failure = record.get("error")
        if record["status"] == "complete":
            return None
        if failure is None:
            return InterruptedRun("stopped")
        error = from_failure(failure)
        # Only where nothing ran can the connection be what was wrong.
        advice = self.connector.advice(error) if not record["streams"] else ""
        return error.reworded(error.message + advice)

    def close(self) -> None:
        """Closes the connector."""
        self.connector.close()


def _followed(
    run: RunFollower, should_stop: StopQuestion, adjusting: Adjusting | None
) -> Steps[RunRecord]:
    """Follows one session to its record. That it ended is told by whoever keeps the record."""
    for event in run.events(should_stop, POLL_S):
        if adjusting is not None and isinstance(event, Adjusted | Stages):
            adjusting.note(event)
        if not isinstance(event, SessionEnded):
            yield event
    assert run.record is not None
    return run.record
