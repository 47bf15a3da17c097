"""One run as a job: asked again while the server is busy for a moment, summed up, judged, kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from farline.campaign.measure import Keeper, Measured, came_about, keep_run, summed_up
from farline.errors import FarlineError, InterruptedRun, from_failure
from farline.tools import SteppedTool, StopQuestion, never_stop
from farline.tools.events import RetryScheduled
from farline.tools.job import Job, pause
from farline.tools.native import NativeTool

if TYPE_CHECKING:
    from farline.campaign.measure import Judge
    from farline.spec._types import RunSpec
    from farline.spec.path_watch import PathWatch
    from farline.tools.events import Steps

BUSY_TRIES = 3
"""Times that a server is asked again that had no place for a connection."""
LONGEST_BUSY_S = 5.0
"""Longest wait for that; a server whose sessions take longer is left to the user."""


@dataclass(frozen=True)
class ProbeResult:
    """What a run came to."""

    measured: Measured | None
    """Record with summary and verdict, and samples; None where no run came about."""
    error: FarlineError | None
    """Why it is not complete."""

    @property
    def exit_code(self) -> int:
        """0 for a complete run, else that of the error."""
        return 0 if self.error is None else self.error.exit_code

    def checked(self) -> Measured:
        """What was measured.

        Raises:
            FarlineError: what the run failed with.
        """
        if self.error is not None or self.measured is None:
            raise self.error or InterruptedRun("stopped")
        return self.measured


class ProbeJob(Job[ProbeResult]):
    """A run of `spec` towards `target`, kept in `store` if it came about."""

    def __init__(
        self,
        target: str,
        spec: RunSpec | Mapping[str, Any],
        store: Keeper | None = None,
        *,
        labels: Mapping[str, Any] | None = None,
        path: PathWatch | None = None,
        judge: Judge | None = None,
        busy_tries: int = BUSY_TRIES,
        tool: SteppedTool | None = None,
        should_stop: StopQuestion = never_stop,
    ) -> None:
        """Prepares; nothing is begun. `path` watches an emulated path, `judge` gives the verdict.

        A server that is busy for a moment is asked again so many times.
        `farline.campaign.settings.sampled_spec` makes a spec whole.
        """
        super().__init__(should_stop)
        self._target, self._spec = target, cast("RunSpec", spec)
        self._store, self._labels = store, labels
        self._path, self._judge = path, judge
        self._busy_tries = busy_tries
        self._tool = tool or NativeTool()

    def _failed(self, error: FarlineError) -> ProbeResult:
        return ProbeResult(None, error)

    def _work(self) -> Steps[ProbeResult]:
        tried = 0
        while True:
            measured = yield from self._run()
            error = run_error(measured.record)
            wait_s = busy_wait_s(measured.record, tried)
            if error is None or wait_s is None or tried >= self._busy_tries:
                break
            tried += 1
            yield RetryScheduled(error, wait_s)
            if not (yield from pause(wait_s, self._should_stop)):
                break
        return ProbeResult(measured, error)

    def _run(self) -> Steps[Measured]:
        mark = self._path.start() if self._path is not None else None
        result = yield from self._tool.steps(self._target, self._spec, self._should_stop)
        address = result.record["server_address"]
        seen = self._path.finish(mark, address) if self._path is not None else None
        measured = summed_up(result, seen, self._judge)
        if self._store is not None and came_about(measured.record):
            keep_run(self._store, measured, seen, labels=self._labels)
        return measured


def run_error(record: Mapping[str, Any]) -> FarlineError | None:
    """What went wrong; a run stopped without a reason was interrupted."""
    if record["status"] == "complete":
        return None
    error = record.get("error")
    return InterruptedRun("stopped") if error is None else from_failure(error)


def busy_wait_s(record: Mapping[str, Any], tried: int) -> float | None:
    """Seconds after which a server that was busy for a moment is asked again; None for no more."""
    error = record.get("error") or {}
    if error.get("kind") != "busy" or tried >= BUSY_TRIES:
        return None
    wait_s = max(float(2**tried), error.get("retry_after_s") or 0.0)
    return wait_s if wait_s <= LONGEST_BUSY_S else None
