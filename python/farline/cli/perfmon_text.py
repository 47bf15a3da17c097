"""The statistics of a UDT run by libudt's names: as lines and tables, and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farline.profiles.perfmon import FIELDS

if TYPE_CHECKING:
    from farline.profiles.perfmon import Floats

Record = Mapping[str, Any]


def print_perfmon(table: Mapping[str, Floats]) -> None:
    """Of each stream at each end: its totals in a line, then a row per interval."""
    console = Console() if sys.stdout.isatty() else Console(width=1000)
    for title, part in _streams(table):
        console.print(Text(title, style="bold"))
        totals = [
            f"{field.name} {_cell(part[field.name][-1], True)}"
            for field in FIELDS
            if field.kind == "total" and _is_known(part[field.name])
        ]
        console.print(Text(", ".join(totals)))
        console.print(_intervals(part))


def _streams(table: Mapping[str, Floats]) -> Iterator[tuple[str, dict[str, Floats]]]:
    """Each stream of each end, with what it is."""
    places = zip(table["end"].tolist(), table["stream"].tolist(), strict=True)
    for end, stream in dict.fromkeys(places):
        rows = (table["end"] == end) & (table["stream"] == stream)
        part = {name: column[rows] for name, column in table.items()}
        does = "receives" if part["role"][0] else "sends"
        yield f"{('client', 'server')[int(end)]}, stream {stream:.0f} {does}", part


def _intervals(part: Mapping[str, Floats]) -> Any:
    shown = [field for field in FIELDS if field.kind != "total" and _is_known(part[field.name])]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in shown:
        table.add_column(field.name, justify="right", overflow="fold")
    for index in range(len(part["end"])):
        table.add_row(*(_cell(part[field.name][index], field.whole) for field in shown))
    return table


def _is_known(column: Floats) -> bool:
    return bool((column == column).any())


def _cell(value: float, whole: bool) -> str:
    if value != value:
        return "-"
    return f"{value:.0f}" if whole else f"{value:.3f}"
