"""Where a run's warm-up ends, found from its samples.

MSER-5 (White, Cobb and Spratt 2000): means of batches of five samples; cut
where the squared standard error of the mean of what is left is smallest; no
answer when that is in the second half, since then nothing settled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BATCH_SAMPLES = 5
BATCHES_MIN = 10
SAMPLES_MIN = BATCH_SAMPLES * BATCHES_MIN
"""Samples MSER-5 needs before it says anything."""

_TAIL_BATCHES = 5
"""Batches always kept: the error of a mean of fewer is an accident."""


def mser5(samples: Sequence[float]) -> int | None:
    """How many samples at the start are warm-up; `None` if there are too few, or none settled."""
    batches = len(samples) // BATCH_SAMPLES
    if batches < BATCHES_MIN:
        return None
    means = np.asarray(samples[: batches * BATCH_SAMPLES], dtype=float)
    means = means.reshape(batches, BATCH_SAMPLES).mean(axis=1)
    errors = [_squared_error(means[cut:]) for cut in range(batches - _TAIL_BATCHES + 1)]
    cut = int(np.argmin(errors))
    return None if cut > batches / 2 else cut * BATCH_SAMPLES


def _squared_error(rest: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(np.sum((rest - rest.mean()) ** 2) / len(rest) ** 2)
