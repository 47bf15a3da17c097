"""How a transfer shares a line, in words: what it takes, what it does to others, what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from farline.fairness.contest import Contest, Estimate, Point
from farline.findings.finding import counted, percent

Level = Literal["gentle", "fair", "harsh", "unfit"]
"""Takes less than its share; takes it; harms more than a fair sharer; does not give way."""

UNFIT_HARM = 0.5
"""Harm beyond that of a fair sharer, and at least this, of one that does not give way."""
MARGIN = 0.05
"""Least difference of harm that counts."""
WIDEST = 0.15
"""Difference of harm that counts whatever the interval, and of a single repetition, which has none:
single flows that are alike differ by as much within ten seconds."""
_GENTLE = 0.8
_NAMES = {
    "tcp": "TCP",
    "udp": "UDP",
    "udt": "UDT",
    "rbudp": "RBUDP",
    "quic": "QUIC",
    "null": "null",
}
_DEAF = ("rbudp", "udp")
"""Transports that send at their rate whatever it does to others."""

Side = tuple[str, Mapping[str, Any]]
"""Tool and options by dotted path."""


@dataclass(frozen=True)
class ContentionVerdict:
    """How a transfer shares: in a line, with figures and what would make it gentler."""

    level: Level
    line: str
    evidence: tuple[str, ...]
    remedies: tuple[str, ...]


def side_text(tool: str, options: Mapping[str, Any]) -> str:
    """What a side is called: `TCP cubic, 4 streams`, `iperf3 TCP cubic`."""
    transport = str(options.get("transport", "tcp"))
    control = options.get(f"{transport}.congestion_control")
    words = [] if tool == "native" else [tool]
    words += [_NAMES.get(transport, transport), *([str(control)] if control else [])]
    streams = int(options.get("streams", 1))
    return " ".join(words) + (f", {streams} streams" if streams > 1 else "")


def flows_text(side: Side) -> str:
    """A side as those who are affected: `one CUBIC flow`, `4 TCP reno flows`."""
    tool, options = side
    text = side_text(tool, {**options, "streams": 1})
    text = "CUBIC" if text == "TCP cubic" else text
    streams = int(options.get("streams", 1))
    return f"one {text} flow" if streams == 1 else f"{streams} {text} flows"


def contention_verdict(
    contest: Contest,
    subject: Side,
    background: Side,
    reference: Contest | None = None,
    reference_text: str = "",
) -> ContentionVerdict:
    """The verdict at the largest load, where both want more than there is.

    Harm counts beside that of the reference (Ware et al. 2019: a newcomer may be deployed that
    harms no more than what is deployed already) or that of a fair sharer, whichever is more.
    """
    full = contest.full
    level = _level(full, reference, str(subject[1].get("transport", "tcp")))
    name, others = side_text(*subject), flows_text(background)
    taken = full.mean("share")
    line = f"{name} {_takes(taken, others)}; harms it by {_figure(full.measures['harm'])}"
    line += f"{_beside(full, reference, reference_text)}: {_JUDGED[level]}"
    return ContentionVerdict(level, line, _evidence(contest), _remedies(level, subject))


_JUDGED: Mapping[Level, str] = {
    "gentle": "it yields to others",
    "fair": "a fair sharer",
    "harsh": "it takes more than its share from others",
    "unfit": "it does not yield to other traffic; use it on dedicated paths only",
}


def _takes(share: float | None, others: str) -> str:
    if share is None:
        return f"shares with {others}"
    if share > 1.05:
        return f"takes {share:.2g} times its share from {others}"
    return f"takes {share:.2f} of its share beside {others}"


def _figure(harm: Estimate) -> str:
    return f"{max(0.0, harm.mean):.2f}"


def _beside(full: Point, reference: Contest | None, text: str) -> str:
    if reference is not None:
        known = next((p for p in reference.points if p.load_bps == full.load_bps), None)
        if known is not None:
            return f" ({text}: {_figure(known.measures['harm'])})"
    return f" (a fair sharer: {full.measures['harm_fair'].mean:.2f})"


def _allowed(full: Point, reference: Contest | None) -> tuple[float, float]:
    """Harm that counts as fair, and half of its interval."""
    fair = full.measures["harm_fair"].mean
    if reference is not None:
        for point in reference.points:
            harm = point.measures["harm"]
            # Nobody is blamed for taking its share because the reference happened to take less.
            if point.load_bps == full.load_bps and harm.mean > fair:
                return harm.mean, harm.half
    return fair, 0.0


def _level(full: Point, reference: Contest | None, transport: str) -> Level:
    harm = full.measures["harm"]
    allowed, half = _allowed(full, reference)
    known = harm.half + half if harm.low is not None else WIDEST
    if harm.mean - allowed > max(MARGIN, min(known, WIDEST)):
        deaf = transport in _DEAF and harm.mean > UNFIT_HARM
        return "unfit" if deaf else "harsh"
    share = full.mean("share")
    return "gentle" if share is not None and share < _GENTLE else "fair"


def _evidence(contest: Contest) -> tuple[str, ...]:
    """Figures that the verdict rests on, one line each."""
    full, least = contest.full, min(contest.points, key=lambda point: _use(point))
    found = [
        f"both together used {percent(_use(least))} of the line or more at every load",
        f"Jain's index over demands was {_least(contest, 'jain_demand'):.2f} or more"
        f" (raw at the largest load: {full.measures['jain'].mean:.2f})",
    ]
    if contest.knee is not None:
        knee, plateau = contest.knee.load_bps, contest.knee.plateau_bps
        found.append(
            f"it gave way up to a background of {percent(knee / contest.capacity_bps)} of the line"
            f" and kept {percent(plateau / contest.capacity_bps)}"
        )
    elif len(contest.points) > 3:
        found.append("it did not give way to a growing background")
    for name, text in (("harm_delay", "delay"), ("harm_loss", "loss")):
        if (harm := full.mean(name)) is not None:
            found.append(f"harm to the {text} of the background: {max(0.0, harm):.2f}")
    if (time_s := full.mean("convergence_s")) is not None:
        found.append(f"it reached 80 % of its share after {time_s:.1f} s")
    if (power := full.mean("rtt_exponent")) is not None:
        found.append(f"rates vary with the round-trip time to the power of {-power:.2f}")
    return tuple(found)


def _use(point: Point) -> float:
    return point.measures["utilisation"].mean


def _least(contest: Contest, name: str) -> float:
    return min(point.measures[name].mean for point in contest.points)


def _remedies(level: Level, subject: Side) -> tuple[str, ...]:
    _tool, options = subject
    streams = int(options.get("streams", 1))
    transport = str(options.get("transport", "tcp"))
    if level == "unfit":
        return (
            "a transport that yields to loss: --transport tcp or --transport udt",
            "a rate below what others leave free: -b RATE",
        )
    if level == "harsh" and streams > 1:
        return (f"fewer streams than {counted(streams, 'stream')}: -P {streams // 2}",)
    if level == "harsh":
        control = options.get(f"{transport}.congestion_control")
        other = () if control == "cubic" else ("another congestion control: -C cubic",)
        return (*other, "a rate below what others leave free: -b RATE")
    return ()
