"""Whole campaigns made by hand: records and samples with the shapes that real ones have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from farline.store import Entry, Store
from farline.store.columns import run_row
from farline.store.entry import RunBundle
from tests.support.records import SAMPLE_COLUMNS, make_record, make_spec

CAMPAIGN = "demo-20261121-200000"
KIB = 1024


@dataclass(frozen=True)
class MadeRun:
    """One run as it would come from a measurement."""

    record: dict[str, Any]
    samples: dict[str, np.ndarray[Any, Any]]
    labels: dict[str, Any] = field(default_factory=dict)

    @property
    def row(self) -> dict[str, Any]:
        """The run as the store flattens it."""
        return run_row(Entry(self.record, CAMPAIGN, self.labels))


def made_campaign(
    streams: Sequence[int] = (1, 2, 4, 8),
    blocks: Sequence[int] = (16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB),
    controls: Sequence[str] = ("cubic", "bbr"),
    repetitions: int = 5,
    direction: str = "forward",
    failing: Mapping[int, str] | None = None,
    duration_s: float = 10.0,
) -> list[MadeRun]:
    """Runs of a full grid in blocks, each opened by the reference, which is the grid's first.

    `failing` names runs, by their number, that end as "failed" or "partial".
    """
    return list(_runs(streams, blocks, controls, repetitions, direction, failing or {}, duration_s))


def fill_store(path: Path, runs: Sequence[MadeRun]) -> Store:
    """A store that holds `runs` as one campaign."""
    store = Store(path)
    for run in runs:
        store.append(RunBundle(run.record, run.samples, campaign=CAMPAIGN, labels=run.labels))
    return store


def _runs(
    streams: Sequence[int],
    blocks: Sequence[int],
    controls: Sequence[str],
    repetitions: int,
    direction: str,
    failing: Mapping[int, str],
    duration_s: float,
) -> Iterator[MadeRun]:
    chance = np.random.default_rng(7)
    grid = list(product(streams, blocks, controls))
    number = 0
    for block in range(repetitions):
        order = [grid[index] for index in chance.permutation(len(grid))]
        for slot, setting in enumerate([grid[0], *order]):
            labels = {"block": block, "slot": slot, "attempt": 0, "reference": slot == 0}
            status = failing.get(number, "complete")
            yield _run(number, setting, direction, status, labels, duration_s, chance)
            number += 1


def _run(
    number: int,
    setting: tuple[int, int, str],
    direction: str,
    status: str,
    labels: dict[str, Any],
    duration_s: float,
    chance: np.random.Generator,
) -> MadeRun:
    count, block_bytes, control = setting
    spec = make_spec(
        streams=count,
        block_bytes=block_bytes,
        direction=direction,
        duration_s=duration_s,
        tcp={"congestion_control": control},
    )
    bps = level_bps(count, block_bytes, control) * float(chance.normal(1.0, 0.02))
    error = {"kind": "timeout", "message": "nothing came from the server for 30 s"}
    record = make_record(
        number, spec, bps=bps, status=status, error=error if status != "complete" else None
    )
    if status != "failed":
        _fill_in(record, count, bps, direction)
    ways = ("forward", "reverse") if direction == "bidirectional" else (direction,)
    share = duration_s * (0.4 if status == "partial" else 1.0)
    samples = made_samples(ways, count, bps, share, chance) if status != "failed" else {}
    return MadeRun(record, samples, labels)


def level_bps(count: int, block_bytes: int, control: str) -> float:
    """A response with the usual shape: rises with the block, peaks at a few streams."""
    per_call = block_bytes / (block_bytes + 48 * KIB)
    sharing = count**0.55 / (1 + 0.055 * (count - 1) ** 1.5)
    return float(21e9 * per_call * sharing * (1.0 if control == "cubic" else 0.86))


def _fill_in(record: dict[str, Any], count: int, bps: float, direction: str) -> None:
    summary = record["summary"]
    summary["cpu_s_per_gb"] = 0.16 + 0.02 * count + 1.1e9 / bps
    if direction == "bidirectional":
        summary["reverse"] = {**summary["forward"], "total_bps": 0.8 * bps}
    elif direction == "reverse":
        summary["forward"], summary["reverse"] = None, summary["forward"]
    limit = "receiver-cpu" if count > 2 else "sender-cpu" if bps > 9e9 else "application"
    record["verdict"] = {
        "limit": limit,
        "line": f"limited by {limit.replace('-', ' ')}",
        "evidence": ["receiver threads used 0.98 of a CPU each", "cwnd-limited 2 % of the time"],
        "remedies": ["farline probe --receive-mode discard"],
    }


def made_samples(
    ways: Sequence[str],
    count: int,
    bps: float,
    duration_s: float,
    chance: np.random.Generator,
    interval_s: float = 0.1,
) -> dict[str, np.ndarray[Any, Any]]:
    """Samples of both ends of `count` streams each way, with a ramp and some noise."""
    rows = max(1, round(duration_s / interval_s))
    parts = []
    for way_number, way in enumerate(ways):
        sender = 0 if way == "forward" else 1
        for stream in range(count):
            moved = _stream_bytes(bps / count, rows, interval_s, chance)
            number = way_number * count + stream
            parts.append(_end_rows(sender, 0, number, moved, interval_s))
            parts.append(_end_rows(1 - sender, 1, number, moved, interval_s))
    return {name: np.concatenate([part[name] for part in parts]) for name in SAMPLE_COLUMNS}


def made_udt_samples() -> dict[str, np.ndarray[Any, Any]]:
    """A UDT run of two streams: paced in the second half, three packets lost in each interval."""
    columns = made_samples(("forward",), 2, 8e9, 2.0, np.random.default_rng(3))
    sends, paced = columns["role"] == 0, columns["start_us"] >= 1_000_000
    columns["flight_packets"] = np.where(sends, 700, -1)
    columns["send_period_ns"] = np.where(sends, np.where(paced, 1_500, 0), -1)
    columns["packets"] = np.full(len(sends), 1_000)
    columns["lost_packets"] = np.where(sends, -1, 3)
    return columns


def _stream_bytes(
    bps: float, rows: int, interval_s: float, chance: np.random.Generator
) -> np.ndarray[Any, Any]:
    ramp = 1 - np.exp(-(np.arange(rows) + 0.5) * interval_s / 0.25)
    noise = chance.normal(1.0, 0.04, rows)
    return np.asarray(np.maximum(0, bps / 8 * interval_s * ramp * noise), dtype=np.int64)


def _end_rows(
    end: int, role: int, stream: int, moved: np.ndarray[Any, Any], interval_s: float
) -> dict[str, np.ndarray[Any, Any]]:
    rows = len(moved)
    step = round(interval_s * 1e6)
    columns = {name: np.full(rows, -1, dtype=np.int64) for name in SAMPLE_COLUMNS}
    start = np.arange(rows, dtype=np.int64) * step + (37 * (stream + 1) if rows > 1 else 0)
    start[0] = 0
    columns.update(
        end=np.full(rows, end, dtype=np.int64),
        role=np.full(rows, role, dtype=np.int64),
        stream=np.full(rows, stream, dtype=np.int64),
        start_us=start,
        end_us=np.append(start[1:], rows * step),
        bytes=moved,
    )
    if role == 0:
        fill = moved / max(1, moved.max())
        columns["rtt_us"] = (90 + 160 * fill + 6 * math.sqrt(stream + 1)).astype(np.int64)
        columns["cwnd_bytes"] = (65_536 + 3_000_000 * fill).astype(np.int64)
    return columns
