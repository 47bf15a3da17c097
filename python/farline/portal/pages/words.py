"""Figures, times and states as pages write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from farline.estimating.words import span_words
from farline.plots.labels import LIMIT_TEXT
from farline.spec.units import rate_human, size_human

NOTHING = "–"  # noqa: RUF001 (a dash for what is not known)

STATES = {
    "queued": "Queued",
    "running": "Running",
    "paused": "Paused",
    "succeeded": "Complete",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "held": "Held",
    "reserved": "Reserved",
    "active": "Active",
    "finished": "Finished",
    "released": "Released",
    "expired": "Expired",
}


def rate(value: float | None) -> str:
    """Bits per second."""
    return NOTHING if value is None else rate_human(value)


def size(value: float | None) -> str:
    """Bytes."""
    return NOTHING if value is None else size_human(int(value))


def clock(at_s: float | None) -> str:
    """A time in UTC, to the minute."""
    if not at_s:
        return NOTHING
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def stamp(at_s: float) -> str:
    """A time of UTC as forms send it, to the second, rounded up."""
    return datetime.fromtimestamp(math.ceil(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float | None) -> str:
    """A span of time."""
    return NOTHING if seconds is None else span_words(seconds)


def limit(word: str | None) -> str:
    """What limited a run."""
    return NOTHING if word is None else LIMIT_TEXT.get(word, word.replace("-", " "))


def number(value: float | None) -> str:
    """A count."""
    return NOTHING if value is None else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(value: float | None) -> str:
    """A share of 0 to 1."""
    return NOTHING if value is None else f"{100 * value:.0f} %"


FILTERS: dict[str, Callable[[Any], str]] = {
    "rate": rate,
    "size": size,
    "clock": clock,
    "span": span,
    "stamp": stamp,
    "limit": limit,
    "number": number,
    "percent": percent,
    "sentence": lambda text: text[:1].upper() + text[1:],
    "state": lambda word: STATES.get(word, word),
}
"""What templates may write as `value | rate`."""
