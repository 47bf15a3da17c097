"""Transfers made by hand: tables with the columns of a transfer, seeded."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from farline.spec.infrastructure import Connection, Infrastructure, Site
from farline.store.transfers import transfer_schema

START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
SITES = ("ANL", "BNL", "ORNL")
RTTS_MS = {("ANL", "BNL"): 22.6, ("ANL", "ORNL"): 11.8, ("BNL", "ORNL"): 17.2}


def three_sites(**capacities: float) -> Infrastructure:
    """Three sites with hosts such as `dtn1.anl`; `ANL_BNL=1e11` states a capacity of its own."""
    connections = [
        Connection(pair, rtt_ms, capacities.get("_".join(pair))) for pair, rtt_ms in RTTS_MS.items()
    ]
    connections += [Connection((site, site), 0.4) for site in SITES]
    sites = tuple(Site(name, (f"*.{name.lower()}",)) for name in SITES)
    return Infrastructure("three", sites, tuple(connections), 1e10)


def transfers_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows that name only what matters; the others are null, or what is never null."""
    base = {"tool": "test", "modality": "E", "complete": True, "source": "by hand"}
    return pa.Table.from_pylist([base | row for row in rows], transfer_schema())


def random_transfers(count: int, seed: int = 1) -> pa.Table:
    """Transfers of every kind: between known and unknown hosts, with and without RTT, failed ones,
    rates that are powers of two or none at all."""
    draw = np.random.default_rng(seed)
    hosts = [f"dtn{number}.{site.lower()}" for site in SITES for number in (1, 2)] + ["elsewhere"]
    rates = 10.0 ** draw.uniform(6, 10.5, count)
    rates[::7] = 2.0 ** draw.integers(20, 36, len(rates[::7]))
    rates[3::41] = draw.choice([0.0, -1.0, np.nan, np.inf], len(rates[3::41]))
    durations = draw.uniform(0.5, 300, count)
    starts = draw.integers(0, 60 * 86_400_000_000, count)
    rtts = draw.choice([0.1, 11.804, 22.6, 22.606, 183.0, 365.996, np.nan], count)
    some = draw.uniform(size=(count, 4)) < 0.9
    rows = [
        {
            "tool": str(draw.choice(["gridftp", "iperf3"])),
            "modality": str(draw.choice(["T", "E"])),
            "started_at": START + datetime.timedelta(microseconds=int(starts[at])),
            "duration_s": float(durations[at]),
            "bytes": int(draw.integers(1, 2**52)) if some[at, 0] else None,
            "rate_bps": float(rates[at]),
            "complete": bool(some[at, 1]),
            "from_host": str(draw.choice(hosts)) if some[at, 2] else None,
            "to_host": str(draw.choice(hosts)),
            "rtt_ms": None if np.isnan(rtts[at]) else float(rtts[at]),
            "streams": int(draw.choice([1, 4, 16])) if some[at, 3] else None,
        }
        for at in range(count)
    ]
    return transfers_table(rows)
