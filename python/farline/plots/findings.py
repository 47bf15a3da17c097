"""The results of a campaign in words: sentences that stand on the figures they name.

What decides a sentence is computed in `farline.profiles`; this only says it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farline.plots.data import CampaignData
from farline.plots.labels import (
    LIMIT_TEXT,
    digits,
    percent,
    plural,
    rate_range_text,
    settings_text,
)
from farline.profiles.compare import Gain, gain, not_told_apart, told_apart
from farline.profiles.response import ResponsePoint, Row, count_limits, is_invalid
from farline.spec.units import rate_human

NAMED = 3
"""Settings that a sentence names before it only counts."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence or two; `bad` is what a reader must not miss."""

    text: str
    bad: bool = False


def findings(data: CampaignData) -> list[Finding]:
    """All sentences, the main result first."""
    best = data.best
    if best is None or best.mean is None:
        nothing = "No run of this campaign completed, so there is no throughput to report."
        said = [Finding(nothing, True), failures(data.rows), not_valid(data)]
        return [finding for finding in said if finding is not None]
    said = [
        _lead(data, best),
        _gain(data, best),
        _limits(data, best),
        _ties(data, best),
        _cpu(data),
        failures(data.rows),
        not_valid(data),
        _unfinished(data),
        _debug(data, best),
    ]
    return [finding for finding in said if finding is not None]


def reference_gain(data: CampaignData) -> Gain | None:
    """What the best setting gains over the reference; None without one, or if it is the same."""
    reference = data.reference.get("total_bps")
    if data.best is None or reference is None or set(data.best.run_ids) & set(reference.run_ids):
        return None
    return gain(data.best, reference, data.confidence)


def beats_reference(data: CampaignData) -> bool:
    """Whether the runs tell the best setting apart from the reference: tile and sentence ask it."""
    best, reference = data.best, data.reference.get("total_bps")
    if best is None or reference is None:
        return False
    return told_apart(best, reference, data.throughput, data.confidence)


def failures(rows: Sequence[Row]) -> Finding:
    """How many runs did not complete and why; they are never zeros in a mean."""
    lost = [row for row in rows if row.get("status") != "complete"]
    if not lost:
        return Finding(f"All {plural(len(rows), 'run')} completed.")
    failed = [row for row in lost if row.get("status") == "failed"]
    partial = len(lost) - len(failed)
    kinds = Counter(str(row.get("error_kind") or "no kind given") for row in failed)
    parts = []
    if failed:
        why = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        parts.append(f"{plural(len(failed), 'run')} failed ({why})")
    if partial:
        parts.append(f"{plural(partial, 'run')} interrupted before the end")
    text = f"Of {plural(len(rows), 'run')}, {' and '.join(parts)}. "
    return Finding(text + "They are shown as such and are not included in means.", True)


def not_valid(data: CampaignData) -> Finding | None:
    """How many runs went over an emulated path that did not do what it should, and why."""
    lost = [row for row in data.rows if is_invalid(row) and row.get("status") == "complete"]
    if not lost:
        return None
    stamps = [data.document(str(row["run_id"]))["path"]["stamp"] for row in lost]
    reasons = Counter(reason for stamp in stamps for reason in stamp["reasons"][:1])
    why = "; ".join(reason for reason, _ in reasons.most_common(NAMED)) or "no reason given"
    more = ", and others" if len(reasons) > NAMED else ""
    counted = (
        "They are counted anyway, as requested."
        if data.count_invalid
        else ("They are not included in means; `farline report --count-invalid` includes them.")
    )
    head = f"The emulated path was not valid in {len(lost)} of {plural(len(data.rows), 'run')}"
    return Finding(f"{head} ({why}{more}). {counted}", True)


def _lead(data: CampaignData, best: ResponsePoint) -> Finding:
    count = len(data.throughput)
    subject = f"The best of {count} settings reached" if count > 1 else "The setting reached"
    text = f"{subject} {rate_human(best.mean or 0.0)}"
    if best.low is not None and best.high is not None:
        between = rate_range_text(best.low, best.high)
        text += f" ({_interval(data)} {between}, {plural(best.n, 'run')})"
    else:
        few = "one run gives no" if best.n == 1 else "the runs differ too much for a"
        text += f" in {plural(best.n, 'run')}; {few} confidence interval"
    return Finding(f"{text}: {settings_text(best.settings)}." if best.settings else f"{text}.")


