"""Rao et al. 2018: profiles from logs of production, and what its text says of coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from farline.reproduce.evidence import Evidence, above, below, equal, fact, larger
from farline.reproduce.item import Item
from farline.reproduce.items.analytics_parts import (
    made_profile,
    profile_picture,
    profiles_of,
    roughness,
    running_picture,
)
from farline.reproduce.made_logs import ALIKE, PETASCALE, PRODUCTION
from farline.reproduce.measured import Measured

if TYPE_CHECKING:
    import numpy.typing as npt

PAPER = "Rao et al. 2018"
GUIDE = "docs/guide/analyze.md"
_NOT_HERE = "The logs are not public. "


def production(measured: Measured) -> Evidence:
    """Fig. 1(c): unlike sites make a profile that is not smooth."""
    found = profiles_of(PRODUCTION)
    alike = profiles_of(ALIKE)
    whole, same = found["all"], alike["all"]
    rough, smooth = roughness(whole), roughness(same)
    return Evidence(
        [
            larger("The profile of unlike sites is rougher than that of like ones", rough, smooth,
                   0.5, "highly non-smooth"),
            larger("Its C_UC is lower", same.coefficients().c_uc.value,
                   whole.coefficients().c_uc.value, 0.05, "lower C_UC"),
        ],
        [profile_picture("fig-1c", "Made-up sites, unlike and alike", [whole, same])],
    )  # fmt: skip


def petascale(_: Measured) -> Evidence:
    """Fig. 14: four sites with 100 Gb/s."""
    found = profiles_of(PETASCALE, (("ANL", "ORNL"),))
    score = {name: profile.coefficients().c_uc.value for name, profile in found.items()}
    sites = [score[site] for site in PETASCALE.sites]
    share = _share_of_orders()
    return Evidence(
        [
            below("All sites are below 0.5", max(sites), 0.5, paper="below 0.5"),
            above("The infrastructure is above each site", score["all"], max(sites),
                  paper="higher than the sites"),
            above("ANL-ORNL is above both", score["ANL-ORNL"], max(score["ANL"], score["ORNL"]),
                  paper="higher than both"),
        ],
        [running_picture("fig-14c", found)],
        reason=f"Of 4000 drawn infrastructures of four sites {100 * share:.1f} % have this order of"
        " coefficients: C_UC of a site covers that site's round-trip times only, so those of sites"
        " and of the whole are not comparable (docs/design/analytics.md). The logs are made up, as"
        " the paper's are not public.",
        instead="farline says so beside the coefficients, and ranks sites over the round-trip times"
        " that all cover.",
    )  # fmt: skip


def esnet(_: Measured) -> Evidence:
    """Fig. 15: five sites with 10 Gb/s, transfers of at least 100 Mb/s."""
    found = profiles_of(PRODUCTION, (("ANL", "ORNL"),))
    score = {name: profile.coefficients().c_uc.value for name, profile in found.items()}
    others = [score[site] for site in PRODUCTION.sites if site not in ("ANL", "ORNL")]
    return Evidence(
        [
            below("The infrastructure", score["all"], 0.5, paper="0.343"),
            above("ANL and ORNL are above the other sites", min(score["ANL"], score["ORNL"]),
                  max(others), paper="above 0.5, others lower"),
            below("ANL-ORNL is below both", score["ANL-ORNL"], min(score["ANL"], score["ORNL"]),
                  paper="0.459, lower than either"),
        ],
        [running_picture("fig-15c", found)],
        notes=["The logs are made up: sites, L = 10 Gb/s and the way to the figures are the"
               " paper's; rates were chosen so that this order comes about: it is possible, no"
               " more. " + ", ".join(
                   f"{name} {value:.3f}" for name, value in score.items()) + "."],
    )  # fmt: skip


def text_range(_: Measured) -> Evidence:
    """Abstract: the coefficient is in [0, 1]."""
    places = np.linspace(0.0, 1.0, 2001)
    most = made_profile(places, [0.0 if x in (0.0, 1.0) else 1.0 for x in places], 1.0)
    least = made_profile(places, [1.0 if x in (0.0, 1.0) else 0.0 for x in places], 1.0)
    high, low = (one.coefficients().c_uc.value for one in (most, least))
    return Evidence(
        [below("C_UC of a profile that rises and falls", high, 1.0, paper="[0,1]"),
         above("C_UC of one that falls and rises", low, 0.0, paper="[0,1]")],
        reason=f"Profiles that rise somewhere have {low:.3f} to {high:.3f}; [0, 1] holds for those"
        " that never rise. Profiles of production do.",
    )  # fmt: skip


def text_convex(_: Measured) -> Evidence:
    """Section 4.2: convex as indicated by C_UC = 0.343."""
    flat = made_profile([0, 50, 100], [0.3, 0.3, 0.3], 1.0).coefficients()
    bent = made_profile(np.linspace(0, 1, 501), [1 / (1 + x) for x in np.linspace(0, 1, 501)], 1.0)
    return Evidence(
        [fact("A profile with C_UC below 0.5 is convex", False,
              f"the constant 0.3 has {flat.c_uc.value:.2f} and C_CC {flat.c_cc.value:+.3f}",
              "convex as indicated by C_UC")],
        reason="C_UC below 0.5 says nothing of the shape by itself: a constant 0.3 has 0.40, and"
        f" the convex 1/(1+x) has {bent.coefficients().c_uc.value:.3f}. C_CC says it.",
        instead="farline prints mean, C_CC and both ends beside C_UC.",
    )  # fmt: skip


def text_counts(_: Measured) -> Evidence:
    """Sections 3.1 and 4.1: numbers of round-trip times, combinations and connections."""
    return Evidence(
        [
            equal("Round-trip times of seven sites", math.comb(7, 2) + 7, 28),
            equal("Combinations of CC and P from 1, 2, 4, 8, 16", 5 * 5, 25),
            equal("Connections of four sites, each with each", 4 * 4, 16),
        ]
    )


def _share_of_orders(draws: int = 4000) -> float:
    """Share of infrastructures like `PETASCALE` with the order of Fig. 14: whole above each site,
    ANL-ORNL above both.
    """
    random = np.random.default_rng(2018)
    rtts = np.array(sorted(PETASCALE.rtt_ms.values()))
    pairs = sorted(PETASCALE.rtt_ms, key=lambda pair: PETASCALE.rtt_ms[pair])
    sites = list(PETASCALE.sites)
    files = random.uniform(10, 60, (draws, len(sites)))
    window = random.uniform(20, 150, draws)
    rates = np.stack(
        [np.minimum(np.minimum(files[:, sites.index(a)], files[:, sites.index(b)]),
                    8 * window / rtt) for (a, b), rtt in zip(pairs, rtts, strict=True)], axis=1,
    ) / 100  # fmt: skip
    of_site = {s: _c_uc(rtts, rates, [s in pair for pair in pairs]) for s in sites}
    whole = _c_uc(rtts, rates, [True] * len(pairs))
    both = _c_uc(rtts, rates, ["ANL" in pair or "ORNL" in pair for pair in pairs])
    order = np.logical_and.reduce(
        [whole > value for value in of_site.values()]
        + [both > of_site["ANL"], both > of_site["ORNL"]]
    )
    return float(order.mean())


def _c_uc(
    rtts: npt.NDArray[np.float64], rates: npt.NDArray[np.float64], kept: Sequence[bool]
) -> npt.NDArray[np.float64]:
    """C_UC of each row (draws,) over the round-trip times that are kept."""
    from farline.profiles.coefficients import uc_weights

    chosen = np.array(kept)
    found: npt.NDArray[np.float64] = rates[:, chosen] @ uc_weights(rtts[chosen]) + 0.25
    return found


ITEMS = (
    Item("analytics-fig1c", PAPER, "Fig. 1(c)", "Globus between production sites",
         "Differences of the sites make the profile highly non-smooth.", production,
         scaling=_NOT_HERE + "Made-up logs of five sites with their schema.", guide=GUIDE),
    Item("analytics-fig14", PAPER, "Fig. 14", "petascale sites",
         "All sites are below 0.5, the infrastructure is above each, ANL-ORNL above both.",
         petascale, scaling=_NOT_HERE + "Made-up logs of four sites with their schema.",
         guide=GUIDE),
    Item("analytics-fig15", PAPER, "Fig. 15", "production sites",
         "0.343 for the infrastructure; ANL and ORNL above 0.5; ANL-ORNL 0.459, below either.",
         esnet, scaling=_NOT_HERE + "Made-up logs of five sites with their schema.", guide=GUIDE),
    Item("analytics-text-range", PAPER, "abstract, text", "the range of C_UC",
         "C_UC is a value in [0, 1].", text_range, guide=GUIDE),
    Item("analytics-text-convex", PAPER, "section 4.2, text", "C_UC and convexity",
         "The profile is convex as indicated by C_UC = 0.343.", text_convex, guide=GUIDE),
    Item("analytics-text-counts", PAPER, "sections 3 and 4, text", "counts",
         "28 round-trip times, 25 combinations, 16 connections.", text_counts, guide=GUIDE),
)  # fmt: skip
