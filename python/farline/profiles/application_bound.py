"""What a host can take in, received and thrown away or moved to the application as well.

Tools such as iperf throw away what they receive. A real application moves it into its own memory
once more; He et al. 2002, section 3, has `app_perf` for that, and takes its figure, not iperf's,
for what a transfer can reach. Here both come from ordinary runs that differ in `receive_mode`
alone: `read` gives the raw bound, `copy` the application bound. The runs of one measurement have
labels in the store, by which they are found again: `{"app_perf": NAME, "pair": N}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

LABEL = "app_perf"
"""Label of a stored run that is part of a measurement; its value names the measurement."""

RAW, APPLICATION = "read", "copy"
"""The two receive modes that are compared."""

TRANSPORTS = ("tcp", "udp")
"""Transports whose receiver can do both."""

RATE_SHARE = 0.95
"""Share of the application bound that is worth stating as a sending rate: He et al. 2002, section
3, stays 5 % below what was measured."""

AS_ASKED = 0.97
"""Share of a stated rate from which the rate was the limit and not the host."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Bound:
    """The application bound of one measurement: one server, one direction.

    `runs_bps` is what came in each run, payload bits per second of all streams; `asked_bps` the
    rate that was stated for all streams, 0 for none.
    """

    transport: str
    direction: str
    streams: int
    started_at: str
    asked_bps: float
    runs_bps: tuple[float, ...]

    @property
    def application_bps(self) -> float:
        """Median of what came and was moved."""
        return median(self.runs_bps)

    @property
    def rate_bps(self) -> float:
        """Sending rate of each stream to state for RBUDP."""
        return RATE_SHARE * self.application_bps / self.streams

    @property
    def only_as_asked(self) -> bool:
        """Whether the stated rate was the limit, so that the bound is that or more."""
        return self.asked_bps > 0 and self.application_bps >= AS_ASKED * self.asked_bps


@dataclass(frozen=True)
class Pair:
    """Two runs, one in each mode: what came, payload bits per second of all streams."""

    raw: Record
    application: Record

    @property
    def raw_bps(self) -> float:
        """What came and was thrown away."""
        return received_bps(self.raw)

    @property
    def application_bps(self) -> float:
        """What came and was moved once more."""
        return received_bps(self.application)

    @property
    def ratio(self) -> float:
        """What is left of the raw bound with one copy more."""
        return self.application_bps / self.raw_bps if self.raw_bps else 0.0


def raw_bps(pairs: Sequence[Pair]) -> float:
    """Median of what came and was thrown away."""
    return median(pair.raw_bps for pair in pairs)


def ratio(pairs: Sequence[Pair]) -> float:
    """Median of the pairs' ratios: the two runs of a pair saw much the same machine."""
    return median(pair.ratio for pair in pairs)


def received_bps(record: Record) -> float:
    """What came of a run in one direction: steady where that is known, else over the whole run."""
    way = (record.get("summary") or {}).get(record["spec"].get("direction", "forward"))
    if not way:
        return 0.0
    steady = way.get("steady_bps")
    return float(way["total_bps"] if steady is None else steady)


def pairs_of(runs: Iterable[tuple[int, Record]]) -> list[Pair]:
    """The pairs among records, each with the number of its pair.

    Runs that are not complete do not count, nor do pairs of which one is missing.
    """
    found: dict[int, dict[str, Record]] = {}
    for number, record in runs:
        if record["status"] == "complete":
            found.setdefault(number, {})[_mode(record)] = record
    whole = (pair for _, pair in sorted(found.items()) if {RAW, APPLICATION} <= pair.keys())
    return [Pair(pair[RAW], pair[APPLICATION]) for pair in whole]


def _mode(record: Record) -> str:
    spec = record["spec"]
    return str((spec.get(spec["transport"]) or {}).get("receive_mode", RAW))


def bound_of(records: Sequence[Record]) -> Bound:
    """The bound that runs of one measurement in mode `copy` give; at least one."""
    spec = records[0]["spec"]
    streams = int(spec.get("streams") or 1)
    return Bound(
        transport=spec["transport"],
        direction=spec.get("direction", "forward"),
        streams=streams,
        started_at=min(str(record["started_at"]) for record in records),
        asked_bps=float(spec.get("rate_bps") or 0) * streams,
        runs_bps=tuple(received_bps(record) for record in records),
    )


def bounds_of(rows: Iterable[Mapping[str, Any]]) -> list[Bound]:
    """The bounds of every measurement among rows of the runs table, oldest first.

    A row needs the columns `labels` and `record`, both JSON texts.
    """
    named: dict[str, list[Record]] = {}
    for row in rows:
        labels = json.loads(row["labels"] or "{}")
        record = json.loads(row["record"])
        if LABEL in labels and record["status"] == "complete" and _mode(record) == APPLICATION:
            named.setdefault(str(labels[LABEL]), []).append(record)
    return sorted(map(bound_of, named.values()), key=lambda bound: bound.started_at)


def newest_bound(bounds: Iterable[Bound], direction: str) -> Bound | None:
    """The newest bound in the direction of a run, of bounds oldest first; None without any."""
    fitting = [bound for bound in bounds if bound.direction == direction]
    return fitting[-1] if fitting else None
