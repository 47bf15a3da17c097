"""What a campaign shows while it runs: lines anywhere, a bar and a table on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import click

from farline.campaign.results import SettingResult, setting_results
from farline.campaign.setting_text import setting_text
from farline.campaign.shell import Progress
from farline.cli import campaign_text as text

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live


class CampaignView(Protocol):
    """Shows a campaign."""

    def __enter__(self) -> CampaignView:
        """Takes the terminal."""

    def __exit__(self, *_reason: object) -> None:
        """Gives it back."""

    def show(self, progress: Progress) -> None:
        """Something happened."""


class PlainCampaign:
    """A line on standard error for each run."""

    def __enter__(self) -> PlainCampaign:
        """Nothing to take."""
        return self

    def __exit__(self, *_reason: object) -> None:
        """Nothing to give back."""

    def show(self, progress: Progress) -> None:
        """A line for a run that ended, and for a wait."""
        if progress.waiting is not None:
            click.echo(_wait_line(progress), err=True)
        if progress.last is not None:
            line = text.outcome_text(progress.machine, *progress.last)
            left = f"; left: {text.left_text(progress.left)}" if progress.left.runs else ""
            click.echo(f"run {progress.done_runs}: {line}{left}", err=True)


class LiveCampaign:
    """A bar over the runs, the time left, the last result, and the table of settings."""

    def __init__(self) -> None:
        """Prepares; the terminal is taken on entry."""
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True)
        self._live: Live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._last = ""

    def __enter__(self) -> LiveCampaign:
        """Takes the terminal."""
        self._live.start()
        return self

    def __exit__(self, *_reason: object) -> None:
        """Clears what was drawn and gives the terminal back."""
        self._live.stop()

    def show(self, progress: Progress) -> None:
        """Draws the present state."""
        if progress.last is not None:
            self._last = text.outcome_text(progress.machine, *progress.last)
        self._live.update(self._drawn(progress))

    def _drawn(self, progress: Progress) -> Group:
        from rich.console import Group
        from rich.padding import Padding
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        total = max(1, progress.done_runs + progress.left.runs)
        bar = ProgressBar(total=total, completed=progress.done_runs, width=40)
        head = f"block {progress.machine.block + 1}, run {progress.done_runs} of about {total},"
        head += f" {text.span_text(progress.left.seconds)} left"
        rows = _shown(setting_results(progress.machine), self._console.height - 8)
        confidence = progress.machine.rules.confidence
        reference = progress.machine.campaign.reference
        key = reference.key if reference else None
        return Group(
            Text(head), Padding(bar, 0), Text(_now_line(progress)),
            Text(f"last: {self._last or '-'}"),
            text.results_table(rows, confidence, self._console.width, key),
        )  # fmt: skip


def _shown(rows: list[SettingResult], room: int) -> list[SettingResult]:
    """As many rows as fit: settings that are still open first, in the order of the plan."""
    if len(rows) <= max(room, 1):
        return rows
    chosen = sorted(rows, key=lambda row: row.state != "open")[: max(room, 1)]
    return [row for row in rows if row in chosen]


def _now_line(progress: Progress) -> str:
    if progress.waiting is not None:
        return _wait_line(progress)
    if progress.running is None:
        return "now: -"
    setting = progress.machine.campaign.setting(progress.running.setting)
    kind = "reference, " if progress.running.reference else ""
    return f"now: {kind}{setting_text(setting.varied)}"


def _wait_line(progress: Progress) -> str:
    waiting = progress.waiting
    assert waiting is not None
    return f"trying again in {waiting.seconds:g} s: {waiting.why}"
