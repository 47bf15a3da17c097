"""The bar of a copy on a terminal: percent only once all is found, rate, files, time left."""

from __future__ import annotations

import sys

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from farline.cli.copy.end import clock_text
from farline.cli.copy.progress_text import details
from farline.copying.meter import Meter
from farline.spec.units import rate_human


class Bar:
    """Two lines that redraw themselves at the foot of the terminal."""

    def __init__(self) -> None:
        """Draws on standard error; the results on standard output stay clean."""
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._live.start()

    def draw(self, meter: Meter) -> None:
        """Shows how far it is."""
        if meter.latest is not None:
            text = Text(
                details(meter, self._console.width), "dim", no_wrap=True, overflow="ellipsis"
            )
            self._live.update(Group(bar_row(meter), text))

    def say(self, text: str, err: bool = True) -> bool:
        """A line above the bar, if it goes to the same terminal; says whether it does."""
        if not err and not sys.stdout.isatty():
            return False
        self._console.print(Text(text, style="dim" if err else ""))
        return True

    def close(self) -> None:
        """Takes the bar away."""
        self._live.stop()


def bar_row(meter: Meter) -> Table:
    """Bar, percent, rate and time left; a bar that only moves while not all is found."""
    one, share, left_s = meter.latest, meter.share(), meter.left_s()
    assert one is not None
    row = Table.grid(expand=True, padding=(0, 1))
    row.add_column(ratio=1)
    for _ in range(3):
        row.add_column(justify="right", no_wrap=True)
    bar = ProgressBar(
        total=None if share is None else 1.0, completed=share or 0.0, pulse=share is None
    )
    row.add_row(
        bar,
        "finding" if share is None else f"{100 * share:.1f} %",
        rate_human(meter.rate_now_bps()),
        "" if left_s is None else f"{clock_text(left_s)} left",
    )
    return row
