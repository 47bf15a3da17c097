"""One analysis in a process of its own, so that its memory is its own; prints JSON.

    python contender.py ours|by-connection|duckdb|polars FOLDER

`ours` makes the profile of the infrastructure with its quantiles and coefficients, `by-connection`
a profile for each pair of sites. The others only find the mean rate at each round-trip time.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def ours(folder: Path, by: tuple[str, ...] = ()) -> dict[str, Any]:
    """The door a user has: transfers, cells, a profile for each of the keys, its coefficients."""
    import itertools

    from _analytics.data import infrastructure
    from farline.profiles.cells import cells_from_table
    from farline.profiles.throughput_profile import ThroughputProfile
    from farline.store.transfers import open_transfers

    sites = infrastructure()
    with open_transfers(files=[str(folder / "*.parquet")], infrastructure=sites) as transfers:
        cells = cells_from_table(transfers.cells(by=by), by)
    cells.sort(key=lambda cell: str(cell.keys))
    scores = []
    for _, theirs in itertools.groupby(cells, key=lambda cell: str(cell.keys)):
        profile = ThroughputProfile.from_cells(list(theirs), capacity_bps=sites.capacity_bps)
        if len(profile) > 1:
            scores.append(profile.coefficients().c_uc.value)
    n = sum(cell.n for cell in cells)
    mean = sum(cell.sum_bps for cell in cells) / n
    return {"n": n, "mean_bps": mean, "cells": len(cells), "c_uc": scores[:3]}


def by_duckdb(folder: Path) -> dict[str, Any]:
    """The bare aggregation, as one would type it."""
    import duckdb

    duckdb.execute("set enable_progress_bar = false")
    found = duckdb.execute(
        "select round(rtt_ms, 2) as rtt, count(*), avg(rate_bps)"
        f" from '{folder}/*.parquet' where complete group by rtt"
    ).fetchall()
    return _totals([(int(n), float(mean)) for _, n, mean in found])


def by_polars(folder: Path) -> dict[str, Any]:
    """The same with polars, streaming."""
    import importlib

    pl: Any = importlib.import_module("polars")
    found = (
        pl.scan_parquet(f"{folder}/*.parquet")
        .filter(pl.col("complete"))
        .group_by(pl.col("rtt_ms").round(2))
        .agg(pl.len().alias("n"), pl.col("rate_bps").mean().alias("mean"))
        .collect(engine="streaming")
    )
    return _totals(list(zip(found["n"].to_list(), found["mean"].to_list(), strict=True)))


def _totals(groups: list[tuple[int, float]]) -> dict[str, Any]:
    n = sum(count for count, _ in groups)
    total = sum(count * mean for count, mean in groups)
    return {"n": n, "mean_bps": total / n, "cells": len(groups)}


CONTENDERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "ours": ours,
    "by-connection": lambda folder: ours(folder, ("site_pair",)),
    "duckdb": by_duckdb,
    "polars": by_polars,
}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    said = CONTENDERS[sys.argv[1]](Path(sys.argv[2]))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**said, "peak_bytes": peak_bytes}))
