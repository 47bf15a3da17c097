"""A workload as seven numbers, and the rate that published histories give it.

The coefficients are a ridge regression over 80,000 GridFTP transfers of 11 paths that the authors
of HARP (Arslan et al. 2016) published, each path weighing the same. They are of TCP between 2010
and 2015: what a path does today is learnt from its own transfers, and this is where it starts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from farline.estimating.workload import Workload

    Floats = npt.NDArray[np.float64]

SCALE: Floats = np.array([2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""Octaves of each feature that make a transfer another kind."""

FILE_SIZE = 0
"""Where the file size stands among the features."""

_CENTRE: Floats = np.array([24.0, 6.0, 0.0, 0.0, 0.0, 5.0, -2.0])
_SLOPES: Floats = np.array([0.295, 0.185, 0.27, 0.05, 0.027, -0.027, -0.37])
_LEVEL = 6.31
"""Natural logarithm of Mbit/s in the centre: 64 files of 16 MiB, one stream, 32 ms."""


def features(load: Workload) -> Floats:
    """Binary logarithms of mean file size, files, concurrency, parallelism, pipelining, round-trip
    time in ms, and the bandwidth-delay product over the window.

    What is not known of the path stands at the centre of the prior.
    """
    path = [_CENTRE[5], _CENTRE[6]]
    if load.rtt_s is not None:
        path[0] = math.log2(1e3 * load.rtt_s + 0.05)
        if load.link_bps and load.window_bytes:
            path[1] = math.log2(load.link_bps * load.rtt_s / 8 / load.window_bytes + 0.001)
    counts = (load.file_bytes, load.files, load.concurrency, load.parallelism, load.pipelining)
    return np.array([*(math.log2(max(count, 1.0)) for count in counts), *path])


_MOST: Floats = np.array([34.0, 13.0, 5.0, 5.0, 5.0, 9.0, 5.0])
"""Largest of each that the histories had: 16 GiB, 8,192 files, 32 of each setting, half a second.
Beyond it nobody has seen more speed, and files of a tebibyte do not go at a terabit."""


def prior(x: Floats) -> float:
    """Natural logarithm of the rate in Mbit/s that the published histories give these features."""
    return float(_LEVEL + _SLOPES @ (np.minimum(x, _MOST) - _CENTRE))
