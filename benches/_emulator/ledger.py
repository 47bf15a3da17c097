"""Is every packet accounted for? Conservation in a link's samples, in packets and bytes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[np.int64]]

# The first link, from its end `a` to its end `b`.
FORWARD_LINK = (0, 0)

# Where a packet that came to a link can have gone, besides out of it.
DROPS = (
    "tail_drop_packets",
    "codel_drop_packets",
    "loss_packets",
    "cut_packets",
    "mtu_drop_packets",
)


def pipes(samples: Columns) -> list[tuple[int, int]]:
    """(link, direction) of every pipe there are samples of."""
    pairs = zip(samples["link"].tolist(), samples["direction"].tolist(), strict=True)
    return sorted(set(pairs))


def of_pipe(samples: Columns, link: int, direction: int) -> dict[str, NDArray[np.int64]]:
    """Samples of one direction of one link, in the order of time."""
    mine = np.flatnonzero((samples["link"] == link) & (samples["direction"] == direction))
    order = mine[np.argsort(samples["end_us"][mine], kind="stable")]
    return {name: column[order] for name, column in samples.items()}


def imbalance_packets(pipe: Columns) -> NDArray[np.int64]:
    """Packets in minus out, dropped and in flight, at the end of every interval, since the first.

    in = out − duplicated + drops of every kind + in flight; nothing may be in flight before the
    first.
    """
    gone = sum((pipe[name] for name in DROPS), pipe["out_packets"] - pipe["duplicated_packets"])
    balance: NDArray[np.int64] = np.cumsum(pipe["in_packets"] - gone) - pipe["in_flight_packets"]
    return balance


def worst_imbalance(samples: Columns) -> int:
    """Largest imbalance of any link at any time, in packets."""
    worst = [
        int(np.abs(imbalance_packets(of_pipe(samples, *pipe))).max()) for pipe in pipes(samples)
    ]
    return max(worst)
