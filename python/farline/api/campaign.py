"""`farline.profile`: a campaign over a grid of settings, as a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.api import drawing
from farline.api.job import BackgroundJob, Status
from farline.api.stores import StoreLike, store_at
from farline.api.tool_here import tool_chooser
from farline.campaign.ending import bad_end
from farline.campaign.job import CampaignJob, begun_job, resumed_job, target_address
from farline.campaign.journal import Journal, last_unfinished, new_journal, read_journal
from farline.campaign.plan import Plan, load_plan, plan_from_document
from farline.campaign.results import SettingResult, setting_results
from farline.campaign.settings import make_campaign
from farline.campaign.shell import Progress
from farline.errors import KINDS, UsageError
from farline.spec.units import counted, rate_human
from farline.spec.user_folders import expanded
from farline.tools.native import parse_target, resolve_spec

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from farline.campaign.estimate import Estimate
    from farline.campaign.machine import Machine
    from farline.store import Store

ROWS_SHOWN = 40
"""Settings that a notebook shows: the fastest."""

PlanLike = Plan | Mapping[str, Any] | str | Path
"""A plan, its document (the tables of a plan file), or the name of such a file."""


class Campaign(BackgroundJob[Progress]):
    """A campaign. Events say which run is next, which has ended, and how long the rest takes."""

    def __init__(self, begun: AbstractContextManager[CampaignJob], name: str, store: Store) -> None:
        """Begins or goes on; see `profile`."""
        self.name, self.store = name, store
        self._begun = begun
        self._machine: Machine | None = None
        self._last: Progress | None = None
        super().__init__(f"campaign {name}")

    def _work(self) -> Status:
        with self._begun as job:
            self._machine = job.machine
            stop = job.run(self._note, self._should_stop, tools_for=tool_chooser())
        end = bad_end(job.machine, stop)
        if end is not None:
            raise KINDS[end.kind](end.line)
        return "complete"

    def _note(self, progress: Progress) -> None:
        self._last = progress
        self._tell(progress)

    @property
    def progress_line(self) -> str:
        """How many runs are done and how long the rest takes, in words."""
        if self._last is None:
            return "no run yet"
        done = counted(self._last.done_runs, "run")
        return f"{done} done, {_left_text(self._last.left)} left"

    @property
    def results(self) -> list[SettingResult]:
        """One row per setting, in the plan's order, as far as it is; empty before the first run."""
        return [] if self._machine is None else setting_results(self._machine)

    @property
    def runs(self) -> pa.Table:
        """A row per run that is in the store: the columns of `Store.runs`."""
        from farline.store import RunFilter

        return self.store.runs(RunFilter(campaign=self.name))

    def report(self, folder: str | Path) -> Path:
        """Writes `report.html` and its figures into `folder`; the page's path.

        Raises:
            SystemFailure: when the folder cannot be written.
        """
        from farline.plots.report import write_report

        return write_report(self.store.path, self.name, Path(folder))

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.Campaign {self.name}: {self.status}, {self.progress_line}>"

    def _repr_html_(self) -> str:
        """A row per setting, or how far it is, for a notebook."""
        return _html(self)


def _left_text(left: Estimate) -> str:
    """Time that is left, roughly."""
    seconds = left.seconds
    if seconds is None:
        return counted(left.runs, "run")
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _html(campaign: Campaign) -> str:
    """A row per setting, the fastest first."""
    title = f"campaign {campaign.name}"
    if not campaign.done:
        return drawing.card(title, [("status", "running"), ("so far", campaign.progress_line)])
    if campaign.error is not None:
        return drawing.card(title, [("failed", campaign.error.message)])
    results = sorted(campaign.results, key=lambda row: -(row.mean_bps or 0.0))
    rows = [
        (
            ", ".join(f"{name} {value}" for name, value in row.varied.items()) or "the setting",
            drawing.rate_text(row.mean_bps),
            _interval(row.low_bps, row.high_bps),
            str(row.runs),
            (row.verdict_limit or "").replace("-", " "),
        )
        for row in results[:ROWS_SHOWN]
    ]
    heads = ("setting", "throughput", "interval", "runs", "limited by")
    more = len(results) - len(rows)
    below = f"<p>and {more} more</p>" if more > 0 else ""
    return f"{drawing.titled(title)}{drawing.table(heads, rows)}{below}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{rate_human(low)} to {rate_human(high)}"


def profile(
    target: str,
    plan: PlanLike | None = None,
    *,
    resume: str | None = None,
    store: StoreLike = None,
) -> Campaign:
    """Begins a campaign towards `target`, a host or a ticket; every run is kept in `store`.

    `plan` is the name of a plan file, or its tables as a mapping (docs: campaign.plan):
    `{"fixed": {"duration_s": "5s"}, "grid": {"streams": [1, 2, 4]}}`. `resume` names a campaign
    that was stopped, or is "last": it goes on where it was.

    Raises:
        UsageError: when neither or both of `plan` and `resume` are given.
        SpecError: when the plan is not allowed, or is one over an emulated path.
    """
    parse_target(target)
    kept = store_at(store)
    if (plan is None) == (resume is None):
        raise UsageError("give a plan, or the name of a campaign to resume")
    if resume is not None:
        journal = last_unfinished(kept) if resume == "last" else read_journal(kept, resume)
        return Campaign(resumed_job(journal, target, kept), journal.campaign.id, kept)
    assert plan is not None
    journal = _new_journal(_plan(plan), target)
    return Campaign(begun_job(journal, target, kept), journal.campaign.id, kept)


def _plan(plan: PlanLike) -> Plan:
    if isinstance(plan, Plan):
        return plan
    if isinstance(plan, Mapping):
        return plan_from_document(plan)
    return load_plan(expanded(plan))


def _new_journal(plan: Plan, target: str) -> Journal:
    if plan.over_path:
        raise UsageError(
            "this plan has a table [path]: an emulated path has hosts of its own; run it with"
            " `farline profile PLAN`"
        )
    campaign = make_campaign(plan, lambda spec: dict(resolve_spec(spec)))
    return new_journal(campaign, target_address(target), None)
