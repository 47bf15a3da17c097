"""Every site beside the others: its rates over what they reach at the same round-trip times.

What is left of each rate's logarithm above or below the law for all sites is shared out between
the two sites of its path by weighted least squares, all sites at once: a good site is not blamed
for the bad ones it talks to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from farline.findings.bound_terms import FULL
from farline.findings.diagnosis import Diagnosis
from farline.findings.infrastructure_finding import Cause, SiteRank
from farline.profiles.rate_interval import ratio_interval

PRIOR_SD = 1.0
"""Spread of sites' logarithms before any was measured; it matters where paths do not tell two
sites apart, and makes their intervals wide."""


def site_ranks(diagnosis: Diagnosis, causes: Sequence[Cause] = ()) -> tuple[SiteRank, ...]:
    """Sites by what mending them would gain, then by ratio.

    A site that a cause names has the cause's gain; another one gains what would bring it up to
    the others, if its interval lies below 1 as a whole, and else nothing.
    """
    table, best = diagnosis.table, diagnosis.best
    rows = diagnosis.target
    left = (table.log_rate - best.log_rate(table))[rows]
    weight = table.weight[rows]
    design = np.array(
        [table.touches(site)[rows] for site in range(len(table.sites))], dtype=float
    ).T
    normal = design.T @ (design * weight[:, None]) + np.eye(len(table.sites)) / PRIOR_SD**2
    covariance = np.linalg.inv(normal)
    rest = covariance @ (design.T @ (weight * left))
    free = max(1, len(left) - len(rest))
    unexplained = left - design @ rest
    dispersion = max(1.0, float(weight @ unexplained**2) / free)
    effect = rest + [_named_effect(diagnosis, site) for site in range(len(table.sites))]
    width = _quantile(diagnosis.confidence, free) * np.sqrt(dispersion * np.diag(covariance))
    gains = {cause.site: cause.gain_bps for cause in reversed(causes) if cause.kind != "drift"}
    ranks = []
    for site, name in enumerate(table.sites):
        found = ratio_interval(float(effect[site]), float(width[site]))
        low, high = found if found is not None else (None, None)
        slow = float(effect[site]) if high is not None and high < 1 else 0.0
        ranks.append(
            SiteRank(
                name,
                sum(row.n for row in diagnosis.measured.rows if name in row.pair),
                math.exp(effect[site]),
                low,
                high,
                gains[name] if name in gains else _gain(diagnosis, site, slow),
            )
        )
    return tuple(sorted(ranks, key=lambda rank: (-rank.gain_bps, rank.ratio)))


def _named_effect(diagnosis: Diagnosis, site: int) -> float:
    """Mean effect on a site's rows of what the best explanation says of this site alone."""
    table, best = diagnosis.table, diagnosis.best
    own = [term for term in best.terms if term.site == site]
    rows = diagnosis.target & table.touches(site)
    if not own or not rows.any():
        return 0.0
    effect = best.log_rate(table) - best.log_rate(table, without=own)
    return float(np.average(effect[rows], weights=table.weight[rows]))


def _quantile(confidence: float, degrees: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + confidence / 2))


def _gain(diagnosis: Diagnosis, site: int, slow: float) -> float:
    """What the mean of the target rows gains with a site as good as others; never above lines."""
    table = diagnosis.table
    rates = table.rate_bps[diagnosis.target]
    most = np.maximum(FULL * table.capacity_bps[diagnosis.target], rates)
    touched = table.touches(site)[diagnosis.target]
    better = np.where(touched, np.minimum(rates * math.exp(-slow), most), rates)
    return float(np.mean(better - rates))
