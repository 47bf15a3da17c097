"""What is found about an infrastructure: causes, what mending them would gain, what to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CauseKind = Literal[
    "window",
    "io",
    "site",
    "path",
    "streams",
    "capacity",
    "drift",
    "tool",
    "loss",
    "well-used",
]
"""window: buffers hold n W / RTT; io: a site's host or file system holds rates at a level whatever
the RTT; site: everything to and from one site is slow, in proportion; path: so is what goes between
two sites, and nothing else of theirs; streams: more streams would lift it; capacity: the line is
full; drift: it got slower over time; tool: file transfers stay below both network and file systems;
loss: falls with RTT as losses make TCP fall; well-used: nothing to mend."""

Part = Literal["network", "host", "file system", "tool", "whole"]


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause, for one site or (None) for all, ranked by what mending it would gain.

    `gain_bps` is what the mean over all measured pairs would rise by; `gain_share` the same over
    what it is. `strength` is how clearly the evidence tells this cause from the others, 0 to 1.
    """

    kind: CauseKind
    part: Part
    site: str | None
    line: str
    gain_bps: float
    gain_share: float
    strength: float
    evidence: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    kind_open: bool = False
    """Whose it is is sure, of which kind is not: the line says what it may be as well."""
    sites: tuple[str, ...] = ()
    """Both ends where it is a path's; empty otherwise."""


@dataclass(frozen=True, slots=True)
class NextMeasurement:
    """A measurement that would tell most: what, between whom, and which question it answers."""

    what: str
    sites: tuple[str, ...]
    why: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class SiteRank:
    """A site beside the others: its part of what is lost. `ratio` is its rates over those that
    the other sites reach at the same RTTs; `gain_bps` as for a cause."""

    site: str
    n: int
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    gain_bps: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Causes by gain, sites by gain; `not_enough` says what is missing where nothing is said."""

    lead: str
    causes: tuple[Cause, ...]
    sites: tuple[SiteRank, ...]
    next: tuple[NextMeasurement, ...]
    not_enough: str | None = None
