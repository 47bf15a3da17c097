"""What every verdict about an RBUDP run says besides its rule: others on the path, known bounds."""

from __future__ import annotations

from collections.abc import Sequence

from farline.explain.figures import Figures
from farline.explain.finding import Finding, percent
from farline.explain.rbudp_rules import CARRIES, lost_share, rate_flag, rtt_us
from farline.profiles.application_bound import Bound, newest_bound
from farline.profiles.blasts import Blasts, carried_share
from farline.spec._types import PathCheck
from farline.spec.units import rate_human, size_human, time_human

MOSTLY_LOST = 0.5
"""Share of a train from which its loss by itself says that the rate is too much."""


def for_others(figures: Figures, found: Finding) -> Finding:
    """The finding, with what the rate does to others in front where the path is shared."""
    check = figures.rbudp.path_check if figures.rbudp else None
    if check is None or not check["shared"]:
        return found
    line = f"{shared_line(check)}; {found.line}"
    remedies = (*_give_way(figures, check), *found.remedies)
    return Finding(found.limit, line, found.evidence, tuple(dict.fromkeys(remedies)))


def shared_line(check: PathCheck) -> str:
    """What a blast at the stated rate does to others on a path that showed it is shared."""
    if _carries_less(check):
        return (
            f"shared path: it carried {rate_human(check['carried_bps'])} of the stated "
            f"{rate_human(check['rate_bps'])} before the blast: others on it are left with nothing"
        )
    if check["lost_share"] >= MOSTLY_LOST:
        lost = percent(check["lost_share"])
        return f"shared path: {lost} of a short train at the stated rate were lost before the blast"
    waited_us = max(0, check["idle_rtt_us"] - check["min_rtt_us"])
    return (
        f"shared path: packets waited {time_human(waited_us)} in queues before the blast: "
        "others use it, and the blast takes what they have"
    )


def _carries_less(check: PathCheck) -> bool:
    share = carried_share(check)
    return share is not None and share < CARRIES


def _give_way(figures: Figures, check: PathCheck) -> tuple[str, ...]:
    gives = "a transport that gives way to others: --transport udt"
    share = carried_share(check)
    if share is None or share >= CARRIES:
        return (gives,)
    most_bps = CARRIES * share * figures.asked_bps / figures.streams
    return (f"what the path carries: {rate_flag(most_bps)}", gives)


def check_line(check: PathCheck) -> str:
    """What was measured before the blasts, for people."""
    waited_us = max(0, check["idle_rtt_us"] - check["min_rtt_us"])
    queue = f", {time_human(waited_us)} of it above the smallest" if waited_us else ""
    round_trip = f"round-trip time {time_human(check['idle_rtt_us'])}{queue}"
    if carried_share(check) is None:
        return f"before the blast: {round_trip}; no train at the stated rate was measured"
    return (
        f"before the blast the path carried {rate_human(check['carried_bps'])} of the stated "
        f"{rate_human(check['rate_bps'])}, {percent(check['lost_share'])} lost; {round_trip}"
    )


def blasts_line(blasts: Blasts) -> str:
    """How many blasts became whole, of what payload, after how many passes."""
    size = size_human(blasts.payload_bytes)
    count = "one blast of" if blasts.whole == 1 else f"{blasts.whole} blasts of at most"
    passes = "one pass each"
    if blasts.passes_most > 1:
        passes = f"{blasts.passes_mean:.3g} passes on average, {blasts.passes_most} at most"
    return f"{count} {size}, {passes}"


def bound_text(figures: Figures, bounds: Sequence[Bound]) -> tuple[str, bool]:
    """What is known of the application bound, and whether the stated rate is above it."""
    bound = newest_bound(bounds, figures.direction) if figures.rbudp else None
    if bound is None:
        return "", False
    least = "at least " if bound.only_as_asked else ""
    streams = f" with {bound.streams} streams" if bound.streams != figures.streams else ""
    line = (
        f"the application bound measured here on {bound.started_at[:10]}{streams} was "
        f"{least}{rate_human(bound.application_bps)}"
    )
    above = figures.asked_bps > bound.application_bps and not bound.only_as_asked
    return f"{line}: the rate is above it" if above else line, above


def evidence(figures: Figures) -> list[str]:
    """What every verdict about an RBUDP run rests on besides the common figures."""
    rbudp = figures.rbudp
    if rbudp is None:
        return []
    lines = []
    if rbudp.blasts is not None:
        lines.append(blasts_line(rbudp.blasts))
    if rbudp.paced_share is not None:
        full = (
            ""
            if rbudp.under_way is None
            else (f"; {rbudp.under_way:.2g} of {rbudp.in_flight} blasts were under way on average")
        )
        lines.append(
            f"senders waited {percent(rbudp.paced_share)} of the time for their pacing{full}"
        )
    again = percent(figures.retransmits / figures.sent_packets) if figures.sent_packets else "0 %"
    lines.append(
        f"{figures.sent_packets} packets sent, {figures.retransmits} of them again ({again}); "
        f"{percent(lost_share(figures))} missing after the first pass"
    )
    if rbudp.path_check is not None:
        lines.append(check_line(rbudp.path_check))
    rate_bps, rtt = figures.asked_bps / figures.streams, rtt_us(figures)
    if rate_bps and rtt is not None:
        lines.append(
            f"payload and blasts under way allow {percent(rbudp.window_efficiency(rate_bps, rtt))}"
            f" of the rate, {size_human(rbudp.sent_bytes)} a stream in all"
            f" {percent(rbudp.total_efficiency(rate_bps, rtt))} (papers/4, eq. 4)"
        )
    return lines
