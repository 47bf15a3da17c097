"""Writes the results of both benches into docs/design/emulator.md, between its two marks.

`make emulator-table` measures and writes; `python benches/_emulator/table.py` only writes what
`benches/results/` has. Rows of a short run, and groups that did not come to their end, are refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benches" / "results"
PAGE = ROOT / "docs" / "design" / "emulator.md"
BENCHES = ("emulator-accuracy", "emulator-throughput")
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"

Row = Mapping[str, Any]

HEAD = (
    "| case | stated | measured | unit | allowed | ratio | holds |",
    "|---|---:|---:|---|---|---:|---|",
)


def placed(page: str, table: str) -> str:
    """The page with the table between its marks instead of what is there.

    # Errors
    ValueError if a mark is missing, there twice, or the two are the wrong way round.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"{BEGIN} and {END} must be there once each, in this order")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def table_of(documents: Iterable[Mapping[str, Any]]) -> str:
    """Both benches' rows in Markdown, with the machine they come from."""
    parts = []
    for document in documents:
        check(document)
        parts.append(f"### {document['name']}\n\n{provenance(document)}")
        for group in document["groups"]:
            members = [line(row) for row in document["rows"] if row["group"] == group]
            parts.append("\n".join([f"#### {group}", "", *HEAD, *members]))
    return "\n\n".join(parts)


def check(document: Mapping[str, Any]) -> None:
    """Refuses what is no whole measurement.

    # Errors
    ValueError with the groups to run again.
    """
    rows = document["rows"]
    whole = {row["group"] for row in rows}
    whole -= {row["group"] for row in rows if row["short"] or not row["complete"]}
    missing = [group for group in document["groups"] if group not in whole]
    if missing:
        raise ValueError(f"{document['name']}: missing, short or unfinished: {', '.join(missing)}")


def provenance(document: Mapping[str, Any]) -> str:
    """What was measured when and on what."""
    host, rows = document["host"], document["rows"]
    memory_gib = host["memory_bytes"] / 2**30
    days = sorted({row["measured_at"][:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    short = sum(not row["reached"] for row in rows)
    return (
        f"Measured {when}: {host['cpu']['online']} CPUs ({host['cpu']['model']}), "
        f"{memory_gib:.0f} GiB, Linux {host['kernel'].split('-')[0]}. "
        f"{len(rows)} rows, {short} short of what they must be."
    )


def line(row: Row) -> str:
    """One row; the median, and the range where there are several values."""
    measured = f"{row['ours']:.6g}"
    if len(row["measured"]) > 1:
        low, high = min(row["measured"]), max(row["measured"])
        measured += f" ({low:.6g} to {high:.6g})"
    holds = "yes" if row["reached"] else "**no**"
    if not row["valid"]:
        holds = "**no: not valid**"
    case = f"{row['case']}; {row['note']}" if row["note"] else row["case"]
    ratio = f"{row['ratio']:.2f}" if row["ratio"] < 100 else "> 100"
    cells = (case, f"{row['peer']:.6g}", measured, row["unit"], row["allowed"], ratio, holds)
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Reads results, writes the page; 1 with a line if something is missing."""
    try:
        documents = [
            json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in BENCHES
        ]
        page = placed(PAGE.read_text(encoding="utf-8"), table_of(documents))
    except (OSError, ValueError) as problem:
        print(f"emulator-table: {problem}", file=sys.stderr)
        return 1
    PAGE.write_text(page, encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
