"""The blasts of an RBUDP run: a line of what they came to, a table, a document."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from farline.findings.rbudp_text import blasts_line, check_line
from farline.profiles.blasts import BlastRow, blast_rows, blasts_of, path_checks_of
from farline.spec._types import RunRecord
from farline.spec.units import rate_human, size_human, time_human

if TYPE_CHECKING:
    from rich.table import Table

ROWS_SHOWN = 8
"""Blasts in the table at the end of a run: its first and its last; `farline show` has all."""

_HEADS = ("blast", "payload", "passes", "missing", "repeated", "time", "throughput")
_ENDS = ("client", "server")
_DASH = "-"
TEXT_WIDTH = 100
"""Columns of the table where the output is no terminal."""


def blast_lines(record: RunRecord) -> list[str]:
    """What the path carried beforehand and what the blasts came to, each direction by itself."""
    lines = []
    for end in (0, 1):
        blasts = blasts_of(record, end)
        lines += [f"{'path':<9}{check_line(check)}" for check in path_checks_of(record, end)]
        if blasts is not None:
            lost = _share_text(blasts.first_pass_lost_share)
            lines.append(f"{'blasts':<9}{blasts_line(blasts)}; {lost} missing after the first pass")
    return lines


def _share_text(share: float) -> str:
    return f"{100 * share:.3g} %"


def blast_table(record: RunRecord, rows_shown: int = ROWS_SHOWN) -> Table | None:
    """The table of blasts, at most `rows_shown` of them; None where none became whole.

    Times of blasts overlap where several are under way at once.
    """
    rows = blast_rows(record)
    if not rows:
        return None
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in _heads(rows):
        table.add_column(head, justify="right", no_wrap=True)
    for row in _shown(rows, rows_shown):
        table.add_row(*([_DASH] * len(_heads(rows)) if row is None else _cells(row, rows)))
    left_out = _left_out(record, rows)
    if left_out:
        table.caption = f"{left_out} more blasts, whose details were not kept"
        table.caption_justify = "left"
    return table


def _left_out(record: RunRecord, rows: Sequence[BlastRow]) -> int:
    """Blasts that became whole after as many as a record keeps."""
    known = [blasts_of(record, end) for end in {row.sender_end for row in rows}]
    return sum(blasts.whole - blasts.kept for blasts in known if blasts is not None)


def _heads(rows: Sequence[BlastRow]) -> tuple[str, ...]:
    """The heads; streams are named where there are several."""
    return (("stream",) if len({row.stream for row in rows}) > 1 else ()) + _HEADS


def _stream_name(row: BlastRow, rows: Sequence[BlastRow]) -> str:
    """Its number; where data go both ways also which way, seen from the client."""
    both_ways = len({each.sender_end for each in rows}) > 1
    return f"{row.stream} {('out', 'in')[row.sender_end]}" if both_ways else str(row.stream)


def _shown(rows: Sequence[BlastRow], most: int) -> Iterator[BlastRow | None]:
    """All rows, or the first and the last with nothing between where they are too many."""
    if len(rows) <= most:
        yield from rows
        return
    last = (most - 1) // 2
    yield from rows[: most - 1 - last]
    yield None
    yield from rows[len(rows) - last :]


def _cells(row: BlastRow, rows: Sequence[BlastRow]) -> list[str]:
    blast, heads = row.blast, _heads(rows)
    repeated = row.repeated_packets
    missing = f"{blast['first_pass_lost_packets']} ({_share_text(row.lost_share)})"
    return [
        *([_stream_name(row, rows)] if "stream" in heads else []),
        str(row.number),
        size_human(blast["bytes"]),
        str(blast["passes"]),
        missing,
        _DASH if repeated is None else str(repeated),
        time_human(blast["elapsed_us"]),
        rate_human(row.throughput_bps),
    ]


def blast_table_text(record: RunRecord, rows_shown: int = ROWS_SHOWN) -> list[str]:
    """The same as lines of text."""
    table = blast_table(record, rows_shown)
    if table is None:
        return []
    from rich.console import Console

    console = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None)
    with console.capture() as taken:
        console.print(table)
    return [line.rstrip() for line in taken.get().splitlines()]


def print_blasts(record: RunRecord) -> None:
    """Every blast that was kept, as wide as the terminal."""
    import sys

    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=TEXT_WIDTH)
    console.print(blast_table(record, len(blast_rows(record))))


def blast_document(record: RunRecord) -> dict[str, Any]:
    """Every blast that was kept: `Blast` with its stream, sender, number and throughput."""
    rows = blast_rows(record)
    return {
        "schema": 1,
        "run_id": record["run_id"],
        "whole_blasts": len(rows) + _left_out(record, rows),
        "blasts": [
            {
                "stream": row.stream,
                "sender": _ENDS[row.sender_end],
                "number": row.number,
                **row.blast,
                "throughput_bps": row.throughput_bps,
            }
            for row in rows
        ],
    }
