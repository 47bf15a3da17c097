"""Cells of rows in memory and of the store's query, which agree on everything they both know."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest

from farline.profiles.cell import BUCKET_SLACK, BUCKETS_PER_OCTAVE
from farline.profiles.cells import cells_from_table, cells_of
from farline.store.transfers import cell_query, open_transfers, transfer_schema


def test_the_query_and_the_cells_count_by_the_same_buckets() -> None:
    assert cell_query.BUCKETS_PER_OCTAVE == BUCKETS_PER_OCTAVE
    assert cell_query.BUCKET_SLACK == BUCKET_SLACK


def rows() -> pyarrow.Table:
    """Rates of all kinds, powers of two and edges of buckets among them; some rows failed."""
    random = np.random.default_rng(9)
    count = 3000
    rate = np.exp2(random.uniform(10, 36, count))
    rate[:500] = np.exp2(random.integers(64 * 20, 64 * 35, 500) / 64)
    rtt = np.round(random.choice([0.004, 0.005, 12.345, 91.6, 366.0], count), 3)
    complete = random.random(count) > 0.1
    given = {
        "tool": ["iperf3"] * count,
        "modality": ["T"] * count,
        "duration_s": random.uniform(1, 20, count),
        "bytes": random.integers(1, 10**12, count),
        "rate_bps": [value if good else None for value, good in zip(rate, complete, strict=True)],
        "complete": complete,
        "rtt_ms": [None if place % 50 == 0 else value for place, value in enumerate(rtt.tolist())],
        "streams": random.choice([1, 10], count),
        "source": ["drawn"] * count,
    }
    schema = transfer_schema()
    columns = [
        pyarrow.array(given[name], schema.field(name).type)
        if name in given
        else pyarrow.nulls(count, schema.field(name).type)
        for name in schema.names
    ]
    return pyarrow.table(columns, schema=schema)


def test_the_stores_query_gives_the_cells_of_the_rows() -> None:
    table = rows()
    mine = cells_of(table, by=["streams"])
    with open_transfers(tables=[table]) as transfers:
        theirs = cells_from_table(transfers.cells(by=["streams"]), by=["streams"])
    assert [(dict(cell.keys), cell.rtt_ms) for cell in theirs] == [
        (dict(cell.keys), cell.rtt_ms) for cell in mine
    ]
    for cell, stored in zip(mine, theirs, strict=True):
        assert (stored.n, stored.failed) == (cell.n, cell.failed)
        assert stored.histogram == cell.histogram
        assert stored.moved_bytes == cell.moved_bytes
        assert stored.sum_bps == pytest.approx(cell.sum_bps, rel=1e-12)
        assert stored.sum_square == pytest.approx(cell.sum_square, rel=1e-12)
        assert stored.busy_s == pytest.approx(cell.busy_s, rel=1e-12)
        assert (stored.low_bps, stored.high_bps) == (cell.low_bps, cell.high_bps)
        assert stored.sd_bps == pytest.approx(cell.sd_bps, rel=1e-9)
