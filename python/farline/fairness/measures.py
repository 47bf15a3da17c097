"""Measures of how a line is shared: Jain's index, max-min shares, utilisation, harm.

Sources by short name are in docs/references.md. None of them says everything: Jain's index does
not say who is hurt and knows no demands, max-min distance says who comes short but not by whose
doing, and harm says what one side does to the other compared with being alone. Print them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Rates = Sequence[float]
"""Rates of one unit, each at least 0."""


def jain(rates: Rates) -> float:
    """Jain's index (Jain, Chiu and Hawe 1984): the squared sum over n times the sum of squares.

    From 1/n (one has all) to 1 (all have the same); k/n is as fair as k equal sharers of n. It
    does not change when all rates are scaled. 1 where nobody has anything.

    Raises:
        ValueError: for no rate, or one that is below 0 or infinite.
    """
    _check(rates)
    # Scaled by the largest, so that squares of rates neither overflow nor vanish.
    largest = max(rates)
    if largest == 0:
        return 1.0
    scaled = [rate / largest for rate in rates]
    return math.fsum(scaled) ** 2 / (len(scaled) * math.fsum(rate * rate for rate in scaled))


def demand_jain(rates: Rates, demands: Rates, capacity: float) -> float:
    """Jain's index of rates over max-min fair shares: 1 where all have what is theirs.

    The raw index calls a sender unfairly treated that asked for little and got it; Jain, Chiu and
    Hawe 1984 (section 3) therefore take allocations over what is right for each, here the max-min
    fair share. Who asks for nothing has no say.

    Raises:
        ValueError: as `max_min_shares`.
    """
    shares = max_min_shares(demands, capacity)
    _check_lengths(rates, shares)
    asked = [rate / share for rate, share in zip(rates, shares, strict=True) if share > 0]
    return jain(asked) if asked else 1.0


def max_min_shares(demands: Rates, capacity: float, weights: Rates | None = None) -> list[float]:
    """Max-min fair shares of `capacity` by water-filling (Bertsekas and Gallager 1992, 6.5.2).

    Nobody gets more than it demands; what small demands leave is divided among the others, in
    proportion to `weights` (equal unless given: the number of flows of each, for shares per flow).
    A demand may be infinite.

    Raises:
        ValueError: for no demand, one below 0, a weight not above 0, or no capacity.
    """
    _check([0.0 if demand == math.inf else demand for demand in demands])
    weights = [1.0] * len(demands) if weights is None else weights
    _check_lengths(demands, weights)
    if not 0 < capacity < math.inf or not all(0 < weight < math.inf for weight in weights):
        raise ValueError("capacity and weights must be finite and above 0")
    shares = [0.0] * len(demands)
    left, open_ones = capacity, list(range(len(demands)))
    # Who demands least for its weight is served first: the level of the water only rises.
    for index in sorted(open_ones, key=lambda one: demands[one] / weights[one]):
        level = left / math.fsum(weights[one] for one in open_ones)
        shares[index] = min(demands[index], level * weights[index])
        left = max(0.0, left - shares[index])
        open_ones.remove(index)
    return shares


def max_min_distance(rates: Rates, demands: Rates, capacity: float) -> float:
    """How far the worst-served is below its max-min fair share: 0 none, 1 has nothing of it.

    Raises:
        ValueError: as `max_min_shares`.
    """
    shares = max_min_shares(demands, capacity)
    _check_lengths(rates, shares)
    short = [
        max(0.0, share - rate) / share
        for rate, share in zip(rates, shares, strict=True)
        if share > 0
    ]
    return max(short, default=0.0)


def min_max_ratio(rates: Rates) -> float:
    """Smallest over largest rate (RFC 5166, section 2.4); 1 if nobody has anything.

    Raises:
        ValueError: for no rate, or one that is below 0 or infinite.
    """
    _check(rates)
    return min(rates) / max(rates) if max(rates) > 0 else 1.0


def utilisation(rates: Rates, capacity: float) -> float:
    """The part of the line that is used (Yu et al. 2014, Fig. 3: transfer and background).

    Raises:
        ValueError: for no rate, one below 0, or no capacity.
    """
    _check(rates)
    if not capacity > 0:
        raise ValueError("capacity must be above 0")
    return math.fsum(rates) / capacity


def share_taken(rate: float, fair_share: float) -> float:
    """How many times its fair share a side takes; 1 is its own, 2 of two equal sides is all.

    Raises:
        ValueError: for a rate below 0, or no share.
    """
    _check([rate])
    if not fair_share > 0:
        raise ValueError("a fair share must be above 0")
    return rate / fair_share


def harm_to_rate(alone: float, contended: float) -> float:
    """Harm to what is better the larger it is (Ware et al. 2019, section 4): (alone - c) / alone.

    1 is everything taken away, 0 none; below 0 the other side has helped, or the measurement
    scatters: it is not hidden. 0 where there was nothing to take away.

    Raises:
        ValueError: for a value below 0.
    """
    _check([alone, contended])
    return (alone - contended) / alone if alone > 0 else 0.0


def harm_to_cost(alone: float, contended: float) -> float:
    """Harm to what is better the smaller it is (Ware et al. 2019, section 4): (c - alone) / c.

    Delay and loss: 0.5 is twice the delay. Below 0 the other side has helped, as above.

    Raises:
        ValueError: for a value below 0.
    """
    _check([alone, contended])
    if contended > 0:
        return (contended - alone) / contended
    return 0.0 if alone == 0 else -math.inf


def fair_harm(alone: float, fair_share: float) -> float:
    """Harm that a side would suffer if the other took its fair share and no more.

    Two equal sides halve the line: a harm of 0.5 is then what fairness itself asks of each.

    Raises:
        ValueError: for a value below 0.
    """
    return max(0.0, harm_to_rate(alone, fair_share))


def _check(values: Rates) -> None:
    if not values or not all(0 <= value < math.inf for value in values):
        raise ValueError("values must be at least one finite number, none below 0")


def _check_lengths(one: Sequence[float], other: Sequence[float]) -> None:
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values beside {len(other)}")
