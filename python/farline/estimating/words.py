"""Estimates in words: spans of time, shares of transfers, what an estimate rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.spec.units import counted

if TYPE_CHECKING:
    from farline.estimating.estimate import TransferEstimate
    from farline.estimating.path_estimator import Interval

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_YEAR = 365.25 * _DAY

SHARES = {0.5: "half", 0.8: "8 in 10", 0.95: "19 in 20"}
"""Shares of transfers as people say them."""


def span_words(seconds: float) -> str:
    """A span of time for people, in at most two units: `1 h 52 min`."""
    if seconds < 0.995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.0005 else "less than 1 ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 10 * _MINUTE:
        return _two(round(seconds), _MINUTE, "min", 1, "s")
    if seconds < 10 * _HOUR:
        return _two(round(seconds / _MINUTE), 60, "h", 1, "min")
    if seconds < 2 * _DAY:
        return _two(round(seconds / (10 * _MINUTE)), 6, "h", 10, "min")
    if seconds < 2 * _YEAR:
        return _two(round(seconds / _HOUR), 24, "days", 1, "h")
    years = seconds / _YEAR
    return f"{years:.1f} years" if years < 9.95 else f"{years:,.0f} years"


def _two(count: int, per_large: int, large: str, step: int, small: str) -> str:
    """`count` small units, of which `per_large` make a large one; each stands for `step`."""
    whole, rest = divmod(count, per_large)
    words = [f"{whole} {large}"] if whole else []
    words += [f"{rest * step} {small}"] if rest or not whole else []
    return " ".join(words).replace("1 days", "1 day") if whole == 1 else " ".join(words)


def between_words(one: Interval) -> str:
    """`between 1 h 30 min and 2 h 20 min`, of durations."""
    low, high = span_words(one.duration_low_s), span_words(one.duration_high_s)
    return f"about {low}" if low == high else f"between {low} and {high}"


def headline(estimate: TransferEstimate) -> str:
    """The duration, and between which 8 in 10 lie."""
    middle = span_words(estimate.duration_s)
    return f"{middle}; 8 in 10 such transfers take {between_words(estimate.interval(0.8))}"


def basis_words(estimate: TransferEstimate) -> str:
    """What it rests on, and how old that is."""
    count, age = estimate.transfers, ""
    if estimate.newest_s is not None:
        age_s = max(0.0, estimate.question.now_s - estimate.newest_s)
        age = f", the newest {span_words(age_s)} ago"
    if estimate.basis == "model":
        return (
            "a model of published transfers: nothing has been copied over this path or any other, "
            "so the interval is wide"
        )
    if estimate.basis == "like-paths":
        return (
            f"{counted(count, 'transfer')} over other paths{age}: nothing has been copied over "
            "this path, so the interval is wide"
        )
    if estimate.basis == "probes":
        runs = counted(count, "measurement")
        return f"{runs} of this path from memory to memory{age}: disks are not included"
    if estimate.basis == "sample":
        return "the sample alone: nothing was copied over this path before"
    new = "; none of them like this one, so the interval is wider" if estimate.is_new_kind else ""
    return f"{counted(count, 'transfer')} over this path{age}{new}"
