"""Lines that are full: where nothing is to be mended but the line itself."""

from __future__ import annotations

import numpy as np

from farline.findings.bound_terms import Bools
from farline.findings.cause_text import basis
from farline.findings.diagnosis import USED, Diagnosis
from farline.findings.finding import percent
from farline.findings.infrastructure_finding import Cause
from farline.spec.units import rate_human

SLOWER = 0.8
"""Share of the usual capacity below which a full line is a slow one, which others would not be."""


def full_lines(diagnosis: Diagnosis) -> Cause | None:
    """`well-used` where all lines are full, `capacity` where slow ones among faster ones are."""
    table = diagnosis.table
    known = np.isfinite(table.capacity_bps)
    if not known.any():
        return None
    full = known & (table.rate_bps >= USED * table.capacity_bps)
    if known.all() and _all_used(diagnosis):
        share = percent(float(np.mean(table.rate_bps / table.capacity_bps)))
        line = f"the links are fully used, {share} of their capacity on average: nothing to fix"
        return Cause("well-used", "network", None, line, 0.0, 0.0, 1.0, (basis(table, known),))
    slow = full & (table.capacity_bps < SLOWER * float(np.median(table.capacity_bps[known])))
    return _slow_lines(diagnosis, slow) if slow.any() else None


def _all_used(diagnosis: Diagnosis) -> bool:
    table = diagnosis.table
    share = table.rate_bps / table.capacity_bps
    return bool(np.mean(share) >= USED and np.mean(share >= USED - 0.1) >= USED)


def _slow_lines(diagnosis: Diagnosis, slow: Bools) -> Cause:
    """Slow lines that are full; of one site where all of them end there."""
    table = diagnosis.table
    sites = [
        name
        for site, name in enumerate(table.sites)
        if np.all(table.touches(site)[slow]) and np.mean(slow[table.touches(site)]) >= USED
    ]
    site = sites[0] if len(sites) == 1 else None
    fast = table.rate_bps[~slow]
    usual = float(np.mean(fast)) if len(fast) else float(np.max(table.capacity_bps))
    lift = np.where(slow, np.maximum(usual - table.rate_bps, 0.0), 0.0)[diagnosis.target]
    gain, mean = float(np.mean(lift)), float(np.mean(table.rate_bps[diagnosis.target]))
    where = "some sites" if site is None else site
    line = (
        f"the links of {where} carry {rate_human(float(np.max(table.capacity_bps[slow])))} and "
        f"are full ({percent(float(np.mean((table.rate_bps / table.capacity_bps)[slow])))} of "
        f"that); paths over faster links reach {rate_human(usual)}"
    )
    remedy = f"a faster link: hosts elsewhere use up to {rate_human(usual)}"
    return Cause(
        "capacity", "network", site, line, gain, gain / mean, 1.0, (basis(table, slow),), (remedy,)
    )
