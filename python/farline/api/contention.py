"""`farline.contend`: who shares a line how, alone and together, as a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.api import drawing
from farline.api.job import BackgroundJob, Status
from farline.api.stores import StoreLike, store_at
from farline.campaign.contention.job import ContentionJob, Progress, new_name, seeded
from farline.campaign.contention.journal import (
    ContentionJournal,
    journal_lock,
    new_journal,
    read_journal,
    write_journal,
)
from farline.campaign.contention.order import places
from farline.campaign.contention.outcome import Outcome, outcome_of, outcome_so_far
from farline.campaign.contention.plan import (
    NATIVE,
    ContentionPlan,
    Network,
    load_plan,
    plan_from_document,
)
from farline.campaign.contention.trials import kept_in_store, read_trials
from farline.drivers import DrivenTool, InHost, drivers
from farline.errors import UsageError
from farline.fairness.contest import BACKGROUND, SUBJECT
from farline.spec.user_folders import expanded
from farline.tools.native import NativeTool, parse_target

if TYPE_CHECKING:
    from farline.campaign.contention.job import SharedLine
    from farline.findings.contention import ContentionVerdict
    from farline.plots.contention_values import ContentionData
    from farline.spec.path_watch import PathWatch
    from farline.store import Store
    from farline.testbeds import Host
    from farline.tools import StopQuestion, Tool

ContentionLike = ContentionPlan | Mapping[str, Any] | str | Path
"""A plan, its document (the tables of a plan file), or the name of such a file."""


class Contention(BackgroundJob[Progress]):
    """A fairness measurement. Events say which trial is next and which has ended."""

    def __init__(self, journal: ContentionJournal, target: str | None, store: Store) -> None:
        """Begins or goes on; see `contend`."""
        self.journal, self.name, self.store = journal, journal.name, store
        self._target = target
        self._outcome: Outcome | None = None
        self._last: Progress | None = None
        super().__init__(f"fairness {journal.name}")

    def _work(self) -> Status:
        self._outcome = measure_contention(
            self.journal, self._target, self.store, self._note, self._should_stop
        )
        return "complete"

    def _note(self, progress: Progress) -> None:
        self._last = progress
        self._tell(progress)

    @property
    def outcome(self) -> Outcome:
        """What it came to: contests with their curves, verdicts, expectations of the plan."""
        self._join(None)
        self._checked()
        assert self._outcome is not None
        return self._outcome

    @property
    def verdicts(self) -> Mapping[str, ContentionVerdict]:
        """How each transfer shares, in words, by its name in the plan."""
        return self.outcome.verdicts

    def report(self, folder: str | Path) -> Path:
        """Writes `report.html` and its figures into `folder`; the page's path.

        Raises:
            SystemFailure: when the folder cannot be written.
        """
        return write_contention_report(self.outcome, Path(folder))

    @property
    def progress_line(self) -> str:
        """How many trials are done, in words."""
        if self._last is None:
            return "no trial yet"
        return f"{self._last.done} of {self._last.total} trials done"

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.Contention {self.name}: {self.status}, {self.progress_line}>"

    def _repr_html_(self) -> str:
        """The verdicts, or how far it is, for a notebook."""
        title = f"fairness {self.name}"
        if not self.done:
            return drawing.card(title, [("status", f"running, {self.progress_line}")])
        if self.error is not None:
            return drawing.card(title, [("failed", self.error.message)])
        return drawing.card(
            title, [(name, verdict.line) for name, verdict in self.verdicts.items()]
        )


def contend(
    plan: ContentionLike | None = None,
    *,
    target: str | None = None,
    resume: str | None = None,
    store: StoreLike = None,
) -> Contention:
    """Begins to measure how a transfer shares a line with others; every run is kept in `store`.

    `plan` is the name of a plan file or its tables as a mapping (docs/guide/fairness.md):
    `{"subject": {"udt": {"transport": "udt"}}, "path": {"rate_bps": "100Mbit"}}`. With a table
    `path` the line is emulated; else both sides go to `target`, a host or a ticket. `resume` names
    a measurement that was stopped, or is "last".

    Raises:
        UsageError: when neither or both of `plan` and `resume` are given, or there is no line.
        SpecError: when the plan is not allowed.
    """
    if (plan is None) == (resume is None):
        raise UsageError("give a plan, or the name of a measurement to resume")
    kept = store_at(store)
    if resume is not None:
        return Contention(read_journal(kept, resume), target, kept)
    assert plan is not None
    return Contention(begun_journal(_plan(plan), target, kept), target, kept)


def _plan(plan: ContentionLike) -> ContentionPlan:
    if isinstance(plan, ContentionPlan):
        return plan
    if isinstance(plan, Mapping):
        return plan_from_document(plan)
    return load_plan(expanded(plan))


def begun_journal(plan: ContentionPlan, target: str | None, store: Store) -> ContentionJournal:
    """The journal of a new measurement, written down.

    Raises:
        UsageError: when there is no line, or two.
        SpecError: when the plan does not fit its line.
    """
    check_line(plan, target)
    where = parse_target(target).address if target else f"testbed {_network(plan).testbed}"
    journal = new_journal(new_name(plan), seeded(plan), where)
    write_journal(store, journal)
    return journal


def check_line(plan: ContentionPlan, target: str | None) -> None:
    """Refuses a plan without a line, and one that does not fit its line; nothing is begun.

    Raises:
        UsageError: when there is neither network nor host, or both, or a host is not there.
        SpecError: when a side or a load is not allowed.
    """
    if target is not None and plan.network is not None:
        raise UsageError(
            "an emulated line ([path] or link options) has its own hosts: leave out HOST, or the"
            " options of the line"
        )
    if target is None and plan.network is None:
        raise UsageError(
            "no line to share: name a HOST, or emulate one, such as --link-rate 100Mbit --rtt 10ms"
        )
    if target is not None:
        parse_target(target)
        check_sides(plan, plan.capacity_bps)
        return
    from farline.testbeds.shared_line import check_hosts, line_rate, planned_topology

    topology, link = planned_topology(_network(plan))
    check_hosts(topology, link, _hosts(plan))
    check_sides(plan, line_rate(topology, link) or plan.capacity_bps)


def check_sides(plan: ContentionPlan, capacity_bps: float | None) -> None:
    """Refuses sides and loads that are not allowed on a line of that rate.

    Raises:
        SpecError: with the side or load.
    """
    from farline.campaign.contention.job import spec_of

    for load in plan.load_rates(capacity_bps):
        spec_of(plan.background, plan.lead_s + plan.duration_s, load, capacity_bps)
    for subject in plan.subjects:
        spec_of(subject, plan.duration_s, None, capacity_bps)


def measure_contention(
    journal: ContentionJournal,
    target: str | None,
    store: Store,
    watch: Any,
    should_stop: StopQuestion,
) -> Outcome:
    """Runs what is left of a measurement to its end, in this thread.

    Raises:
        InterruptedRun: when somebody asked for the end; what was done is kept.
        FarlineError: when a side failed for good, or the line cannot be had.
    """
    with (
        journal_lock(store, journal.name),
        _line(journal, target) as line,
    ):
        read = ContentionJob(journal, line, store).run(watch, should_stop)
        store.compact()
    return outcome_of(journal, read)


def complete_outcome(store: Store, journal: ContentionJournal) -> Outcome | None:
    """What a measurement came to, from its records; None while trials are missing."""
    plan = journal.plan
    read = read_trials(kept_in_store(store, journal.name), plan.count_invalid)
    capacity = read.capacity_bps or plan.capacity_bps
    if capacity is None and any(load.endswith("%") for load in plan.loads):
        return None
    wanted = places(plan, plan.load_rates(capacity), journal.seed)
    if not all(place in (read.kept or {}) for place in wanted):
        return None
    return outcome_of(journal, read)


def report_of_contention(
    store: Store, campaign: str, folder: Path, formats: Sequence[str], count_invalid: bool
) -> Path:
    """Writes the page of a fairness measurement.

    Raises:
        UsageError: when there is no such campaign, or no transfer has a whole repetition.
        SystemFailure: when the folder cannot be written.
    """
    journal = read_journal(store, store.campaign_name(campaign))
    outcome = outcome_so_far(store, journal, count_invalid)
    return write_contention_report(outcome, folder, tuple(formats))


def capacity_of_plan(plan: ContentionPlan, target: str | None) -> float | None:
    """Rate of the line that a plan is on: of the emulated link, or as stated."""
    if target is not None or plan.network is None:
        return plan.capacity_bps
    from farline.testbeds.shared_line import line_rate, planned_topology

    topology, link = planned_topology(plan.network)
    return line_rate(topology, link) or plan.capacity_bps


def tool_names() -> tuple[str, ...]:
    """Tools that can run a side: farline, testers, and movers that move from memory to memory."""
    able = ((name, one.abilities) for name, one in drivers().items())
    return (NATIVE, *(name for name, what in able if what.kind == "tester" or what.memory))


def _driven(name: str, client: Host, server: Host, address: str) -> tuple[Tool, str]:
    """Another maker's tool between two hosts of a testbed: its server starts with each run."""
    return DrivenTool(name, server=InHost(server), client=InHost(client)), address


