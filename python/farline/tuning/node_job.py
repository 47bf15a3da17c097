"""The search over streams, stripes and nodes as a job: asks a sampler, keeps what it found.

The decisions are `NodeSearch`'s (Yildirim and Kosar 2011); this shell keeps time. What is kept says
which settings were tried, why each phase ended, and what a node can carry.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from farline.errors import FarlineError, InterruptedRun, UsageError
from farline.models.end_to_end import NodeSetting
from farline.store.paths.node_choices import NodeChoice, write_node_choice
from farline.tools import Stop, StopQuestion, never_stop
from farline.tools.events import PathKnown, SampleBegun, SampleTaken
from farline.tools.job import Job
from farline.tuning.job import BUDGET_S, SHORTEST_S
from farline.tuning.nodes import MOST_SAMPLES, NodeSearch

if TYPE_CHECKING:
    from pathlib import Path

    from farline.store import Store
    from farline.tools.events import Steps

FRAME_SHARE = 0.94
"""Share of an interface's speed that frames leave to TCP."""
DEFAULT = NodeSetting(1, 1, 1)


@dataclass(frozen=True, slots=True)
class NodeSurroundings:
    """What is known of two groups of nodes before anything is tried; bit/s, None is unknown."""

    most_nodes: int
    """Nodes of the smaller side."""
    rtt_ms: float | None
    nic_bps: float | None
    process_bps: float | None
    """What one process with one stream carries where no network is between its ends."""
    sample_s: float


class NodeSampler(Protocol):
    """Runs a setting on nodes. Made by those who can start programs there."""

    @property
    def network(self) -> str:
        """What the nodes together are called."""

    def look(self, should_stop: StopQuestion) -> Steps[NodeSurroundings]:
        """Reaches the nodes, and measures what one carries.

        Raises:
            FarlineError: when they cannot be reached.
        """

    def sample(
        self, setting: NodeSetting, seconds: float, should_stop: StopQuestion
    ) -> Steps[float]:
        """Throughput of all nodes together with a setting, bit/s.

        Raises:
            FarlineError: when a run on a node failed.
        """

    def close(self) -> None:
        """Ends what was started for it."""


@dataclass(frozen=True, slots=True)
class NodeTuneResult:
    """What the search came to."""

    choice: NodeChoice | None
    around: NodeSurroundings | None
    error: FarlineError | None = None
    kept: Path | None = None

    @property
    def exit_code(self) -> int:
        """0 with a choice, else that of the error."""
        return 0 if self.error is None else self.error.exit_code

    def checked(self) -> NodeChoice:
        """The choice.

        Raises:
            FarlineError: what the search failed with.
        """
        if self.error is not None or self.choice is None:
            raise self.error or InterruptedRun("stopped before anything was chosen")
        return self.choice


class NodeTuneJob(Job[NodeTuneResult]):
    """Finds how many streams, stripes and nodes it takes; events as those of `TuneJob`."""

    def __init__(
        self,
        sampler: NodeSampler,
        most_nodes: int,
        store: Store | None = None,
        *,
        budget_s: float = BUDGET_S,
        most_samples: int = MOST_SAMPLES,
        should_stop: StopQuestion = never_stop,
    ) -> None:
        """Prepares; nothing is begun.

        Raises:
            UsageError: for fewer nodes than 1, or a budget below the shortest sample.
        """
        super().__init__(should_stop)
        if most_nodes < 1 or budget_s < SHORTEST_S:
            raise UsageError("nodes, budget: allow at least 1 node and 1 s")
        self._sampler, self._store = sampler, store
        self._most_nodes, self._most_samples, self._budget_s = most_nodes, most_samples, budget_s
        self._around: NodeSurroundings | None = None

    def _failed(self, error: FarlineError) -> NodeTuneResult:
        return NodeTuneResult(None, self._around, error)

    def _work(self) -> Steps[NodeTuneResult]:
        with closing(self._sampler):
            around = self._around = yield from self._sampler.look(self._should_stop)
            if around.most_nodes < self._most_nodes:
                raise UsageError(
                    f"--nodes {self._most_nodes}: {self._sampler.network} has {around.most_nodes} "
                    "on a side; ask for fewer, or make it larger"
                )
            known = f"{self._most_nodes} nodes a side"
            yield PathKnown(around.rtt_ms, known, DEFAULT.label, ())
            nic = None if around.nic_bps is None else FRAME_SHARE * around.nic_bps
            search = NodeSearch(self._most_nodes, nic, most_samples=self._most_samples)
            yield from self._sampled(search, around)
        choice = self._choice(search, around)
        kept = None
        if self._store is not None:
            kept = write_node_choice(self._store.layout.paths, self._store.layout.temp, choice)
        return NodeTuneResult(choice, around, kept=kept)

    def _sampled(self, search: NodeSearch, around: NodeSurroundings) -> Steps[None]:
        began = time.monotonic()
        while (setting := search.next()) is not None:
            left = self._budget_s - (time.monotonic() - began)
            is_over = search.samples and around.sample_s > left
            if self.stop_wanted is not Stop.GO_ON or is_over:
                break
            number = len(search.samples) + 1
            yield SampleBegun(number, setting.label, around.sample_s)
            rate_bps = yield from self._sampler.sample(setting, around.sample_s, self._should_stop)
            search.learn(rate_bps)
            yield SampleTaken(
                number, setting.label, setting.all_streams, rate_bps, around.sample_s, 0, None
            )
        if not search.samples:
            raise InterruptedRun("stopped before the first sample ended")

    def _choice(self, search: NodeSearch, around: NodeSurroundings) -> NodeChoice:
        rates = {one.setting.label: one.rate for one in search.samples}
        phases = ("streams", "stripes", "nodes")
        reasons: dict[str, str] = {
            name: search.reasons[name] for name in phases if name in search.reasons
        }
        if reasons.get("nodes") == "budget" and search.answer.nodes == self._most_nodes:
            reasons["nodes"] = "cap:nodes"
        if search.next() is not None:
            reasons = {**reasons, "all": "budget"}
        return NodeChoice(
            network=self._sampler.network, made_s=time.time(), label=search.answer.label,
            rate_bps=rates[search.answer.label], default=DEFAULT.label,
            default_bps=rates.get(DEFAULT.label), samples=rates, reasons=reasons,
            nodes=self._most_nodes, rtt_ms=around.rtt_ms, nic_bps=around.nic_bps,
            process_bps=around.process_bps,
        )  # fmt: skip
