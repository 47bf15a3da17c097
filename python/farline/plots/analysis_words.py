"""An analysis in words and in a few large figures; what decides them is computed elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from farline.findings.infrastructure_finding import (
    Cause,
    CauseKind,
    Explanation,
    NextMeasurement,
)
from farline.plots.analysis_values import MODALITY_TEXT, AnalysisData, PairRow, ProfileView
from farline.plots.findings import Finding
from farline.plots.labels import digits, percent, plural, rate_range_text
from farline.plots.page_parts import Tile
from farline.profiles.coefficients import Coefficients, Interval
from farline.spec.units import rate_human

CAUSE_TEXT: dict[CauseKind, str] = {
    "window": "Windows and buffers",
    "io": "Host and file input and output",
    "site": "Slow site",
    "path": "Slow path",
    "streams": "Too few streams",
    "capacity": "The link is full",
    "drift": "Slower than before",
    "tool": "The transfer tool",
    "loss": "Packet losses",
    "well-used": "Nothing to fix",
}

MANY_FAILED = 0.1
"""Share of failed measurements from which their number stands out in red."""

CLEAR, LIKELY = 0.8, 0.5
"""Strength from which the evidence is called clear, and likely."""


@dataclass(frozen=True, slots=True)
class CauseCard:
    """A cause as the page shows it; `strength` from 0 to 100 for a meter."""

    heading: str
    line: str
    gain: str
    gains: bool
    strength: int
    strength_text: str
    evidence: tuple[str, ...]
    remedies: tuple[str, ...]


def lead(data: AnalysisData) -> str:
    """The one sentence at the top."""
    if data.explanation is not None and data.explanation.lead:
        return _sentence(data.explanation.lead)
    if not data.profiles:
        return "No complete transfer was measured, so there is no profile to show."
    return _profile_line(data.profiles[0])


def findings(data: AnalysisData) -> list[Finding]:
    """What else a reader must know first: what is missing, what failed, what misleads."""
    said: list[Finding] = []
    explained = data.explanation
    if explained is not None and explained.not_enough not in (None, "", explained.lead):
        said.append(Finding(_not_enough(str(explained.not_enough)), True))
    if explained is not None and explained.lead and data.profiles:
        said.append(Finding(_profile_line(data.profiles[0])))
    said += [finding for finding in (_extremes(data), _failures(data), _odd(data)) if finding]
    said += [
        Finding(f"{view.name}: {warning.strip().rstrip('.')}.", True)
        for view in data.profiles[:1]
        if view.coefficients is not None
        for warning in view.coefficients.warnings
    ]
    return said


def _not_enough(what: str) -> str:
    """What is missing, said to be that once."""
    head = "Not enough data"
    whole = _sentence(what)
    return whole if whole.startswith(head) else f"{head}: {whole}"


def facts(data: AnalysisData) -> str:
    """How much there is, in one line: transfers, sites, range of RTT, capacity."""
    parts = []
    count = _complete(data)
    if count:
        noun = "complete measurement" if count == 1 else "complete measurements"
        parts.append(f"{_grouped(count)} {noun}")
    sites = _sites(data)
    if sites:
        parts.append(plural(sites, "site"))
    times = [time for view in data.profiles for time in view.profile.rtt_ms.tolist()]
    if times:
        ends = f"{min(times):.4g} to {max(times):.4g}" if len(set(times)) > 1 else f"{times[0]:.4g}"
        parts.append(f"round-trip times {ends} ms")
    capacities = {view.profile.capacity_bps for view in data.profiles} - {None}
    if len(capacities) == 1:
        parts.append(f"capacity {rate_human(float(capacities.pop() or 0.0))}")
    return ", ".join(parts)


def tiles(data: AnalysisData) -> list[Tile]:
    """Large figures: what is delivered, its shape, what could be gained, what failed."""
    found: list[Tile] = []
    first = data.profiles[0] if data.profiles else None
    if first is not None and first.coefficients is not None:
        level = percent(data.confidence)
        found += _coefficient_tiles(first.coefficients, level)
    if data.explanation is not None and data.explanation.causes:
        best = data.explanation.causes[0]
        if best.gain_bps > 0:
            where = f": {best.site}" if best.site else ""
            note = f"{CAUSE_TEXT[best.kind].lower()}{where}"
            found.append(Tile("Largest gain, on average", f"+{rate_human(best.gain_bps)}", note))
    count, failed = _complete(data), _failed(data)
    if count or failed:
        note = f"{failed} failed, not included in means" if failed else "none failed"
        many = failed > MANY_FAILED * (failed + count)
        found.append(Tile("Measurements", _grouped(count), note, many))
    return found


def cause_cards(explanation: Explanation | None) -> list[CauseCard]:
    """Causes in the order given: by what mending them would gain."""
    return [] if explanation is None else [_card(cause) for cause in explanation.causes]


def next_steps(explanation: Explanation | None) -> list[NextMeasurement]:
    """What to measure next in whole sentences; sites only where the words do not name them."""
    return [
        replace(
            step,
            what=_sentence(step.what),
            why=_sentence(step.why),
            sites=() if all(site in step.what for site in step.sites) else step.sites,
        )
        for step in (explanation.next if explanation is not None else ())
    ]


def interval_text(found: Interval, show: str = "") -> str:
    """ "0.62 to 0.68", or nothing where there is no interval."""
    if found.low is None or found.high is None:
        return show
    return f"{_three(found.low)} to {_three(found.high)}"


def coefficient_text(value: float) -> str:
    """A coefficient with three decimals, and a sign where it is below zero."""
    return _three(value) if math.isfinite(value) else "no figure"


def _grouped(count: int) -> str:
    """Thousands set apart by a narrow space."""
    return f"{count:,}".replace(",", "\u202f")


def _three(value: float) -> str:
    return f"{value:.3f}".replace("-", "\N{MINUS SIGN}")


def _coefficient_tiles(found: Coefficients, level: str) -> list[Tile]:
    rate, ends = found.mean.value * found.capacity_bps, found.mean
    capacity = rate_human(found.capacity_bps)
    note = f"{digits(100 * found.mean.value)}\u202f% of {capacity}"
    if ends.low is not None and ends.high is not None:
        span = rate_range_text(ends.low * found.capacity_bps, ends.high * found.capacity_bps)
        note += f"; {level} interval {span}"
    shape = _shape(found)
    c_uc = f"C_CC {_three(found.c_cc.value)}: {shape}; mean {_three(found.mean.value)}"
    return [
        Tile("Mean over all RTTs", rate_human(rate), note),
        Tile("C_UC", _three(found.c_uc.value), c_uc),
    ]


def _shape(found: Coefficients) -> str:
    """In words, and only where the interval leaves no doubt about the sign."""
    low, high = found.c_cc.low, found.c_cc.high
    if low is not None and low > 0:
        return "concave overall"
    if high is not None and high < 0:
        return "convex overall"
    return (
        ("neither clearly concave nor clearly convex")
        if low is not None
        else "too few for an interval"
    )


def _profile_line(view: ProfileView) -> str:
    """What a profile delivers: mean, ends and shape, never one number alone."""
    profile, found = view.profile, view.coefficients
    name = f"{view.name[:1].upper()}{view.name[1:]}"
    what = MODALITY_TEXT.get(profile.modality, profile.modality)
    if len(profile.rtt_ms) == 1:
        at = f"at {profile.rtt_ms[0]:.4g} ms, the only round-trip time measured"
        return f"{name} ({what}): {rate_human(float(profile.mean_bps[0]))} {at}."
    first, last = float(profile.mean_bps[0]), float(profile.mean_bps[-1])
    ends = (
        f"from {rate_human(first)} at {profile.rtt_ms[0]:.4g} ms "
        f"to {rate_human(last)} at {profile.rtt_ms[-1]:.4g} ms"
    )
    if found is None:
        return f"{name} ({what}): {ends}; the capacity is unknown, so there is no coefficient."
    mean = f"{rate_human(found.mean.value * found.capacity_bps)} on average over RTT"
    share = f"{digits(100 * found.mean.value)}\u202f% of capacity"
    shape = f"C_UC {_three(found.c_uc.value)}, C_CC {_three(found.c_cc.value)} ({_shape(found)})"
    return f"{name} ({what}): {mean}, {share}, {ends}; {shape}."


def _extremes(data: AnalysisData) -> Finding | None:
    """The site that delivers most beside the one that delivers least."""
    known = [
        (view.name, view.coefficients.mean.value)
        for view in data.profiles
        if view.group == "site" and view.coefficients is not None
        and view.profile.modality == data.profiles[0].profile.modality
    ]  # fmt: skip
    if len(known) < 2:
        return None
    known.sort(key=lambda pair: pair[1])
    (worst, low), (best, high) = known[0], known[-1]
    text = f"Of {plural(len(known), 'site')}, {best} uses most of its capacity"
    return Finding(
        f"{text} ({digits(100 * high)}\u202f%) and {worst} least ({digits(100 * low)}\u202f%)."
    )


def _failures(data: AnalysisData) -> Finding | None:
    failed = _failed(data)
    if not failed:
        return None
    count = failed + _complete(data)
    then = "it is" if failed == 1 else "they are"
    text = f"{failed} of {plural(count, 'measurement')} failed; {then} not included in means."
    return Finding(text, True)


def _odd(data: AnalysisData) -> Finding | None:
    odd = sum(tally.malformed for tally in data.tallies)
    if not odd:
        return None
    noun = "line was not a record" if odd == 1 else "lines were not records"
    shown = "; they are listed below" if any(tally.odd_lines for tally in data.tallies) else ""
    return Finding(f"{odd} {noun} and could not be ingested{shown}.", True)


def _complete(data: AnalysisData) -> int:
    profiles, pairs = _whole(data)
    placed = sum(int(view.profile.n.sum()) + view.profile.unplaced for view in profiles)
    return placed + sum(pair.n for pair in pairs)


def _failed(data: AnalysisData) -> int:
    profiles, pairs = _whole(data)
    return sum(view.profile.failed for view in profiles) + sum(pair.failed for pair in pairs)


def _whole(data: AnalysisData) -> tuple[Sequence[ProfileView], Sequence[PairRow]]:
    """Profiles and pairs that share no measurement and have them all.

    A whole profile has what pairs lack, transfers of unknown sites. Pairs stand in for it where a
    modality has none; without either it is the first profile of the first group.
    """
    whole = [view for view in data.profiles if not view.group]
    known = {view.profile.modality for view in whole}
    pairs = [pair for pair in data.pairs if pair.modality not in known]
    return (whole if whole or pairs else data.profiles[:1]), pairs


def _sites(data: AnalysisData) -> int:
    if data.pairs:
        return len({name for pair in data.pairs for name in (pair.from_site, pair.to_site)})
    return len(data.infrastructure.sites) if data.infrastructure else 0


def _card(cause: Cause) -> CauseCard:
    where = f": {cause.site}" if cause.site else ""
    gain = "no gain"
    if cause.gain_bps > 0:
        share = f" (+{digits(100 * cause.gain_share, 2)}\u202f%)" if cause.gain_share > 0 else ""
        gain = f"+{rate_human(cause.gain_bps)}{share}"
    strength = min(1.0, max(0.0, cause.strength))
    text = "clear" if strength >= CLEAR else "likely" if strength >= LIKELY else "weak"
    return CauseCard(
        f"{CAUSE_TEXT[cause.kind]}{where}",
        _sentence(cause.line),
        gain,
        cause.gain_bps > 0,
        round(100 * strength),
        text,
        cause.evidence,
        cause.remedies,
    )


def _sentence(text: str) -> str:
    """With a capital letter in front and one stop behind."""
    head = text.strip().rstrip(".")
    return f"{head[:1].upper()}{head[1:]}."
