"""What the commands of `farline analyze` print with: tables that fit, folded lines, rates."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

WIDTH_MAX = 100
"""Columns beyond which lines get hard to read."""
UNBOUNDED = 1000
"""Width of a table that goes into a file or a pipe."""
ABSENT = "-"
DECIMALS_MAX = 9
"""Decimals of the smallest numbers: a rate of 1 bit/s beside Gbit/s is not yet 0."""
_UNITS = (("Tbit/s", 1e12), ("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3))


def show_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, note: bool = False
) -> None:
    """Prints a table; its first `words` columns are words, with `note` the last one too."""
    from rich.console import Console

    console = Console(highlight=False)
    if not sys.stdout.isatty():
        console.width = UNBOUNDED
    with console.capture() as captured:
        console.print(_table(heads, rows, words, note))
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int, note: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for index, head in enumerate(heads):
        left = index < words or (note and index == len(heads) - 1)
        # Only words are folded where a terminal is narrow: a number without its end is another.
        table.add_column(
            head, justify="left" if left else "right", no_wrap=not left, overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def say(text: str = "", indent: str = "", hang: str | None = None) -> None:
    """Prints a line, folded at the width; `hang` is what its further lines begin with."""
    import textwrap

    further = indent if hang is None else hang
    for line in textwrap.wrap(
        text, width(), initial_indent=indent, subsequent_indent=further, break_on_hyphens=False
    ) or [""]:
        click.echo(line)


def width() -> int:
    """Columns that text may take."""
    import shutil

    return min(shutil.get_terminal_size((80, 24)).columns, WIDTH_MAX)


def rate_unit(rates_bps: Sequence[float]) -> tuple[str, float]:
    """The unit for rates that share a column, and its bit/s: that of the largest."""
    top = max((rate for rate in rates_bps if math.isfinite(rate)), default=0.0)
    return next(((name, scale) for name, scale in _UNITS if top >= scale), ("bit/s", 1.0))


def number(value: float | None, digits: int = 3) -> str:
    """A number to so many significant digits, without an exponent; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size = abs(value)
    decimals = digits - 1 - (math.floor(math.log10(size)) if size > 0 else 0)
    return f"{value:,.{min(max(decimals, 0), DECIMALS_MAX)}f}"


def rtt_text(rtt_ms: float) -> str:
    """Milliseconds as tables have them: `11.8`, `366`, `0.04`."""
    return f"{rtt_ms:.4g}"


def share(value: float | None) -> str:
    """`72.3 %`, a dash where there is none."""
    return ABSENT if value is None or not math.isfinite(value) else f"{number(100 * value)} %"


def span(low: float | None, high: float | None, digits: int = 3) -> str:
    """`0.61 to 0.73`, a dash where there is none."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ABSENT
    return f"{number(low, digits)} to {number(high, digits)}"


def score_span(low: float | None, high: float | None) -> str:
    """The same of coefficients, which have three decimals."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ABSENT
    return f"{low:.3f} to {high:.3f}"
