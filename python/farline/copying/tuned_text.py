"""What tuning decided while a copy ran, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from farline.spec.units import counted, rate_human

if TYPE_CHECKING:
    from farline.tools.events import Tuned


def tuned_text(event: Tuned, everything: bool = False) -> str | None:
    """`8 -> 12 streams: 1.90 -> 2.60 Gbit/s`; what was tried in vain only with `everything`."""
    if event.reason == "keep":
        return kept_text(event.before, event.streams, event.rate_before_bps, event.rate_bps)
    if not everything:
        return None
    rate = rate_human(event.rate_bps)
    match event.reason:
        case "back":
            rates = rates_text(event.rate_before_bps, event.rate_bps)
            return f"{event.before} streams tried: {rates}; back to {event.streams}"
        case "alarm":
            return f"the rate is {rate} now: other numbers of streams are tried"
        case "confirm":
            return f"{event.before} streams: {rate}; {event.streams} are measured again"
    return f"{event.streams} streams are tried ({event.before} now: {rate})"


def tuning_lines(label: Mapping[str, Any]) -> Iterator[str]:
    """What a run's label `tuning` says: each decision that was kept, and where it ended."""
    for one in label["decisions"]:
        rate_bps = one["rate_bps"]
        if one["reason"] == "keep":
            kept = kept_text(one["before"], one["streams"], one.get("rate_before_bps"), rate_bps)
            yield f"at {one['at_s']:.1f} s: tuned: {kept}"
        else:
            yield f"at {one['at_s']:.1f} s: the rate changed to {rate_human(rate_bps)}"
    settled, tried = label["settled"], counted(label["tried"], "number")
    end = "not settled" if settled is None else f"settled at {counted(settled, 'stream')}"
    yield f"tuning: {tried} of streams tried, {end}"


def kept_text(before: int, after: int, before_bps: float | None, after_bps: float) -> str:
    """A number of streams that was kept, with the rates of both."""
    return f"{before} -> {after} streams: {rates_text(before_bps, after_bps)}"


def rates_text(before_bps: float | None, after_bps: float) -> str:
    """`1.90 -> 2.60 Gbit/s`, with one unit where it is the same."""
    after = rate_human(after_bps)
    if before_bps is None:
        return after
    before = rate_human(before_bps)
    number, _, unit = before.partition(" ")
    return f"{number if after.endswith(f' {unit}') else before} -> {after}"
