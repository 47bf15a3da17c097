"""What a probe shows while it runs and at its end: one view per kind of reader."""

from __future__ import annotations

import json
from typing import Protocol

import click

from farline.campaign.measure import Measured, came_about
from farline.cli import lines
from farline.cli.blast_text import blast_table_text
from farline.cli.event_text import event_text
from farline.profiles.intervals import Interval, IntervalFeed, intervals_of
from farline.profiles.iperf3_document import (
    end_document,
    error_text,
    interval_document,
    iperf3_document,
    start_document,
)
from farline.spec._types import RunRecord, RunSpec
from farline.tools.events import Event, StreamSamples


class View(Protocol):
    """Shows one run."""

    def start(self, spec: RunSpec, address: str) -> None:
        """The run is about to begin."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def finish(self, measured: Measured) -> None:
        """It has ended, however."""

    def close(self) -> None:
        """Nothing more comes, not even an end: leave the terminal clean."""


class PlainView:
    """Lines of text: intervals as they end, then the summary and the verdict.

    Where a run is `brief`, one of several, a line takes their place.
    """

    def __init__(self, width_s: float, verbose: bool, brief: bool = False) -> None:
        """One line per `width_s`."""
        self._brief = brief
        self._feed = IntervalFeed(width_s)
        self._verbose = verbose
        self._transport, self._both_ways = "tcp", False
        self._heading: list[str] = []

    def start(self, spec: RunSpec, address: str) -> None:
        """Prepares what runs and the heads of the columns: said once something has run."""
        self._transport = spec.get("transport", "tcp")
        self._both_ways = spec.get("direction") == "bidirectional"
        receives = spec.get("direction") == "reverse"
        heads = _row(lines.interval_heads(self._transport, self._both_ways, receives))
        is_native = spec.get("tool", "native") == "native"
        # Other tools tell no intervals while they run.
        self._heading = [lines.spec_line(spec, address), *([heads] if is_native else [])]

    def event(self, event: Event) -> None:
        """A line for each interval that is whole; stages only if asked for."""
        if isinstance(event, StreamSamples):
            self._show(self._feed.add(event.columns))
        elif (line := event_text(event, self._verbose)) is not None:
            click.echo(line, err=True)

    def _say_heading(self) -> None:
        for line in self._heading:
            click.echo(line)
        self._heading = []

    def _show(self, intervals: list[Interval]) -> None:
        if intervals:
            self._say_heading()
        for interval in intervals:
            click.echo(_row(lines.interval_cells(interval, self._transport, self._both_ways)))

    def finish(self, measured: Measured) -> None:
        """The last intervals, the summary, the verdict; nothing where nothing ran."""
        if not came_about(measured.record):
            return
        self._show(self._feed.rest())
        self._say_heading()
        for line in _closing_lines(measured.record, self._brief):
            click.echo(line)

    def close(self) -> None:
        """Text needs no closing."""


def _closing_lines(record: RunRecord, brief: bool) -> list[str]:
    if brief:
        return lines.brief_lines(record)
    table = blast_table_text(record)
    return [*lines.summary_lines(record), *table, *lines.verdict_lines(record)]


def _row(cells: list[str]) -> str:
    return f"{cells[0]:>16}" + "".join(f"{cell:>14}" for cell in cells[1:])


class QuietView:
    """Nothing: a run is one of several, and one document about all of them comes at the end."""

    def start(self, spec: RunSpec, address: str) -> None:
        """Nothing."""

    def event(self, event: Event) -> None:
        """Nothing."""

    def finish(self, measured: Measured) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class JsonView:
    """One document at the end: the record, in our shape or in iperf3's."""

    def __init__(self, width_s: float, iperf3: bool) -> None:
        """farline's record, or iperf3's document with intervals of `width_s`."""
        self._width_s = width_s
        self._iperf3 = iperf3

    def start(self, spec: RunSpec, address: str) -> None:
        """Nothing before the document."""

    def event(self, event: Event) -> None:
        """Nothing before the document."""

    def finish(self, measured: Measured) -> None:
        """Prints the document."""
        record = measured.record
        if self._iperf3:
            document = iperf3_document(record, measured.samples, self._width_s)
            click.echo(json.dumps(document, indent="\t"))
        else:
            click.echo(json.dumps(record, indent=2))

    def close(self) -> None:
        """A failure before the run is printed where it is caught."""


class StreamView:
    """iperf3's events, one JSON object a line: start, interval, error, end.

    Data have iperf3's shape; `end` also carries our whole record, as `farline`.
    """

    def __init__(self, width_s: float) -> None:
        """An `interval` line per `width_s`."""
        self._width_s = width_s
        self._feed = IntervalFeed(width_s)
        self._spec: RunSpec = {}

    def start(self, spec: RunSpec, address: str) -> None:
        """The `start` line."""
        self._spec = spec
        _event("start", start_document(spec, address))

    def event(self, event: Event) -> None:
        """An `interval` line for each interval that is whole."""
        if isinstance(event, StreamSamples):
            self._show(self._feed.add(event.columns))

    def _show(self, intervals: list[Interval]) -> None:
        for interval in intervals:
            _event("interval", interval_document(interval, self._spec))

    def finish(self, measured: Measured) -> None:
        """The last intervals, `error` if the run failed, and `end` in any case."""
        self._show(self._feed.rest())
        record = measured.record
        if error := record.get("error"):
            _event("error", error_text(error["message"]))
        end = end_document(record, intervals_of(measured.samples, self._width_s), measured.samples)
        _event("end", {**end, "farline": record})

    def close(self) -> None:
        """A failure before the run is printed where it is caught."""


def _event(name: str, data: object) -> None:
    click.echo(json.dumps({"event": name, "data": data}))