def _interval(data: CampaignData) -> str:
    return f"{percent(data.confidence)} confidence interval"


def _gain(data: CampaignData, best: ResponsePoint) -> Finding | None:
    found, reference = reference_gain(data), data.reference.get("total_bps")
    if reference is None or reference.mean is None:
        return None
    if found is None:
        same = len(data.throughput) > 1 and set(best.run_ids) & set(reference.run_ids)
        return Finding("This is the reference setting itself.") if same else None
    rate, runs = rate_human(reference.mean), plural(reference.n, "run")
    ratio = f"{digits(found.ratio)} times the reference setting, which reached {rate} in {runs}"
    if found.low is None or found.high is None:
        return Finding(
            f"That is {ratio}; there are too few runs, or they differ too much, to give an "
            "uncertainty."
        )
    span = f"{_interval(data)} {digits(found.low)} to {digits(found.high)} times"
    if beats_reference(data):
        return Finding(f"That is {ratio} ({span}).")
    return Finding(
        f"The difference from the reference is within the uncertainty: {ratio} ({span} for this "
        f"pair alone; with {plural(len(data.throughput), 'setting')} compared, chance can produce "
        "as much)."
    )


def _limits(data: CampaignData, best: ResponsePoint) -> Finding | None:
    overall = count_limits(row for row in data.rows if row.get("status") == "complete")
    if not best.limits:
        return None
    text = f"What limited it: {limits_text(best.limits)}."
    if len(data.throughput) > 1:
        text += f" Over all complete runs: {limits_text(overall)}."
    return Finding(text)


def limits_text(counts: Mapping[str, int]) -> str:
    """ "receiver CPU (4 of 5 runs), path (1)"."""
    total = sum(counts.values())
    first, *rest = counts.items()
    parts = [f"{LIMIT_TEXT.get(first[0], first[0])} ({first[1]} of {plural(total, 'run')})"]
    parts += [f"{LIMIT_TEXT.get(name, name)} ({count})" for name, count in rest]
    return ", ".join(parts)


def _ties(data: CampaignData, best: ResponsePoint) -> Finding | None:
    ties = not_told_apart(best, data.throughput, data.confidence)
    if len(data.throughput) < 2 or best.n < 2:
        return None
    if not ties:
        return Finding("It differs from every other repeated setting by more than the uncertainty.")
    ranked = sorted(ties, key=lambda point: -(point.mean or 0.0))
    named = "; ".join(settings_text(point.settings) for point in ranked[:NAMED])
    more = f"; and {len(ties) - NAMED} more" if len(ties) > NAMED else ""
    return Finding(f"{plural(len(ties), 'other setting')} within the uncertainty: {named}{more}.")


def _cpu(data: CampaignData) -> Finding | None:
    points = data.points.get("cpu_s_per_gb", ())
    best = data.best
    measured = [point for point in points if point.mean is not None]
    own = next((p for p in measured if best is not None and p.key == best.key), None)
    if own is None or own.mean is None:
        return None
    text = f"It used {digits(own.mean)} CPU seconds per gigabyte at both ends together"
    cheapest = min(measured, key=lambda point: point.mean or 0.0)
    if cheapest.key == own.key:
        return Finding(text + (", the least of all settings." if len(measured) > 1 else "."))
    least = f"{digits(cheapest.mean or 0.0)} ({settings_text(cheapest.settings)})"
    return Finding(f"{text}; the least of all settings was {least}.")


def _unfinished(data: CampaignData) -> Finding | None:
    if not data.unfinished:
        return None
    return Finding("The campaign is not finished: some settings may lack runs.", True)


def _debug(data: CampaignData, best: ResponsePoint) -> Finding | None:
    record = data.document(best.run_ids[0])
    ends = [record.get("client") or {}, record.get("server") or {}]
    if any(end.get("version", {}).get("profile") == "debug" for end in ends):
        return Finding(
            "A debug build of farline ran at one end: these results are not representative.", True
        )
    return None
