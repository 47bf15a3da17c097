"""What a copy shows while it goes on and at its end: one view per kind of reader.

Progress goes to standard error, results to standard output. What a view needs beyond text is
imported when a copy has gone on for a moment: one of many small files is over before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from farline import logs
from farline.cli.copy.end import missing_lines, skipped_lines, summary_lines
from farline.cli.copy.output import Output
from farline.cli.copy.progress_text import progress_line
from farline.cli.event_text import event_text
from farline.cli.option_words import in_flags
from farline.cli.shown import shown
from farline.copying.event_lines import line_of
from farline.copying.meter import Meter
from farline.tools.events import (
    EstimateChecked,
    FileSettled,
    Notice,
    NoticeKind,
    Progress,
    RetryScheduled,
    Stopping,
)

if TYPE_CHECKING:
    from farline.cli.copy.bar import Bar
    from farline.spec._types import ReceiptLine, RunRecord
    from farline.tools.events import Event

BAR_AFTER_S = 0.3
"""Seconds of a copy before a bar is drawn."""

LINE_EACH_S = 1.0

STOPPING = "farline: stopping; press Ctrl-C again to stop immediately"


class View(Protocol):
    """Shows one copy, all its sessions."""

    out: Output

    def event(self, event: Event) -> None:
        """Something happened; names are told only where `wants_files`."""

    @property
    def wants_files(self) -> bool:
        """Whether every name is to be told."""

    def finish(self, record: RunRecord | None, where: Mapping[str, str]) -> None:
        """It has ended, however; `where` says where receipt and run are."""

    def close(self) -> None:
        """Nothing more comes, not even an end: leave the terminal clean."""


class QuietView:
    """Nothing but what failed, which goes to standard error."""

    wants_files = False

    def __init__(self) -> None:
        """Says nothing yet."""
        self.out = Output()

    def event(self, event: Event) -> None:
        """Nothing, unless the store did not take the record."""
        tell_not_kept(event, self.out)

    def finish(self, record: RunRecord | None, where: Mapping[str, str]) -> None:
        """The names that failed."""
        if record is not None and (report := record.get("copy")):
            for line in missing_lines(report):
                self.out.line(f"farline: {line}", err=True)

    def close(self) -> None:
        """Nothing to close."""


@dataclass(eq=False, repr=False)
class TextView:
    """Text for people: a bar or lines of progress, each name if asked for, a table at the end."""

    verbose: bool
    progress: bool
    stats: bool
    drops: bool = False
    """Whether what is received is written nowhere."""
    on_terminal: bool = field(default_factory=lambda: sys.stderr.isatty())
    meter: Meter = field(default_factory=Meter)
    out: Output = field(default_factory=Output)
    _bar: Bar | None = None
    _said_s: float = 0.0
    _estimate: EstimateChecked | None = None

    @property
    def wants_files(self) -> bool:
        """With -v every name is told."""
        return self.verbose

    def event(self, event: Event) -> None:
        """Progress moves the bar, or makes a line each second; the rest is said."""
        match event:
            case Progress(report):
                self.meter.add(report)
                if self.progress:
                    self._show()
            case FileSettled(line):
                self._file(line)
            case RetryScheduled(error, wait_s):
                self._say(
                    f"farline: {shown(in_flags(error).message)}; trying again in {wait_s:.0f} s"
                )
                self.meter.begin(wait_s)
            case EstimateChecked():
                self._estimate = event
            case Stopping():
                # Above the bar: what a second Ctrl-C would do.
                self._say(STOPPING)
            case _ if (text := event_text(event, self.verbose)) is not None:
                self._say(text)

    def _show(self) -> None:
        elapsed_s = self.meter.elapsed_s
        if not self.on_terminal:
            if elapsed_s - self._said_s >= LINE_EACH_S:
                self._said_s = elapsed_s
                self.out.line(progress_line(self.meter), err=True)
            return
        if self._bar is None and elapsed_s >= BAR_AFTER_S and not logs.is_on_stderr():
            from farline.cli.copy.bar import Bar

            self._bar = Bar()
        if self._bar is not None:
            self._bar.draw(self.meter)

    def _say(self, text: str, err: bool = True) -> None:
        if self._bar is None or not self._bar.say(text, err):
            self.out.line(text, err)

    def _file(self, line: ReceiptLine) -> None:
        """The name, and what became of it unless it was copied."""
        status = "" if line["status"] == "copied" else f" ({line['status']})"
        if self.drops and not status:
            status = " (received, not written)"
        self._say(f"{shown(line['path'])}{status}", err=False)

    def finish(self, record: RunRecord | None, where: Mapping[str, str]) -> None:
        """The table, and what is missing."""
        self.close()
        if record is None or not (report := record.get("copy")):
            return
        for line in (*skipped_lines(report), *missing_lines(report)):
            self.out.line(f"farline: {line}", err=True)
        for line in summary_lines(record, self.stats, where, self._estimate):
            self.out.line(shown(line))

    def close(self) -> None:
        """Ends the bar; harmless when done twice."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None


