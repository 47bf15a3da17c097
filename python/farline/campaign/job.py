"""A campaign as a job: begun or resumed under its lock, run to wherever it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from farline import tools
from farline.campaign.behind import Behind
from farline.campaign.data_set import DataSet, data_set
from farline.campaign.journal import Journal, campaign_lock, write_journal
from farline.campaign.machine import Machine, Stop
from farline.campaign.measure import Keeper, came_about, measure
from farline.campaign.replay import done_in_store, replay
from farline.campaign.shell import MeasureOne, Shell, Watcher
from farline.campaign.unmade import unmade_record
from farline.drivers.chooser import ToolChooser
from farline.errors import (
    AuthError,
    FarlineError,
    LimitError,
    SpecError,
    SystemFailure,
    VersionError,
    from_failure,
)
from farline.spec.path_watch import PathWatch
from farline.store import Store
from farline.store.entry import RunBundle
from farline.tools.known_servers import KnownServers
from farline.tools.native import connection_keeper, parse_target


class LinkControl(Protocol):
    """Sets the link of an emulated path between runs."""

    def apply(self, values: Mapping[str, Any]) -> None:
        """Gives the link what a setting asks for.

        Raises:
            FarlineError: when it cannot have it.
        """

    def restore(self) -> None:
        """Gives it what it had before the first run."""


@dataclass(frozen=True)
class CampaignJob:
    """A campaign that stands in a store, towards a target."""

    machine: Machine
    target: str
    store: Store
    journal: Journal | None = None

    def run(
        self,
        watch: Watcher,
        should_stop: tools.StopQuestion,
        path: PathWatch | None = None,
        link: LinkControl | None = None,
        tools_for: ToolChooser | None = None,
    ) -> Stop:
        """Runs it until there is nothing left to do, or somebody wants to stop.

        A wish to stop at once reaches the run that is under way. `path` watches an emulated path,
        `link` sets it between runs; it is put back at the end. `tools_for` says where other tools
        than farline's own engine have their servers. A right that is refused would
        refuse every run: it ends the campaign.

        Raises:
            FarlineError: when the store or the files to copy failed.
        """
        campaign = self.machine.campaign
        with _restored(link), data_set(campaign.plan.data, campaign.id) as data:
            try:
                with Behind(self.store) as keeper:
                    chooser = tools_for or ToolChooser()
                    one = self._measurer(keeper, should_stop, path, link, data, chooser)
                    shell = Shell(
                        self.machine, one, watch, lambda: should_stop() is not tools.Stop.GO_ON
                    )
                    stop = shell.run()
            except (AuthError, VersionError) as error:
                stop = Stop("aborted", f"stopped: {error.message}", error.kind)
            if stop.reason == "finished" and self.journal is not None:
                write_journal(self.store, self.journal, finished=True)
            self.store.compact()
        return stop

    def _measurer(
        self,
        keeper: Keeper,
        asked: tools.StopQuestion,
        path: PathWatch | None,
        link: LinkControl | None,
        data: DataSet | None,
        chooser: ToolChooser,
    ) -> MeasureOne:
        campaign, kept = self.machine.campaign, connection_keeper()

        def one(
            spec: Mapping[str, Any], labels: Mapping[str, Any], should_stop: Callable[[], bool]
        ) -> Mapping[str, Any]:
            if link is not None:
                try:
                    link.apply(campaign.setting(labels["setting"]).path)
                except (LimitError, SpecError, SystemFailure) as refusal:
                    return self._unmade(keeper, spec, labels, refusal)
            if data is not None:
                data.clear()
                spec = data.spec(spec)
            measured = measure(
                self.target, spec, keeper, should_stop=asked, campaign=campaign.id,
                labels=labels, keep=_concerns_a_run, path=path,
                tool=chooser.tool(spec, self.target, kept),
            )  # fmt: skip
            error = measured.record.get("error")
            if error and not _concerns_a_run(measured.record):
                raise from_failure(error)
            return measured.record

        return one

    def _unmade(
        self,
        keeper: Keeper,
        spec: Mapping[str, Any],
        labels: Mapping[str, Any],
        error: FarlineError,
    ) -> Mapping[str, Any]:
        """A setting whose link cannot be had: a failed run, kept, so that a resume knows of it."""
        record = unmade_record(target_address(self.target), spec, error)
        keeper.append(RunBundle(record, {}, campaign=self.machine.campaign.id, labels=labels))
        return record

    @property
    def ticket_needed(self) -> bool:
        """Whether who goes on has to give the ticket of this run again: it is kept nowhere."""
        if not self.target.startswith("farline://"):
            return False
        return KnownServers().get(parse_target(self.target).address).ticket is None

    @property
    def measured(self) -> bool:
        """Whether any setting has a figure."""
        return any(tally.values for tally in self.machine.tallies.values())

    @property
    def figures(self) -> int:
        """How many runs have a figure, those of the reference among them."""
        tallies = (self.machine.reference, *self.machine.tallies.values())
        return sum(len(tally.values) for tally in tallies)


@contextmanager
def begun_job(journal: Journal, target: str, store: Store) -> Iterator[CampaignJob]:
    """A new campaign, written down; nobody else runs it within the block.

    Raises:
        FarlineError: when it cannot be written down, or somebody runs it.
    """
    with campaign_lock(store, journal.campaign.id):
        write_journal(store, journal)
        yield CampaignJob(Machine(journal.campaign), target, store, journal)


@contextmanager
def resumed_job(journal: Journal, target: str | None, store: Store) -> Iterator[CampaignJob]:
    """A campaign that was begun before, as far as it came; to its own target if none is given.

    Raises:
        FarlineError: when somebody runs it.
    """
    # What was done is read under the lock: nobody else may be adding to it.
    with campaign_lock(store, journal.campaign.id):
        machine = replay(journal.campaign, done_in_store(store, journal.campaign.id))
        yield CampaignJob(machine, target or journal.target, store, journal)


def target_address(target: str) -> str:
    """`host:port` of a target, without its ticket; words for a testbed stay as they are."""
    return target if target.startswith("testbed ") else parse_target(target).address


@contextmanager
def _restored(link: LinkControl | None) -> Iterator[None]:
    try:
        yield
    finally:
        if link is not None:
            link.restore()


def _concerns_a_run(record: Mapping[str, Any]) -> bool:
    """Whether a record says something of its setting: a refused ticket would refuse every run."""
    kind = (record.get("error") or {}).get("kind")
    return came_about(record) or kind not in ("auth", "usage", "version")
