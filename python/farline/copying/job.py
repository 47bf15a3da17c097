"""A copy as a job: asked for, followed event by event, stopped from anywhere, with a result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.copying.adjusting import Adjusting
from farline.copying.connector import connector_to
from farline.copying.exit_code import exit_code
from farline.copying.into_itself import check_not_into_itself
from farline.copying.locations import ThisHost
from farline.copying.record_keeper import RecordKeeper
from farline.copying.request import CopyRequest, listed
from farline.copying.retry import RepeatedSessions, RetryPolicy
from farline.copying.session import Attempt, DirectSessions, Sessions
from farline.copying.steering import Steering
from farline.errors import FarlineError, InterruptedRun, UsageError
from farline.logs import Log
from farline.tools import Stop, StopQuestion, never_stop
from farline.tools.events import (
    DeletionPlanned,
    Event,
    FileSettled,
    Progress,
    SessionBegun,
    SessionEnded,
)
from farline.tools.job import Job

if TYPE_CHECKING:
    from farline.copying.control_socket import ControlSocket
    from farline.copying.live_tuning import MakeTuner
    from farline.copying.receipt_tail import ReceiptTail
    from farline.spec._types import RunRecord
    from farline.tools.events import Steps


_LOG = Log(__name__)

CONTROL_AFTER_S = 0.2
"""Seconds of a session before it listens for changes: a copy of small files is over by then."""


@dataclass(frozen=True, eq=False, repr=False)
class CopyResult:
    """What a copy came to."""

    record: RunRecord | None
    """Record of the last session that began, with summary and verdict; None if none did."""
    error: FarlineError | None
    """Why it is not whole; names that failed stand in the record, and are no error of the copy."""
    kept_run: str | None = None
    """The run in the store."""
    receipt: str | None = None
    """The file that has a line per name."""
    receipt_error: FarlineError | None = None
    """Why that could not be written."""

    @property
    def exit_code(self) -> int:
        """0 if all is there; else as the command ends: 23 for names that failed, say."""
        if self.error is not None:
            return self.error.exit_code
        code = 0 if self.record is None else exit_code(self.record)
        return code or (self.receipt_error.exit_code if self.receipt_error is not None else 0)

    def checked(self) -> CopyResult:
        """Itself.

        Raises:
            FarlineError: what the copy, or the writing of its receipt, failed with.
        """
        if error := self.error or self.receipt_error:
            raise error
        return self


class CopyJob(Job[CopyResult]):
    """Carries out one request: sessions, one after the other, until all is there or no use."""

    def __init__(
        self,
        request: CopyRequest,
        sessions: Sessions | None = None,
        should_stop: StopQuestion = never_stop,
        make_tuner: MakeTuner | None = None,
        listens: bool = True,
    ) -> None:
        """Prepares; nothing is begun. `sessions` are others than follow from the request's ends.

        `should_stop` is asked beside what `cancel` was told. `make_tuner` gives what tunes the
        streams of a copy that lasts; without it they are tuned by another host, or not at all.
        One that `listens` can be changed by `farline adjust`.

        Raises:
            UsageError: for what cannot be.
        """
        super().__init__(should_stop)
        request.check()
        if request.is_local:
            ends, copy = request.endpoints, request.spec.get("copy") or {}
            if request.confirm_deletion:  # the number of names is known later
                copy = {**copy, "delete": 0}
            is_listed = request.name_list is not None
            check_not_into_itself(ends.sources, ends.destination, copy, is_listed)
        self._request = request
        self._sessions = sessions or sessions_for(request)
        self._keeper = _keeper_for(request)
        # What another host repeats by itself is not repeated here as well.
        limits = (0.0, 0) if self._sessions.repeat else (request.retry_for_s, request.retries)
        self._policy = RetryPolicy(*limits)
        self._is_confirmed = False
        self._control: ControlSocket | None = None
        self._listens = self._may_listen = listens
        self._begun_s = 0.0
        self.adjusting = Adjusting(request.most_streams)
        """Changes it while it runs, from any thread."""
        self._sessions.adjusting = self.adjusting
        self._steering = Steering(request, self._sessions, self.adjusting, make_tuner)

    def confirm_deletion(self) -> None:
        """Says yes to `DeletionPlanned`, before the next event is asked for."""
        self._is_confirmed = True

    def _failed(self, error: FarlineError) -> CopyResult:
        return CopyResult(self._keeper.last, error)

    def _work(self) -> Steps[CopyResult]:
        """All of it, with what was started for it ended however it comes out."""
        with ExitStack() as stack:
            stack.callback(self._keeper.close)
            stack.callback(self._sessions.close)
            stack.callback(self._close_control)
            stack.callback(self.adjusting.over)
            document = self._request.document()
            document = stack.enter_context(listed(self._request.name_list, document))
            document = yield from self._confirmed(document)
            repeated = RepeatedSessions(self._sessions, self._policy, self._should_stop, self._kept)
            attempt = yield from self._followed(repeated, document)
            keeper = self._keeper
            has_receipt = keeper.receipt_copy is not None and keeper.receipt_error is None
            return CopyResult(
                keeper.last, attempt.error, keeper.kept_run,
                self._request.receipt if has_receipt else None, keeper.receipt_error,
            )  # fmt: skip

    def _followed(self, repeated: RepeatedSessions, document: dict[str, Any]) -> Steps[Attempt]:
        """The attempts; names that were settled meanwhile come before how far it is."""
        receipt = self._keeper.receipt()
        self._tail: ReceiptTail | None = None
        if receipt is not None and self._request.tell_files:
            from farline.copying.receipt_tail import ReceiptTail

            self._tail = ReceiptTail(receipt)
        steps = repeated.run(document, receipt)
        try:
            while True:
                event = next(steps)
                if isinstance(event, SessionBegun):
                    # What the end needs is imported while the data flow.
                    self._close_control()
                    self._begun_s, self._may_listen = time.monotonic(), self._listens
                    self._keeper.prepare()
                if isinstance(event, Progress):
                    self._open_control()
                    yield from self._settled()
                yield self._steering.marked(event)
                yield from self._steering.note(event)
                self._keeper.meanwhile()
        except StopIteration as end:
            attempt: Attempt = end.value
            return attempt
        finally:
            steps.close()

    def _open_control(self) -> None:
        """Listens for changes from outside, once the session has gone on for a moment."""
        run_id = self.adjusting.run_id
        is_due = time.monotonic() >= self._begun_s + CONTROL_AFTER_S
        if self._control is not None or not (is_due and self._may_listen) or run_id is None:
            return
        from farline.copying.control_socket import ControlSocket

        try:
            self._control = ControlSocket(run_id, self.adjusting)
        except FarlineError as error:
            # The copy goes on; who wants to change it will be told that there is nobody.
            _LOG.debug("no control socket", reason=error.message)
            self._may_listen = False

    def _close_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def _settled(self) -> Iterator[Event]:
        while self._tail is not None and (lines := self._tail.lines()):
            yield from map(FileSettled, lines)

    def _kept(self, attempt: Attempt) -> Iterator[Event]:
        """Keeps a session that has ended; the next one writes its receipt from the beginning."""
        yield from self._settled()
        if self._tail is not None:
            self._tail = type(self._tail)(self._tail.path)
        self._keeper.labels = {**self._keeper.labels, **self._steering.labels()}
        notice = self._keeper.keep(attempt)
        self._steering.learn(attempt)
        if attempt.record is not None and self._keeper.last is not None:
            yield SessionEnded(self._keeper.last)
        if self._keeper.estimate is not None:
            yield self._keeper.estimate.checked
        if notice is not None:
            yield notice

    def _confirmed(self, document: dict[str, Any]) -> Steps[dict[str, Any]]:
        """The document; for a deletion without a count, with the count that was confirmed."""
        copy = document.get("copy", {})
        if not self._request.confirm_deletion:
            return document
        if copy.get("dry_run"):
            return {**document, "copy": {**copy, "delete": 0}}
        look = {**document, "copy": {**copy, "delete": 0, "dry_run": True}}
        found = yield from self._followed(
            RepeatedSessions(self._sessions, self._policy, self._should_stop), look
        )
        report = None if found.record is None else found.record.get("copy")
        if found.error is not None or report is None:
            raise found.error or UsageError("--delete: the dry run reported no number")
        count = report["deleted"]["files"]
        if copy.get("max_delete") is None and count:
            yield DeletionPlanned(count)
            if not self._is_confirmed:
                kind = UsageError if self.stop_wanted is Stop.GO_ON else InterruptedRun
                raise kind("--delete: not confirmed; nothing was changed")
        return {**document, "copy": {**copy, "delete": count}}


def _keeper_for(request: CopyRequest) -> RecordKeeper:
    receipt = None
    if request.receipt is not None:
        from farline.copying.receipt_file import receipt_file

        receipt = receipt_file(request.receipt)
    return RecordKeeper(
        request.store_path, request.keep, receipt, request.tell_files, request.spent_s,
        ends=request.endpoints,
    )  # fmt: skip


def sessions_for(request: CopyRequest) -> Sessions:
    """What makes the sessions between the two ends of a request.

    Raises:
        UsageError: when neither of two hosts can be told to begin.
    """
    if request.is_remote:
        return _remote_to_remote(request)
    ends = request.endpoints
    pushes = isinstance(ends.source_host, ThisHost)
    other, may = (ends.destination_host, "write") if pushes else (ends.source_host, "read")
    connector = connector_to(other, may, request.ssh, request.data_path)
    return DirectSessions(
        connector,
        ends.sources,
        ends.destination,
        pushes,
        request.is_local,
        request.most_streams,
        request.paths,
        single_port=request.data_path.single_port,
    )


def _remote_to_remote(request: CopyRequest) -> Sessions:
    from farline.copying.remote_to_remote import RemoteToRemote, ordering_host
    from farline.tools.ssh_command import SshCommand

    ends = request.endpoints
    host = ordering_host(ends)
    has_sources = host == ends.source_host
    other = ends.destination_host if has_sources else ends.source_host
    settings = {
        "retries": request.retries,
        "retry_for_s": request.retry_for_s,
        "most_streams": request.most_streams,
        "tunes": request.tunes_live,
    }
    ssh = request.ssh or SshCommand()
    connector = connector_to(other, "write" if has_sources else "read", ssh, request.data_path)
    return RemoteToRemote(ssh, host, connector, ends, settings)
