"""Tables of stored campaigns on pages of the documentation, each between two marks.

A page has a table for each plan. A campaign that is not in the store, or not at its end, leaves its
table as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from farline.errors import UsageError
from farline.plots.data import CampaignData, load_campaign

Rows = Sequence[Sequence[str]]
Tables = Mapping[str, Callable[[CampaignData], str]]
"""What is made of each plan's campaign."""


def run(path: Path, tables: Tables, arguments: Sequence[str]) -> int | str:
    """A program with a store as its only argument; what it exits with."""
    if len(arguments) != 2:
        return f"usage: {arguments[0]} STORE"
    fill(path, tables, Path(arguments[1]))
    return 0


def fill(path: Path, tables: Tables, store: Path) -> None:
    """Prints every table that can be made, and puts it into the page at `path`."""
    page = path.read_text(encoding="utf-8")
    for name, table_of in tables.items():
        try:
            data = load_campaign(store, name)
        except UsageError as error:
            print(f"{name}: {error.message}", file=sys.stderr)
            continue
        if data.unfinished:
            print(f"{name}: {data.name} has not come to its end", file=sys.stderr)
            continue
        table = f"{table_of(data)}\n\n{made_from(data)}"
        print(f"{table}\n")
        page = put_in(page, name, table)
    path.write_text(page, encoding="utf-8")


def made_from(data: CampaignData) -> str:
    """Where a table comes from: campaign, runs of each setting, and how long one is if stated."""
    counts = sorted({point.n for point in data.throughput})
    runs = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    invalid = sum(point.invalid for point in data.throughput)
    left_out = f"; {invalid} runs left out as not valid" if invalid else ""
    stated = (row.get("duration_s") for row in data.rows)
    lengths = sorted({length for length in stated if length is not None})
    seconds = ", ".join(f"{length:g}" for length in lengths)
    long = f" of {seconds} s" if seconds else ""
    return f"Campaign {data.name}: {runs} runs{long} of each setting{left_out}."


def markdown(head: Sequence[str], rows: Rows) -> str:
    """A table; the columns after the first stand on the right."""
    rule = [":--", *("--:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def put_in(page: str, name: str, table: str) -> str:
    """The page with the table between the marks of that name.

    Raises:
        ValueError: when the page has no such marks.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if begin not in page or end not in page:
        raise ValueError(f"no marks {begin} ... {end}")
    before, rest = page.split(begin, 1)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end, 1)[1]}"
