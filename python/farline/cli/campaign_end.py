"""The end of a campaign: the results, the report, the exit code, and how to go on."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.campaign.ending import BadEnd, bad_end
from farline.campaign.results import (
    reference_drift,
    reference_result,
    results_document,
    setting_results,
)
from farline.campaign.setting_text import setting_text
from farline.cli import campaign_text as text
from farline.cli.option_words import spoken
from farline.store.default_folder import usual_path

if TYPE_CHECKING:
    from farline.campaign.job import CampaignJob
    from farline.campaign.machine import Machine, Stop


@dataclass(frozen=True)
class Output:
    """What is wanted at the end."""

    as_json: bool = False
    report_dir: Path | None = None


def finish(job: CampaignJob, stop: Stop, output: Output, measured_more: bool = True) -> int:
    """Prints the results, writes the report, gives the exit code.

    A campaign that gave up before it `measured_more` has no new table to show: only the line.
    """
    report = _report(job, output.report_dir)
    end = _resumable(job, stop)
    if output.as_json:
        click.echo(json.dumps(_document(job, stop, report, end), indent=2))
    elif measured_more or stop.reason != "aborted":
        _print_results(job.machine, stop, report)
    if output.report_dir is not None and report is None:
        click.echo("farline: --report: no report written: no setting has a valid run", err=True)
    if end is not None:
        click.echo(f"farline: {end.line}", err=True)
    return 0 if end is None else end.code


def _resumable(job: CampaignJob, stop: Stop) -> BadEnd | None:
    """How it ended, with the command that goes on where there is something left to do."""
    end = bad_end(job.machine, stop)
    if end is None or not end.may_resume:
        return end
    return replace(end, line=f"{end.line}; {hint(job, stop.error_kind)}")


def hint(job: CampaignJob, error_kind: str | None = None) -> str:
    """The command that goes on. Where it takes a ticket it says TICKET, never the secret."""
    if not job.ticket_needed and error_kind != "auth":
        return f"resume with: {_command(job, False)}"
    once = "`farline trust TICKET` remembers the ticket"
    return f"resume with: {_command(job, True)} ({once})"


def _command(job: CampaignJob, with_ticket: bool) -> str:
    words = ["farline", "profile"]
    if with_ticket:
        words.append("TICKET")
    words += ["--resume", job.machine.campaign.id]
    if job.store.path != usual_path():
        words += ["--store", shlex.quote(str(job.store.path))]
    return " ".join(words)


def _report(job: CampaignJob, report_dir: Path | None) -> Path | None:
    if report_dir is None or not job.measured:
        return None
    from farline.plots.report import write_report

    return write_report(job.store.path, job.machine.campaign.id, report_dir)


def _document(
    job: CampaignJob, stop: Stop, report: Path | None, end: BadEnd | None
) -> dict[str, Any]:
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

    rows, reference = setting_results(machine), reference_result(machine)
    if reference is not None and all(row.setting != reference.setting for row in rows):
        rows = [*rows, replace(reference, state="fixed")]
    # Where nobody looks at a terminal, nothing has to fit.
    console = Console() if sys.stdout.isatty() else Console(width=1000)
    key = reference.setting if reference else None
    console.print(text.results_table(rows, machine.rules.confidence, console.width, key))
    for row in rows:
        if row.state == "abandoned":
            why = spoken(row.last_error or "no reason given")
            click.echo(f"{setting_text(row.varied)}: given up: {why}")
    drift = text.drift_line(reference_drift(machine))
    finished = stop.line if stop.reason == "finished" else ""
    for line in (drift, finished, f"report: {report}" if report is not None else ""):
        if line:
            click.echo(line)
