"""One finding: a limit, a line for people, figures and remedies."""

from __future__ import annotations

from dataclasses import dataclass

from farline.spec._types import LimitedBy


@dataclass(frozen=True)
class Finding:
    """What a rule found. `limit` is one of the words of `Verdict.limit`."""

    limit: LimitedBy
    line: str
    evidence: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


def percent(share: float) -> str:
    """A share for people: whole percent, small ones with a digit more."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.2g} %"
