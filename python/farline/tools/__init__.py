"""Tools that can be driven: each turns a spec into a run and a run into a record.

What it does: one file per tool. `native` is farline's own engine; tools of
other makers are processes whose output is parsed. All answer to the same
protocol, `Tool`, so a campaign does not know which one it drives.

What it must not do: keep results, judge them, print, or decide what to run next.

In: a target, a run spec, a sink for events, a question whether to stop. Out:
events of the types in `events`, and a `RunResult`: the record (`RunRecord`,
plain JSON) and the samples as columns of 64-bit integers, one numpy array each.
Failures are `farline.errors`.

Start with `Tool` below, then `native.RunFollower`, which follows every run and
copy; `known_servers` remembers server keys and tickets between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from farline.spec._types import RunRecord, RunSpec
    from farline.tools.events import Event, Steps

    Samples = Mapping[str, npt.NDArray[np.int64]]


class Stop(IntEnum):
    """Whether a run should end, and how."""

    GO_ON = 0
    GRACEFULLY = 1
    NOW = 2


@dataclass(frozen=True)
class Capabilities:
    """What a tool can do; a campaign asks before it plans."""

    name: str
    transports: tuple[str, ...]
    directions: tuple[str, ...]
    samples: bool


@dataclass(frozen=True)
class RunResult:
    """A record with its samples: one array per column, all of one length.

    `mover` are the samples of the files of a copy; other runs have none.
    """

    record: RunRecord
    samples: Samples
    mover: Samples = field(default_factory=dict)


EventSink = Callable[["Event"], None]
StopQuestion = Callable[[], Stop]


class Tool(Protocol):
    """A data mover or tester that can be driven."""

    def capabilities(self) -> Capabilities:
        """What it can do."""

    def run(
        self, target: str, spec: RunSpec, on_event: EventSink, should_stop: StopQuestion
    ) -> RunResult:
        """One run, to its end or until `should_stop` says so."""


class SteppedTool(Tool, Protocol):
    """One whose runs can be told event by event."""

    def steps(self, target: str, spec: RunSpec, should_stop: StopQuestion) -> Steps[RunResult]:
        """The run of `run`, an event at a time."""


def ignore_event(_event: Event) -> None:
    """A sink for events nobody watches."""


def never_stop() -> Stop:
    """The answer of one who waits for the end."""
    return Stop.GO_ON
