"""Logs for tests: samples of every format, and reading one into rows and a tally."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from farline.formats import Log, Tally, arrow_schema, read_log

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "logs"

Rows = list[dict[str, Any]]

MAPPING = (
    "from_host=site a, to_host=site b, rate_bps=throughput Mb/s:Mbit/s, rtt_ms=RTT,"
    " complete=state:ok, started_at=when, modality=T, tool='made up'"
)
"""Of the sample `table.csv`."""


def drained(log: Log) -> Rows:
    """All rows of a log; every table has the canonical schema."""
    rows: Rows = []
    for table in log.batches():
        assert table.schema.equals(arrow_schema())
        rows += table.to_pylist()
    assert len(rows) == log.tally.transfers + log.tally.failed
    return rows


def sample(name: str, **options: Any) -> tuple[Rows, Tally]:
    """Rows and tally of a sample."""
    log = read_log(SAMPLES / name, **options)
    return drained(log), log.tally


def given(folder: Path, data: bytes | str, kind: str, **options: Any) -> tuple[Rows, Tally]:
    """Rows and tally of a log with this content."""
    path = folder / "given.log"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    log = read_log(path, kind, **options)
    return drained(log), log.tally


def text_of(name: str) -> str:
    """The text of a sample."""
    return (SAMPLES / name).read_bytes().decode()


def compact(name: str) -> str:
    """A sample of one JSON document as one line."""
    return json.dumps(json.loads(text_of(name))) + "\n"


def bag(rows: Rows) -> Counter[str]:
    """Rows without order."""
    return Counter(repr(sorted(row.items(), key=lambda item: item[0])) for row in rows)


def facts(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    """Some columns of a row."""
    return tuple(row[name] for name in names)