@contextmanager
def _line(journal: ContentionJournal, target: str | None) -> Iterator[SharedLine]:
    """The line of a measurement: emulated, or towards a host."""
    if journal.plan.network is None:
        yield HostLine(target or journal.target)
        return
    from farline.testbeds.shared_line import running_line

    with running_line(journal.plan.network, _hosts(journal.plan), _driven) as line:
        yield line


@dataclass(frozen=True)
class HostLine:
    """A real line: both sides go from here to one host, which alone counts."""

    target: str
    capacity_bps: float | None = None
    link: str | None = None

    def tool(self, side: str, name: str) -> tuple[Tool, str]:
        """What runs a side; servers of other tools must run there already.

        Raises:
            SpecError: for a tool that is not known.
        """
        if name == NATIVE:
            return NativeTool(), self.target
        return DrivenTool(name), parse_target(self.target).host

    def watch(self, side: str) -> PathWatch | None:
        """Nothing watches a real line."""
        return None

    def clock_us(self) -> int | None:
        """No emulator, no clock of one."""
        return None

    def sends(self, side: str, since_us: int) -> bool:
        """Not known here: the tool's own samples say it."""
        return False


def _network(plan: ContentionPlan) -> Network:
    assert plan.network is not None
    return plan.network


def _hosts(plan: ContentionPlan) -> dict[str, tuple[str, str]]:
    network = _network(plan)
    return {SUBJECT: network.subject_hosts, BACKGROUND: network.background_hosts}


