"""What an item came to: checks that hold or not, pictures, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from farline.plots.gallery import Picture

Verdict = Literal["agrees", "differs", "not possible here", "not measured"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the paper says, and whether it holds here.

    `paper` and `ours` are figures as people read them. `value` is what the next run is compared
    with, in any unit, None where there is no number; `margin` is what was allowed for, in the same
    unit.
    """

    text: str
    holds: bool
    ours: str
    paper: str = ""
    value: float | None = None
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Checks and pictures. `reason` says why a check fails, by what was measured; `instead` what
    farline does better than the paper's system; `notes` are facts beside it.
    """

    checks: Sequence[Check]
    pictures: Sequence[Picture] = ()
    reason: str = ""
    instead: str = ""
    notes: Sequence[str] = ()

    @property
    def verdict(self) -> Verdict:
        """`agrees` where all checks hold."""
        return "agrees" if all(check.holds for check in self.checks) else "differs"


def equal(text: str, ours: float, paper: float, within: float = 1e-9, unit: str = "") -> Check:
    """A figure that must come out as in the paper, within a share of it."""
    margin = within * abs(paper)
    holds = abs(ours - paper) <= margin
    said = (_figure(ours, unit), _figure(paper, unit))
    if not holds and said[0] == said[1]:  # they differ behind the digits that people read
        said = (f"{ours:.10g} {unit}".strip(), f"{paper:.10g} {unit}".strip())
    return Check(text, holds, *said, ours, margin)


def fact(text: str, holds: bool, ours: str, paper: str = "") -> Check:
    """Something that is so or not, without a number that may drift."""
    return Check(text, holds, ours, paper)


def above(
    text: str, ours: float, bound: float, margin: float = 0.0, unit: str = "", paper: str = ""
) -> Check:
    """A figure that must lie above a bound; short of it by no more than the margin, it does."""
    said = _asked(paper, "more than", bound, margin, unit)
    return Check(text, ours >= bound - margin, _figure(ours, unit), said, ours, margin)


def below(
    text: str, ours: float, bound: float, margin: float = 0.0, unit: str = "", paper: str = ""
) -> Check:
    """A figure that must lie below a bound; past it by no more than the margin, it does."""
    said = _asked(paper, "less than", bound, margin, unit)
    return Check(text, ours <= bound + margin, _figure(ours, unit), said, ours, margin)


def between(
    text: str, ours: float, low: float, high: float, unit: str = "", paper: str = ""
) -> Check:
    """A figure that must lie between two."""
    said = paper or f"{_figure(low, unit)} to {_figure(high, unit)}"
    return Check(text, low <= ours <= high, _figure(ours, unit), said, ours)


def larger(text: str, first: float, second: float, budget: float, paper: str = "") -> Check:
    """The first of two figures must be larger by more than what the budget calls the same.

    `budget` is a share of the larger.
    """
    margin = budget * max(abs(first), abs(second))
    ratio = first / second if second else float("inf")
    return Check(text, first - second > margin, f"{ratio:.3g} times", paper, ratio, budget)


def no_less(text: str, first: float, second: float, budget: float, paper: str = "") -> Check:
    """The first of two figures must be larger than the second, or the same within the budget."""
    margin = budget * max(abs(first), abs(second))
    ratio = first / second if second else float("inf")
    return Check(text, first - second >= -margin, f"{ratio:.3g} times", paper, ratio, budget)


def same(text: str, first: float, second: float, budget: float, paper: str = "") -> Check:
    """Two figures must be the same within the budget, a share of the larger."""
    margin = budget * max(abs(first), abs(second))
    ratio = first / second if second else float("inf")
    said = paper or "the same"
    return Check(text, abs(first - second) <= margin, f"{ratio:.3g} times", said, ratio, budget)


def _asked(paper: str, words: str, bound: float, margin: float, unit: str) -> str:
    """What the paper says, and the bar here with its margin unless those words have it."""
    bar = _figure(bound, unit)
    allowed = f" with a margin of {_figure(margin, unit)}" if margin else ""
    if not paper:
        return f"{words} {bar}{allowed}"
    return paper if bar in paper and not margin else f"{paper}; asked here: {words} {bar}{allowed}"


def _figure(value: float, unit: str) -> str:
    if unit == "bit/s":
        from farline.spec.units import rate_human

        return rate_human(value) if value >= 0 else f"{value:.6g} bit/s"
    if unit == "%":
        return f"{100 * value:.3g} %"
    return f"{value:.6g}" + (f" {unit}" if unit else "")
