"""The record of a driven run: what farline knows of it, and what the tool says. Nothing else."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from farline.drivers.driver import Driver, Figures, Flow, Task
from farline.drivers.processes import CpuTime, Ended
from farline.drivers.words import told_options
from farline.errors import FarlineError, InterruptedRun
from farline.tools import RunResult
from farline.tools.native import as_arrays, host_facts, version_info
from farline.tools.run_name import new_run_name

if TYPE_CHECKING:
    from farline.spec._types import RunRecord

RECORD_SCHEMA = 1
_UNKNOWN = -1


@dataclass(frozen=True)
class Moved:
    """What a mover brought to its destination, as farline found it there."""

    files: int
    bytes: int
    proof: str
    """`hash`, `size`, or `none` where the destination cannot be seen."""


@dataclass
class Course:
    """What is known of a run so far; filled while it goes on."""

    started_at: datetime.datetime = field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC)
    )
    steal_s: float = field(default_factory=lambda: stolen_s())
    version: str | None = None
    client_words: Sequence[str] = ()
    server_words: Sequence[str] = ()
    ended: Ended | None = None
    server_cpu: CpuTime | None = None
    figures: Figures | None = None
    moved: Moved | None = None
    error: FarlineError | None = None


def stolen_s() -> float:
    """CPU time that the hypervisor gave to others since the machine started (proc(5), stat)."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def result_of(
    known: Driver, task: Task, course: Course, session_s: float, server_address: str
) -> RunResult:
    """The run as any other: its record, and samples where the tool prints intervals."""
    error = course.error
    status = "complete" if error is None else "failed"
    if isinstance(error, InterruptedRun):
        status = "partial"
    record: dict[str, Any] = {
        "schema": RECORD_SCHEMA,
        "run_id": new_run_name(),
        "status": status,
        "started_at": course.started_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "session_s": session_s,
        "run_s": course.ended.wall_s if course.ended is not None else 0.0,
        "server_address": server_address,
        "spec": dict(task.spec),
        "server_notes": [],
        "client": _end(course, course.ended.cpu if course.ended is not None else None),
        "server": _end(course, course.server_cpu),
        "streams": [],
        "driven": _driven(known, task, course),
    }
    if error is not None:
        record["error"] = error.failure()
    samples = course.figures.samples if course.figures is not None else {}
    return RunResult(cast("RunRecord", record), as_arrays(_whole(samples)))


def _whole(samples: Mapping[str, Sequence[int]]) -> Mapping[str, Any]:
    """Every column of samples: -1 is what the tool does not say."""
    from farline.spec._types import SAMPLE_COLUMNS

    rows = max((len(column) for column in samples.values()), default=0)
    return {name: samples.get(name, [_UNKNOWN] * rows) for name in SAMPLE_COLUMNS}


def _end(course: Course, cpu: CpuTime | None) -> dict[str, Any] | None:
    """An end whose CPU time the kernel here counted: what runs elsewhere is not known."""
    if cpu is None or course.ended is None:
        return None
    return {
        "host": host_facts(),
        "version": version_info(),
        "cpu": {
            "user_s": cpu.user_s,
            "system_s": cpu.system_s,
            "wall_s": course.ended.wall_s,
            "steal_s": max(0.0, stolen_s() - course.steal_s),
        },
    }


def _driven(known: Driver, task: Task, course: Course) -> dict[str, Any]:
    """What is of the tool alone."""
    figures, ended = course.figures or Figures(), course.ended
    document: dict[str, Any] = {
        "tool": known.name,
        "version": course.version,
        "told": told_options(known, task.spec),
        "client_command": _without(task.secret, course.client_words),
        "server_command": _without(task.secret, course.server_words),
        "server": str(task.server),
        "exit_code": None if ended is None else ended.exit_code,
        "wall_s": 0.0 if ended is None else ended.wall_s,
        "forward": None,
        "reverse": None,
        **_counts(figures),
        "proof": None if course.moved is None else course.moved.proof,
        "files": None if course.moved is None else course.moved.files,
        "notes": list(figures.notes),
        "output": [] if ended is None or course.error is None else ended.last_words,
    }
    return {**document, **_flows(known, task, course, figures)}


def _counts(figures: Figures) -> dict[str, Any]:
    names = (
        "retransmits", "sent_packets", "lost_packets", "jitter_ns", "min_rtt_us", "mean_rtt_us",
        "congestion_control",
    )  # fmt: skip
    return {name: getattr(figures, name) for name in names}


def _without(secret: str, words: Sequence[str]) -> list[str]:
    return [word.replace(secret, "***") if secret else word for word in words]


def _flows(known: Driver, task: Task, course: Course, figures: Figures) -> dict[str, Any]:
    """What counts of each direction, and what the tool says of it.

    Of a mover what lies at the destination counts, over the wall clock of its client. Of a tester
    its own bytes over its own time count: its wall clock holds set-up and farewell as well.
    """
    found: dict[str, Any] = {}
    for way in ("forward", "reverse"):
        own = figures.flows.get(way)
        counted = _counted(task, course, own, way)
        if counted is not None:
            found[way] = {
                **counted,
                "own_bytes": own.bytes if own is not None else None,
                "own_elapsed_s": own.elapsed_s if own is not None else None,
                "own_rate_bps": own.rate_bps if own is not None else None,
            }
    return found


def _counted(task: Task, course: Course, own: Flow | None, way: str) -> dict[str, Any] | None:
    if course.ended is None:
        return None
    if course.moved is not None:
        if way != task.get("direction", "forward"):
            return None
        return {"bytes": course.moved.bytes, "elapsed_s": course.ended.wall_s}
    if own is None or own.bytes is None:
        return None
    return {"bytes": own.bytes, "elapsed_s": own.elapsed_s or course.ended.wall_s}