def write_contention_report(
    outcome: Outcome, folder: Path, formats: tuple[str, ...] = ("png", "svg")
) -> Path:
    """Writes the page of a measurement; its path.

    Raises:
        UsageError: when no transfer has a whole repetition.
        SystemFailure: when the folder cannot be written.
    """
    from farline.plots.contention_page import write_contention

    if not outcome.contests:
        raise UsageError("no report: no transfer was measured at every load and alone")
    return write_contention(page_data(outcome), folder, formats)


def page_data(outcome: Outcome) -> ContentionData:
    """The values of a page."""
    from importlib.metadata import version

    from farline.plots.contention_values import Asserted, ContentionData
    from farline.plots.plan_text import tables_toml
    from farline.spec.units import counted, rate_human

    plan, names = outcome.journal.plan, outcome.names
    kind = "on the wire" if outcome.on_wire else "of payload at the receivers"
    trials = counted(outcome.trials, "trial")
    return ContentionData(
        title=f"{', '.join(names[name] for name in outcome.contests)} beside {names['background']}",
        made=f"fairness {outcome.journal.name}",
        facts=f"{trials} on {outcome.journal.target}, a line of {rate_human(outcome.capacity_bps)}",
        contests=outcome.contests,
        verdicts=outcome.verdicts,
        names=names,
        background=names["background"],
        flows={subject.name: subject.streams for subject in plan.subjects},
        background_flows=plan.background.streams,
        reference=plan.reference,
        capacity_bps=outcome.capacity_bps,
        kind=kind,
        confidence=plan.confidence,
        asserted=[
            Asserted(expectation_text(one, names), _measured_text(one.value), one.holds)
            for one in outcome.expectations
        ],
        invalid=outcome.invalid,
        plan_text=tables_toml(plan.document()),
        command="farline fairness plan.toml" if plan.network else "farline fairness HOST plan.toml",
        version=version("farline"),
    )


def expectation_text(one: Any, names: Mapping[str, str]) -> str:
    """An expectation in words: `TCP cubic: knee at least 0.4 and at most 0.7`."""
    return f"{names.get(one.subject, one.subject)}: {one.name} {one.bounds.text}"


def _measured_text(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"
