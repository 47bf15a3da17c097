"""The live view of a probe on a terminal: progress, the last intervals, a sparkline."""

from __future__ import annotations

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from farline.campaign.measure import Measured, came_about
from farline.cli import lines
from farline.cli.blast_text import blast_table
from farline.cli.event_text import event_text, stage_text
from farline.profiles.intervals import Interval, IntervalFeed, intervals_of
from farline.profiles.series import CLIENT, SERVER, Columns
from farline.spec._types import RunSpec
from farline.tools.events import Event, Stage, StreamSamples

ROWS_SHOWN = 12


class LiveView:
    """Redraws itself while the run goes on; what is left on the screen is the whole table.

    Where a run is `brief`, one of several, a line takes the place of summary and verdict.
    """

    def __init__(self, width_s: float, verbose: bool, brief: bool = False) -> None:
        """One row per `width_s`."""
        self._brief = brief
        self._feed = IntervalFeed(width_s)
        self._verbose = verbose
        self._console = Console(highlight=False)
        self._intervals: list[Interval] = []
        self._rates: list[float] = []
        self._far_cpu: dict[int, float | None] = {}
        self._spec: RunSpec = {}
        self._heading = ""
        self._stage, self._done = "connecting", 0.0
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=None), TimeRemainingColumn()
        )
        self._task = self._progress.add_task("connecting", total=None)
        self._live = Live(console=self._console, refresh_per_second=8, transient=False)

    def start(self, spec: RunSpec, address: str) -> None:
        """Begins to draw; what runs is said once something has run."""
        self._spec = spec
        self._heading = lines.spec_line(spec, address)
        self._progress.update(self._task, total=self._whole())
        self._live.start()
        self._draw(ROWS_SHOWN)

    def _whole(self) -> float:
        """What the bar counts to: bytes if the run has a total, else seconds."""
        total = self._spec.get("total_bytes")
        omit_s = self._spec.get("omit_s") or 0.0
        return float(total) if total else (self._spec.get("duration_s") or 10.0) + omit_s

    def event(self, event: Event) -> None:
        """Rows from samples, stages into the bar, notices above the table."""
        if isinstance(event, StreamSamples):
            self._intervals += self._feed.add(event.columns)
            self._advance(event.columns)
        elif isinstance(event, Stage):
            self._stage = event.name
        elif (line := event_text(event, self._verbose)) is not None:
            self._say_heading()
            self._console.print(Text(line, style="dim"))
        self._draw(ROWS_SHOWN)

    def _advance(self, samples: Columns) -> None:
        """Moves the bar and the sparkline on by the client's new rows; one direction counts."""
        mine = [row for row, end in enumerate(samples["end"]) if end == CLIENT]
        if not mine:
            return
        way = min(samples["role"][row] for row in mine)
        moved = sum(samples["bytes"][row] for row in mine if samples["role"][row] == way)
        end_us = max(samples["end_us"][row] for row in mine)
        span_us = end_us - min(samples["start_us"][row] for row in mine)
        self._rates.append(moved * 8e6 / span_us if span_us > 0 else 0.0)
        if self._spec.get("total_bytes"):
            self._done += moved
        else:
            self._done = end_us / 1e6
        self._progress.update(self._task, completed=min(self._done, self._whole()))

    def _draw(self, rows: int) -> None:
        stage = stage_text(self._stage)
        self._progress.update(self._task, description=stage)
        if self._intervals:
            self._say_heading()
        if self._intervals:
            self._live.update(Group(self._table(rows), self._sparkline(), self._progress))
        else:
            self._live.update(self._progress)

    def _say_heading(self) -> None:
        if self._heading:
            self._console.print(Text(self._heading))
        self._heading = ""

    def _sparkline(self) -> Text:
        return Text(lines.sparkline(self._rates, self._console.width - 1))

    def _table(self, rows: int) -> Table:
        transport = self._spec.get("transport", "tcp")
        both_ways = self._spec.get("direction") == "bidirectional"
        table = Table(box=None, pad_edge=False, header_style="bold")
        receives = self._spec.get("direction") == "reverse"
        for head in (*lines.interval_heads(transport, both_ways, receives), "CPU remote"):
            # UDT has two columns more; so they fit into 80 characters.
            table.add_column(
                head.replace("CPU ", "CPU\n") if transport == "udt" else head, justify="right"
            )
        for interval in self._intervals[-rows:]:
            far = lines.cpu_cell(self._far_cpu.get(interval.index))
            table.add_row(*lines.interval_cells(interval, transport, both_ways), far)
        return table

    def finish(self, measured: Measured) -> None:
        """The whole table, the server's CPU in it, then the summary and the verdict.

        Nothing stays on the screen where nothing ran.
        """
        if not came_about(measured.record):
            self._live.transient = True
            self.close()
            return
        self._intervals += self._feed.rest()
        far = intervals_of(measured.samples, self._feed.width_s, SERVER)
        self._far_cpu = {one.index: one.cpu for one in far}
        self._say_heading()
        self._live.update(Group(self._table(len(self._intervals)), self._sparkline()))
        self.close()
        if self._brief:
            self._print(lines.brief_lines(measured.record))
            return
        self._print(lines.summary_lines(measured.record))
        if (table := blast_table(measured.record)) is not None:
            self._console.print(table)
        self._print(lines.verdict_lines(measured.record), first_style="bold")

    def _print(self, texts: list[str], first_style: str = "") -> None:
        for number, text in enumerate(texts):
            self._console.print(Text(text, style=first_style if number == 0 else ""))

    def close(self) -> None:
        """Stops drawing; harmless when done twice."""
        self._live.stop()
