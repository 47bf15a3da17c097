"""What a plan asserts of a transfer, and whether it holds.

```toml
[expect.cubic]
knee = { at_least = 0.4, at_most = 0.7 }   # as a share of the line
utilisation = { at_least = 0.9 }           # at every load
harm = { at_most = 0.6 }                   # at the largest load
```

`utilisation`, `jain_demand`, `max_min_distance` and `both_alone` are of every load, `falls` (what
the transfer gives up of each added unit of background before the knee), `knee` and `plateau` of the
curve; all other measures of `farline.fairness.contest.Point` are of the largest load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from farline.errors import SpecError
from farline.fairness.contest import Contest
from farline.spec.near import unknown

EVERY_LOAD = ("utilisation", "jain_demand", "max_min_distance")
"""Asserted at each load; of the others only the largest counts, where both want the line."""
OF_CURVE = ("knee", "plateau", "falls", "alone")
"""Knee, plateau and rate alone are shares of the line."""
LARGEST_LOAD = (
    "share", "harm", "harm_delay", "harm_loss", "harm_subject", "jain", "min_max",
    "convergence_s", "rtt_exponent",
)  # fmt: skip
NAMES = (*OF_CURVE, *EVERY_LOAD, *LARGEST_LOAD)
_ENDS = ("at_least", "at_most")


@dataclass(frozen=True)
class Bounds:
    """Ends of what is allowed; None is open."""

    at_least: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value lies within."""
        low, high = self.at_least, self.at_most
        return (low is None or value >= low) and (high is None or value <= high)

    @property
    def text(self) -> str:
        """The bounds for people."""
        ends = (("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{word} {value:g}" for word, value in ends if value is not None)

    def document(self) -> dict[str, float]:
        """As a plan has them."""
        ends = (self.at_least, self.at_most)
        return {name: end for name, end in zip(_ENDS, ends, strict=True) if end is not None}


@dataclass(frozen=True)
class Expectation:
    """One assertion, and what was measured; None where nothing is known of it."""

    subject: str
    name: str
    bounds: Bounds
    value: float | None
    load_bps: float | None = None
    """The load at which the measure was worst, of one that is asserted at every load."""

    @property
    def holds(self) -> bool:
        """Whether it does; what is not known does not."""
        return self.value is not None and self.bounds.holds(self.value)


def read_expected(subject: str, table: object) -> dict[str, Bounds]:
    """The assertions of one subject.

    Raises:
        SpecError: for an unknown measure, or bounds that are no numbers.
    """
    place = f"[expect.{subject}]"
    if not isinstance(table, Mapping):
        raise SpecError(f"{place}: must be a table")
    found = {}
    for name, raw in table.items():
        if name not in NAMES:
            raise SpecError(f"{place} {name}: unknown; {unknown(name, NAMES)}")
        found[name] = _bounds(f"{place} {name}", raw)
    return found


def _bounds(place: str, raw: Any) -> Bounds:
    allowed = "{ at_least = X, at_most = Y }"
    if not isinstance(raw, Mapping) or not raw or not set(raw) <= set(_ENDS):
        raise SpecError(f"{place}: {raw!r} is not {allowed}")
    for value in raw.values():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SpecError(f"{place}: {value!r} is not a number")
    bounds = Bounds(**{key: float(value) for key, value in raw.items()})
    low, high = bounds.at_least, bounds.at_most
    if low is not None and high is not None and low > high:
        raise SpecError(f"{place}: at_least {low:g} is above at_most {high:g}")
    return bounds


def expectations(
    wanted: Mapping[str, Mapping[str, Bounds]], contests: Mapping[str, Contest]
) -> Iterator[Expectation]:
    """Every assertion with what was measured; of a subject that was not measured nothing is."""
    for subject, bounds_of in wanted.items():
        contest = contests.get(subject)
        for name, bounds in bounds_of.items():
            value, load = (None, None) if contest is None else _measured(contest, name, bounds)
            yield Expectation(subject, name, bounds, value, load)


def _measured(contest: Contest, name: str, bounds: Bounds) -> tuple[float | None, float | None]:
    if name in OF_CURVE:
        return _of_curve(contest, name), None
    if name not in EVERY_LOAD:
        return contest.full.mean(name), contest.full.load_bps
    known = [(point.mean(name), point.load_bps) for point in contest.points]
    values = [(value, load) for value, load in known if value is not None]
    if not values:
        return None, None
    # The worst: outside of the bounds if any is, else the one nearest to an end.
    broken = [one for one in values if not bounds.holds(one[0])]
    pick = min if bounds.at_least is not None else max
    return pick(broken or values)


def _of_curve(contest: Contest, name: str) -> float | None:
    if name == "alone":
        return contest.alone_bps.mean / contest.capacity_bps
    knee = contest.knee
    if knee is None:
        return None
    if name == "falls":
        return knee.slope
    found = knee.load_bps if name == "knee" else knee.plateau_bps
    return found / contest.capacity_bps
