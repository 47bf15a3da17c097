"""Throughput of a run second by second, from its samples."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

_RAMP_SHARE = 0.3
"""Part at the start of a run that is no steady state."""


def rates_bps(samples: Mapping[str, Any], step_s: float = 1.0) -> tuple[list[float], list[float]]:
    """Middles of the steps in seconds and what the receivers took in each, in bit/s.

    Bytes of an interval are spread evenly over it. Without receivers' samples the senders' count.
    """
    roles = np.asarray(samples["role"])
    mine = roles == 1 if (roles == 1).any() else roles == roles
    starts, ends = (np.asarray(samples[name])[mine] / 1e6 for name in ("start_us", "end_us"))
    moved = np.maximum(np.asarray(samples["bytes"])[mine], 0)
    if not len(ends):
        return [], []
    edges = np.arange(0.0, float(ends.max()) + step_s / 2, step_s)
    rates = []
    for low, high in itertools.pairwise(edges):
        shared = np.clip(np.minimum(ends, high) - np.maximum(starts, low), 0, None)
        rates.append(float(8 * (moved * shared / np.maximum(ends - starts, 1e-9)).sum() / step_s))
    return [float(edge + step_s / 2) for edge in edges[:-1]], rates


def variation(samples: Mapping[str, Any], step_s: float = 0.5) -> float:
    """Standard deviation over mean of the steps behind the ramp; 0 where there are too few."""
    _, rates = rates_bps(samples, step_s)
    steady = rates[int(_RAMP_SHARE * len(rates)) :]
    mean = sum(steady) / len(steady) if steady else 0.0
    return float(np.std(steady) / mean) if len(steady) > 2 and mean else 0.0
