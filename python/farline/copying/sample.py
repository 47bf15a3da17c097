"""A sample for an estimate: the copy itself, for a moment.

Nothing is sent for the sample alone: what has arrived is kept, and the copy continues there.
"""

from __future__ import annotations

import time
from pathlib import Path

from farline.copying.job import CopyJob
from farline.copying.locations import Endpoints
from farline.copying.request import CopyRequest
from farline.errors import InterruptedRun, SystemFailure, UsageError
from farline.tools import Stop, StopQuestion, never_stop
from farline.tools.events import Progress

LEAST_S, MOST_S = 0.5, 600.0
"""Shorter ones end before TCP is up to speed on a long path, longer ones are copies."""


def take_sample(
    ends: Endpoints,
    seconds: float,
    store_path: Path | None = None,
    should_stop: StopQuestion = never_stop,
) -> str:
    """Copies for `seconds`, counted from the first report of progress; the run in the store.

    Raises:
        UsageError: for a time out of range.
        InterruptedRun: when somebody stopped it.
        FarlineError: when the copy failed, or its run could not be kept.
    """
    if not LEAST_S <= seconds <= MOST_S:
        raise UsageError(
            f"--sample: {seconds:g}s is out of range; allowed: {LEAST_S:g}s to {MOST_S:g}s"
        )
    request = CopyRequest(ends, store_path=store_path, retry_for_s=0.0, retries=0)
    job = CopyJob(request, should_stop=should_stop)
    until_s = float("inf")
    for event in job:
        now_s = time.monotonic()
        if isinstance(event, Progress):
            until_s = min(until_s, now_s + seconds)
        if now_s >= until_s and job.stop_wanted is Stop.GO_ON:
            job.cancel()
    result = job.wait()
    if should_stop() is not Stop.GO_ON:
        raise InterruptedRun("the sample was interrupted; what arrived is kept")
    if result.error is not None and not isinstance(result.error, InterruptedRun):
        raise result.error
    if result.kept_run is None:
        raise SystemFailure(
            "the sample's run is not in the store, so nothing can be learned from it"
        )
    return result.kept_run
