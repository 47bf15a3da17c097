"""One run whole: run it, sum it up, judge it, keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from farline.findings.verdict import verdict
from farline.profiles.summary import summarise
from farline.spec._types import RunRecord, RunSpec, Verdict
from farline.spec.path_watch import PathSeen, PathWatch
from farline.store.entry import RunBundle
from farline.tools import EventSink, RunResult, StopQuestion, Tool, ignore_event, never_stop
from farline.tools.native import NativeTool

if TYPE_CHECKING:
    from farline.tools import Samples


Judge = Callable[[RunRecord, "Samples"], Verdict]
"""Says what limited a run, from its record and samples."""


class Keeper(Protocol):
    """What a store must do for a run: keep it. `farline.store.Store` does."""

    def append(self, run: RunBundle) -> object:
        """Keeps one run."""


@dataclass(frozen=True)
class Measured:
    """A record with summary and verdict, and the samples behind them."""

    record: RunRecord
    samples: Samples
    mover: Samples = field(default_factory=dict)
    """Samples of the files of a copy."""


def came_about(record: Mapping[str, Any]) -> bool:
    """Whether anything ran: a failure before the first stream says nothing about the path."""
    return record["status"] != "failed" or bool(record["streams"])


def keep_all(_record: Mapping[str, Any]) -> bool:
    """Keeps every run."""
    return True


def measure(
    target: str,
    spec: RunSpec | Mapping[str, Any],
    store: Keeper | None = None,
    on_event: EventSink = ignore_event,
    should_stop: StopQuestion = never_stop,
    tool: Tool | None = None,
    *,
    campaign: str | None = None,
    labels: Mapping[str, Any] | None = None,
    keep: Callable[[Mapping[str, Any]], bool] = keep_all,
    path: PathWatch | None = None,
    judge: Judge | None = None,
) -> Measured:
    """Runs `spec` towards `target`; adds summary and verdict, and keeps all in `store`.

    The verdict is `judge`'s, or that of `explain.verdict` if absent.

    With `path` the record says which emulated path it went over and how far that can be trusted.

    A run that failed or was stopped comes back as a record that says so, and is
    kept like any other for which `keep` says yes.

    Raises:
        FarlineError: when no run came about (bad target or spec), or the store failed.
    """
    mark = path.start() if path is not None else None
    result = (tool or NativeTool()).run(target, cast(RunSpec, spec), on_event, should_stop)
    seen = path.finish(mark, result.record["server_address"]) if path is not None else None
    measured = summed_up(result, seen, judge)
    if store is not None and keep(measured.record):
        keep_run(store, measured, seen, campaign=campaign, labels=labels)
    return measured


def summed_up(
    result: RunResult, seen: PathSeen | None = None, judge: Judge | None = None
) -> Measured:
    """What a run came to, with summary and verdict."""
    raw = _over_path(result.record, seen)
    record: RunRecord = {
        **raw,
        "summary": summarise(raw, result.samples),
        "verdict": (judge or verdict)(raw, result.samples),
    }
    return Measured(record, result.samples, result.mover)


def keep_run(
    store: Keeper,
    measured: Measured,
    seen: PathSeen | None,
    *,
    campaign: str | None = None,
    labels: Mapping[str, Any] | None = None,
) -> None:
    """Keeps it with its samples and those of the links that it went over."""
    links = seen.links if seen is not None else None
    mover = measured.mover or None
    run = RunBundle(measured.record, measured.samples, campaign, labels, links, mover)
    store.append(run)


def _over_path(record: RunRecord, seen: PathSeen | None) -> RunRecord:
    return record if seen is None else {**record, "path": seen.path}
