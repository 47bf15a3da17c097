"""What `farline fairness` prints: trials as they end, tables, verdicts, a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.campaign.contention.job import OVERHEAD_S
from farline.campaign.contention.order import duration_s
from farline.campaign.contention.trials import trial_of
from farline.cli.campaign_text import span_text
from farline.fairness.contest import BACKGROUND, SUBJECT
from farline.findings.contention import side_text
from farline.spec.units import counted, rate_human

if TYPE_CHECKING:
    from farline.campaign.contention.expected import Expectation
    from farline.campaign.contention.job import Progress
    from farline.campaign.contention.journal import ContentionJournal
    from farline.campaign.contention.order import Place
    from farline.campaign.contention.outcome import Outcome
    from farline.campaign.contention.plan import ContentionPlan
    from farline.fairness.contest import Contest, Estimate, Point

_HEADS = (
    "load", "transfer", "background", "used", "Jain", "share", "harm", "delay", "loss",
)  # fmt: skip
_WIDTHS = (13, 13, 13, 5, 5, 5, 6, 6, 6)


def begin_line(journal: ContentionJournal) -> str:
    """What begins."""
    plan = journal.plan
    names = ", ".join(side_text(one.tool, one.options) for one in plan.subjects)
    behind = side_text(plan.background.tool, plan.background.options)
    return f"fairness {journal.name} on {journal.target}: {names} beside {behind}"


def place_text(plan: ContentionPlan, place: Place) -> str:
    """A trial in words: `TCP cubic beside 50.0 Mbit/s`."""
    if place.subject is None:
        return f"background of {rate_human(place.load_bps or 0)} alone"
    subject = plan.subject(place.subject)
    name = side_text(subject.tool, subject.options)
    if place.load_bps is None:
        return f"{name} alone"
    return f"{name} beside {rate_human(place.load_bps)}"


def progress_line(journal: ContentionJournal, progress: Progress) -> str:
    """A line for a trial that has ended; nothing for one that begins."""
    if not progress.kept:
        return ""
    head = f"trial {progress.done} of {progress.total}: {place_text(journal.plan, progress.place)}"
    if progress.problem is not None:
        return f"{head}: {progress.problem}"
    trial = trial_of(progress.kept)
    if trial is None:
        return f"{head}: too short for a rate"
    rates = [rate_human(trial.seen[s].rate_bps) for s in (SUBJECT, BACKGROUND) if s in trial.seen]
    return f"{head}: {' and '.join(rates)}"


def result_lines(outcome: Outcome) -> Iterator[str]:
    """A table and the verdict of each transfer, then the expectations."""
    where = "on the wire" if outcome.on_wire else "of payload at the receivers"
    for name, contest in outcome.contests.items():
        yield ""
        behind = outcome.names["background"]
        yield (
            f"{outcome.names[name]} beside {behind}, {rate_human(contest.capacity_bps)} line,"
            f" rates {where}; alone {rate_human(contest.alone_bps.mean)}"
        )
        yield _row(_HEADS)
        for point in contest.points:
            yield _point_row(point)
        verdict = outcome.verdicts[name]
        yield f"verdict: {verdict.line}"
        yield from (f"  {line}" for line in verdict.evidence)
        yield from (f"  to harm others less: {line}" for line in verdict.remedies)
    if outcome.invalid:
        trials = counted(outcome.invalid, "trial")
        yield f"{trials} not counted: the emulated path was not accurate"
    if outcome.expectations:
        held = sum(one.holds for one in outcome.expectations)
        yield ""
        yield f"expectations: {held} of {len(outcome.expectations)} hold"


def failed_line(outcome: Outcome, one: Expectation) -> str:
    """An expectation that does not hold, with what was measured."""
    found = "not known" if one.value is None else f"{one.value:.3g}"
    where = "" if one.load_bps is None else f" at a load of {rate_human(one.load_bps)}"
    name = outcome.names.get(one.subject, one.subject)
    return f"expectation failed: {name}: {one.name} is {found}{where}, expected {one.bounds.text}"


def _row(cells: Sequence[str]) -> str:
    return "  ".join(text.rjust(width) for text, width in zip(cells, _WIDTHS, strict=True)).rstrip()


def _point_row(point: Point) -> str:
    measures = point.measures
    figures = [
        _figure(measures.get(name))
        for name in ("utilisation", "jain_demand", "share", "harm", "harm_delay", "harm_loss")
    ]
    rates = [rate_human(measures[name].mean) for name in ("subject_bps", "background_bps")]
    return _row([rate_human(point.load_bps), *rates, *figures])


def _figure(one: Estimate | None) -> str:
    return "-" if one is None else f"{one.mean:.2f}"


def document(outcome: Outcome, page: Path | None) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "schema": 1,
        "fairness": outcome.journal.name,
        "target": outcome.journal.target,
        "capacity_bps": outcome.capacity_bps,
        "rates": "wire" if outcome.on_wire else "payload",
        "trials": outcome.trials,
        "invalid": outcome.invalid,
        "plan": outcome.journal.plan.document(),
        "transfers": [
            _contest(outcome, name, contest) for name, contest in outcome.contests.items()
        ],
        "expectations": [
            {
                "transfer": one.subject,
                "measure": one.name,
                **one.bounds.document(),
                "measured": one.value,
                "load_bps": one.load_bps,
                "holds": one.holds,
            }
            for one in outcome.expectations
        ],
        "report": None if page is None else str(page),
    }


def _contest(outcome: Outcome, name: str, contest: Contest) -> dict[str, Any]:
    return {
        "name": name,
        "text": outcome.names[name],
        "alone_bps": asdict(contest.alone_bps),
        "knee": None if contest.knee is None else asdict(contest.knee),
        "loads": [
            {
                "load_bps": point.load_bps,
                "measures": {key: asdict(one) for key, one in point.measures.items()},
            }
            for point in contest.points
        ],
        "verdict": asdict(outcome.verdicts[name]),
    }


def dry_lines(plan: ContentionPlan, wanted: Sequence[Place]) -> Iterator[str]:
    """The trials of the first repetition in their order, how many in all, and for how long."""
    time_s = duration_s(plan, wanted, OVERHEAD_S)
    yield f"{counted(len(wanted), 'trial')}, about {span_text(time_s)}"
    for one in plan.subjects:
        role = "reference" if one.name == plan.reference else "transfer"
        yield f"{role}: {side_text(one.tool, one.options)}"
    yield f"background: {side_text(plan.background.tool, plan.background.options)}"
    yield "first repetition, in this order:"
    first = [place for place in wanted if place.repetition == 0]
    for number, place in enumerate(first, 1):
        yield f"{number:5}  {place_text(plan, place)}"


def dry_document(plan: ContentionPlan, wanted: Sequence[Place]) -> Mapping[str, Any]:
    """The same as a document."""
    return {
        "schema": 1,
        "plan": plan.document(),
        "trials": [asdict(place) for place in wanted],
        "duration_s": duration_s(plan, wanted, OVERHEAD_S),
    }