class JsonView(QuietView):
    """One document at the end: the record of the last session."""

    def finish(self, record: RunRecord | None, where: Mapping[str, str]) -> None:
        """Prints the record; a failure before one is printed where it is caught."""
        if record is not None:
            self.out.line(json.dumps(record, indent=2))


class StreamView:
    """One JSON object a line: start, progress, interval, notice, file, estimate, error, end.

    `progress` is a `CopyProgress`, `interval` the rate of a second, `file` a `ReceiptLine`;
    `end` carries the record of the last session as `farline`.
    """

    def __init__(self, every_file: bool, out: Output | None = None) -> None:
        """Tells each name with `every_file`, else those that failed, at the end."""
        self.wants_files = every_file
        self.out = out or Output()
        self._began = False
        self._meter = Meter()
        self._said_s, self._said_bytes = 0.0, 0

    def event(self, event: Event) -> None:
        """A line for each; a wish to stop and a store that fails are told on standard error."""
        match event:
            case Stopping():
                self.out.line(STOPPING, err=True)
            case Notice(NoticeKind.NOT_KEPT):
                tell_not_kept(event, self.out)
            case RetryScheduled(error, wait_s):
                self._tell(RetryScheduled(in_flags(error), wait_s))
                self._meter.begin(wait_s)
            case Progress(report):
                self._tell(event)
                self._meter.add(report)
                self._interval()
            case _:
                self._tell(event)

    def _tell(self, event: Event) -> None:
        if (line := line_of(event)) is None:
            return
        if not self._began and line[0] != "error":
            self._began = True
            self._line("start", {"schema": 1})
        self._line(*line)

    def _interval(self) -> None:
        end_s, moved = self._meter.elapsed_s, self._meter.moved_bytes
        span_s = end_s - self._said_s
        if span_s >= LINE_EACH_S:
            span = {"start_s": self._said_s, "end_s": end_s, "bytes": moved - self._said_bytes}
            self._line("interval", {**span, "rate_bps": 8 * (moved - self._said_bytes) / span_s})
            self._said_s, self._said_bytes = end_s, moved

    def finish(self, record: RunRecord | None, where: Mapping[str, str]) -> None:
        """What failed, and `end`."""
        if record is None:
            return
        if not self.wants_files and (report := record.get("copy")):
            for line in report["failures"]:
                self._line("file", line)
        if failure := record.get("error"):
            self._line("error", failure)
        self._line("end", {"farline": record, **where})

    def close(self) -> None:
        """A failure before a record is printed where it is caught."""

    def _line(self, name: str, data: object) -> None:
        self.out.line(json.dumps({"event": name, "data": data}))


def tell_not_kept(event: Event, out: Output) -> None:
    """A store that fails is told of whatever else is: the record of the copy is lost."""
    if isinstance(event, Notice) and event.kind is NoticeKind.NOT_KEPT:
        out.line(f"farline: {shown(event.text)}", err=True)
