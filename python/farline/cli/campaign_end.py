"""The end of a campaign: the results, the report, the exit code, and how to go on."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from farline.campaign.machine import Machine, Stop
    from farline.store import Store


@dataclass(frozen=True)
class Job:
    """A campaign being run: towards which target, into which store."""

    machine: Machine
    target: str
    store: Store

    @property
    def resume_command(self) -> str:
        """What to type to go on."""
        return self._command(self.ticket_needed)

    @property
    def ticket_needed(self) -> bool:
        """Whether the ticket of this run has to be typed again: it is kept nowhere."""
        from farline.tools.known_servers import KnownServers
        from farline.tools.native import parse_target

        if not self.target.startswith("farline://"):
            return False
        return KnownServers().get(parse_target(self.target).address).ticket is None

    def hint(self, error_kind: str | None = None) -> str:
        """The command that goes on. Where it takes a ticket it says TICKET, never the secret."""
        if not self.ticket_needed and error_kind != "auth":
            return f"resume with: {self._command(False)}"
        once = "`farline trust TICKET` remembers the ticket"
        return f"resume with: {self._command(True)} ({once})"

    def _command(self, with_ticket: bool) -> str:
        from farline.store import default_path

        words = ["farline", "profile"]
        if with_ticket:
            words.append("TICKET")
        words += ["--resume", self.machine.campaign.id]
        if self.store.path != default_path():
            words += ["--store", shlex.quote(str(self.store.path))]
        return " ".join(words)

    @property
    def measured(self) -> bool:
        """Whether any setting has a figure."""
        return any(tally.values for tally in self.machine.tallies.values())

    @property
    def figures(self) -> int:
        """How many runs have a figure, those of the reference among them."""
        tallies = (self.machine.reference, *self.machine.tallies.values())
        return sum(len(tally.values) for tally in tallies)


@dataclass(frozen=True)
class Output:
    """What is wanted at the end."""

    as_json: bool = False
    report_dir: Path | None = None


def finish(job: Job, stop: Stop, output: Output, measured_more: bool = True) -> int:
    """Prints the results, writes the report, gives the exit code.

    A campaign that gave up before it `measured_more` has no new table to show: only the line.
    """
    report = _report(job, output.report_dir)
    end = _ending(job, stop)
    if output.as_json:
        click.echo(json.dumps(_document(job, stop, report, end), indent=2))
    elif measured_more or stop.reason != "aborted":
        _print_results(job.machine, stop, report)
    if output.report_dir is not None and report is None:
        click.echo("farline: --report: nothing written: no setting has a run that counts", err=True)
    if end is not None:
        click.echo(f"farline: {end.line}", err=True)
    return 0 if end is None else end.code


@dataclass(frozen=True)
class _BadEnd:
    """How a campaign ended that did not end well."""

    code: int
    kind: str
    line: str


def _ending(job: Job, stop: Stop) -> _BadEnd | None:
    from farline.campaign.machine import INVALID_KIND, NO_REASON
    from farline.errors import InterruptedRun

    if stop.reason == "interrupted":
        line = f"{stop.line}; {job.hint()}"
        return _BadEnd(InterruptedRun.exit_code, InterruptedRun.kind, line)
    if stop.reason == "aborted":
        return _bad_end(stop.error_kind, f"{stop.line}; {job.hint(stop.error_kind)}")
    if job.measured:
        return _incomplete(job.machine)
    tallies = job.machine.tallies.values()
    failed = [tally for tally in tallies if tally.last_error]
    if failed:
        return _bad_end(failed[0].last_error_kind, f"no run succeeded: {failed[0].last_error}")
    invalid = [tally for tally in tallies if tally.invalid]
    if invalid:
        reasons = [tally.not_valid for tally in invalid if tally.not_valid]
        why = reasons[-1] if reasons else NO_REASON
        return _bad_end(INVALID_KIND, f"no run was valid, so none counts: {why}")
    return None


def _incomplete(machine: Machine) -> _BadEnd | None:
    """Of a campaign that has figures: which settings have none, and why the first has not."""
    from farline.campaign.machine import INVALID_KIND, NO_REASON
    from farline.campaign.results import setting_results
    from farline.cli.campaign_text import setting_text

    rows = setting_results(machine)
    empty = [row for row in rows if not row.runs]
    if not empty:
        return None
    first = next((row for row in empty if row.last_error), empty[0])
    tally = machine.tallies[first.setting]
    kind = tally.last_error_kind if first.last_error else INVALID_KIND
    why = first.last_error or tally.not_valid or NO_REASON
    have = "has" if len(empty) == 1 else "have"
    count = f"{len(empty)} of {len(rows)} settings {have} no valid run"
    return _bad_end(kind, f"{count}: {setting_text(first.varied)}: {why}")


def _bad_end(kind: str | None, line: str) -> _BadEnd:
    from farline.errors import KINDS, InternalError

    known = KINDS.get(kind or "", InternalError)
    return _BadEnd(known.exit_code, known.kind, line)


def _report(job: Job, report_dir: Path | None) -> Path | None:
    if report_dir is None or not job.measured:
        return None
    from farline.plots.report import write_report

    return write_report(job.store.path, job.machine.campaign.id, report_dir)


def _document(job: Job, stop: Stop, report: Path | None, end: _BadEnd | None) -> dict[str, Any]:
    from farline.campaign.results import results_document

    document = {
        "schema": 1,
        "campaign": job.machine.campaign.id,
        "seed": job.machine.campaign.seed,
        "store": str(job.store.path),
        "stopped": stop.reason,
        "report": str(report) if report else None,
        **results_document(job.machine),
    }
    if end is not None:
        document["error"] = {"kind": end.kind, "message": end.line}
    return document


def _print_results(machine: Machine, stop: Stop, report: Path | None) -> None:
    from rich.console import Console

    from farline.campaign.results import reference_drift, reference_result, setting_results
    from farline.cli import campaign_text as text

    rows, reference = setting_results(machine), reference_result(machine)
    if reference is not None and all(row.setting != reference.setting for row in rows):
        rows = [*rows, replace(reference, state="fixed")]
    # Where nobody looks at a terminal, nothing has to fit.
    console = Console() if sys.stdout.isatty() else Console(width=1000)
    key = reference.setting if reference else None
    console.print(text.results_table(rows, machine.rules.confidence, console.width, key))
    for row in rows:
        if row.state == "abandoned":
            click.echo(f"{text.setting_text(row.varied)}: given up: {row.last_error}")
    drift = text.drift_line(reference_drift(machine))
    finished = stop.line if stop.reason == "finished" else ""
    for line in (drift, finished, f"report: {report}" if report is not None else ""):
        if line:
            click.echo(line)
