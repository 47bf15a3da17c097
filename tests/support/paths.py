"""Emulated paths made by hand: what a record says of one, and samples of its link."""

from __future__ import annotations

from typing import Any

import numpy as np

from farline.spec._types import LINK_SAMPLE_COLUMNS

RATE_BPS = 1_000_000_000


def make_stamp(*reasons: str) -> dict[str, Any]:
    """A stamp; with reasons, of a run that is not valid."""
    return {
        "valid": not reasons, "reasons": list(reasons), "wall_s": 1.1, "deliveries": 20_000,
        "lateness_p50_us": 20.0, "lateness_p99_us": 130.0, "lateness_max_us": 900.0,
        "steal_s": 0.01, "ring_drops": 0, "emulator_drops": 0, "receive_buffer_drops": 0,
        "memory_prunes": 0, "unexplained_packets": 0,
    }  # fmt: skip


def make_topology(rtt_s: float = 0.0118, loss: float | None = None) -> dict[str, Any]:
    """Two hosts, one link of a gigabit."""
    pipe: dict[str, Any] = {
        "rate_bps": RATE_BPS, "delay_s": rtt_s / 2, "jitter_shape": "uniform",
        "queue": {"discipline": "drop-tail", "ecn": False},
        "loss": {} if loss is None else {"random": loss}, "corrupt_hidden": False,
    }  # fmt: skip
    return {
        "schema": 1, "name": "back-to-back", "seed": 1, "mode": "shared", "interval_s": 0.1,
        "hosts": [{"name": "a"}, {"name": "b"}],
        "links": [{"name": "link", "a": "a", "b": "b", "forward": pipe}],
    }  # fmt: skip


def make_path(
    rtt_s: float = 0.0118, loss: float | None = None, reasons: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What a record says of its path; with reasons, the run is not valid."""
    return {
        "testbed": "back-to-back", "client_host": "a", "server_host": "b", "rtt_s": rtt_s,
        "rate_bps": RATE_BPS, "topology": make_topology(rtt_s, loss), "stamp": make_stamp(*reasons),
    }  # fmt: skip


def make_link_samples(rows: int = 5) -> dict[str, np.ndarray[Any, Any]]:
    """Samples of one link, both ways: the queue of the first fills step by step and drops."""
    steps = np.tile(np.arange(rows, dtype=np.int64), 2)
    way = np.repeat(np.array([0, 1], dtype=np.int64), rows)
    columns = {name: np.zeros(2 * rows, dtype=np.int64) for name in LINK_SAMPLE_COLUMNS}
    columns.update(
        direction=way, start_us=5_000_000 + steps * 100_000, end_us=5_100_000 + steps * 100_000,
        in_packets=np.full(2 * rows, 1000, np.int64), out_packets=np.full(2 * rows, 990, np.int64),
        out_bytes=np.full(2 * rows, 12_000_000, np.int64),
        tail_drop_packets=np.where((way == 0) & (steps == rows - 1), 7, 0),
        backlog_bytes=np.where(way == 0, steps * 100_000, 0),
        backlog_max_bytes=np.where(way == 0, steps * 120_000, 0),
        rate_bps=np.full(2 * rows, RATE_BPS, np.int64),
        delay_ns=np.full(2 * rows, 5_900_000, np.int64),
    )  # fmt: skip
    return columns
