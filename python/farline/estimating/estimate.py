"""The answer to one question: how long, how fast, how sure, and what to reserve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from farline.estimating import history
from farline.estimating.confidence import CONFIDENCES, cover_of, interval_of, kept_within
from farline.estimating.like_paths import level_of, like_paths
from farline.estimating.path_estimator import COVERS, Interval, PathEstimator, Prediction
from farline.estimating.reservation import Reservation, reservation_of
from farline.estimating.times import LAST_S
from farline.estimating.workload import Workload

if TYPE_CHECKING:
    from farline.estimating.finished import Finished
    from farline.spec._types import EstimateBasis
    from farline.store.paths import PastTransfer, PathEnds

STREAMS = 4
"""Streams that a transfer is assumed to have on a path that has had none."""

ENOUGH = 12
"""Transfers of a path from which on other paths say nothing that these do not."""

MOST_LEARNT = 16
"""Estimators that are kept of a path: one for each confidence and level that was asked for."""

LEAST_LIKE = 0.1
"""Weight from which on like paths are what an estimate rests on."""


@dataclass(frozen=True, slots=True)
class Question:
    """One transfer that may run. Settings that are None are those of the path's last transfer."""

    total_bytes: int
    files: int
    now_s: float
    """POSIX seconds, as all times here."""
    start_s: float | None = None
    """When it is to begin; None is now."""
    deadline_s: float | None = None
    confidence: float = 0.9
    streams: int | None = None
    concurrency: int | None = None
    pipelining: int | None = None
    sample: str | None = None
    """The run that was made for this question, if one was."""
    link_bps: float | None = None
    """Slowest link, where it is known and no transfer of the path has said."""
    rtt_s: float | None = None
    """Round-trip time, the same."""
    own_kernel: str | None = None
    """Release of this host's kernel, where this host is an end."""
    pushes: bool = True
    """Whether this host is the end that sends."""

    @property
    def begins_s(self) -> float:
        """When it begins."""
        return self.now_s if self.start_s is None else self.start_s


@dataclass(frozen=True, slots=True)
class TransferEstimate:
    """What a transfer is expected to take. Durations are seconds, times POSIX seconds."""

    question: Question
    prediction: Prediction
    intervals: tuple[Interval, ...]
    """Of half, 80 % and 95 % of such transfers."""
    at_confidence: Interval
    """Its slow end is kept with the confidence that was asked for."""
    basis: EstimateBasis
    transfers: int
    """Of the path, or of like paths where it has none."""
    newest_s: float | None
    """When the last of them ended."""
    deadline_confidence: float | None
    """How sure the deadline is if it begins as asked; None without one."""

    @property
    def streams(self) -> int:
        """Streams that are assumed, in all."""
        load = self.prediction.workload
        return max(1, round(load.concurrency * load.parallelism))

    @property
    def is_new_kind(self) -> bool:
        """Whether the path has had no transfer of this kind."""
        return self.prediction.is_new_kind

    @property
    def rate_bps(self) -> float:
        """The rate in the middle: payload over the whole time."""
        return 8 * self.question.total_bytes / self.duration_s

    @property
    def duration_s(self) -> float:
        """The duration in the middle."""
        return self.prediction.duration_s

    @property
    def sure_duration_s(self) -> float:
        """The duration that is kept with the confidence asked for."""
        return self.at_confidence.duration_high_s

    @property
    def latest_start_s(self) -> float | None:
        """When it has to begin for the deadline to hold with that confidence."""
        deadline_s = self.question.deadline_s
        return None if deadline_s is None else deadline_s - self.sure_duration_s

    @property
    def meets_deadline(self) -> bool | None:
        """Whether it does if it begins as asked; None without a deadline."""
        latest_s = self.latest_start_s
        return None if latest_s is None else latest_s >= self.question.begins_s

    @property
    def reservation(self) -> Reservation | None:
        """What to ask for.

        None where the deadline does not hold with that confidence, and where it would not end
        within the calendar.
        """
        if self.meets_deadline is False or self.question.begins_s + self.sure_duration_s > LAST_S:
            return None
        return reservation_of(
            self.question.total_bytes, self.question.begins_s, self.sure_duration_s
        )

    def interval(self, cover: float) -> Interval:
        """The interval of a share of transfers: .5, .8 or .95.

        Raises:
            KeyError: for another share.
        """
        for one in self.intervals:
            if one.cover == cover:
                return one
        raise KeyError(cover)


class PathHistory:
    """What is known of one path: gone through once, asked any number of times."""

    def __init__(self, rows: Sequence[PastTransfer], ends: PathEnds) -> None:
        """Looks at finished transfers of this path and of others, oldest first."""
        self._own = [row for row in rows if ends.fit(row)]
        self._done, self._of_files = history.usable(self._own)
        self._like = [] if len(self._done) >= ENOUGH else _like(rows, ends)
        self._like_paths = like_paths(self._like)
        newest_first = (*self._own[::-1], *rows[::-1])
        self._used = next((row for row in newest_first if row.modality == "E"), None)
        self._files = [row.source for row in self._own if row.modality == "E"]
        self._learnt: dict[tuple[float, float], PathEstimator] = {}

    def has_learnt(self, confidence: float) -> bool:
        """Whether an estimate of this confidence has not to go through many transfers first."""
        return len(self._done) < ENOUGH or (cover_of(confidence), 0.0) in self._learnt

    def estimate(self, question: Question) -> TransferEstimate:
        """Estimates a transfer; the question is asked after all transfers of this history."""
        load = self._workload(question)
        level, weight = level_of(load, self._like_paths)
        asked = cover_of(question.confidence)
        estimator = self._estimator(asked, level)
        prediction = estimator.predict(load, question.begins_s)
        return TransferEstimate(
            question,
            prediction,
            tuple(estimator.interval(prediction, cover) for cover in COVERS),
            interval_of(estimator, prediction, asked),
            *_basis(self._done, self._sort(question), self._like if weight >= LEAST_LIKE else []),
            _deadline_confidence(question, estimator, prediction),
        )

    def _estimator(self, asked: float, level: float) -> PathEstimator:
        """An estimator that has learnt the path: going through it takes longest of all."""
        found = self._learnt.get((asked, level))
        if found is None:
            covers = dict.fromkeys((*COVERS, *map(cover_of, CONFIDENCES), asked))
            found = history.learnt(self._done, covers, of_files=self._of_files, level=level)
            if len(self._learnt) >= MOST_LEARNT:
                self._learnt.clear()
            self._learnt[asked, level] = found
        return found

    def _workload(self, question: Question) -> Workload:
        """What was asked for, with the path and settings of its newest transfer where not said."""
        own, used, files = self._own, self._used, max(1, question.files)
        last = history.workload_of(own[-1]) if own else Workload(0.0, 1)
        streams, concurrency = question.streams, question.concurrency
        pipelining = question.pipelining or (used.pipelining if used is not None else None)
        if used is not None:
            streams = streams or used.streams
            concurrency = concurrency or used.concurrency
        at_once, per_file = history.settings(files, streams or STREAMS, concurrency, None)
        rtt_s = self._done[-1].workload.rtt_s if self._done else last.rtt_s
        return replace(
            last, total_bytes=float(question.total_bytes), files=files, concurrency=at_once,
            parallelism=per_file, pipelining=pipelining or 1,
            rtt_s=question.rtt_s if rtt_s is None else rtt_s,
            link_bps=last.link_bps or question.link_bps,
            host_key=_host_key(question, own[-1]) if own else None,
        )  # fmt: skip

    def _sort(self, question: Question) -> EstimateBasis:
        """What the transfers of the path itself are."""
        if not self._of_files:
            return "probes"
        return "sample" if self._files == [question.sample] else "own-path"


def estimate_transfer(
    question: Question, rows: Sequence[PastTransfer], ends: PathEnds
) -> TransferEstimate:
    """Estimates a transfer between `ends` from finished ones of this path and others, oldest first.

    Transfers that ended after the question was asked are not looked at.
    """
    before = [row for row in rows if (row.ended_s or 0.0) <= question.now_s]
    return PathHistory(before, ends).estimate(question)


def _host_key(question: Question, newest: PastTransfer) -> str | None:
    """The two hosts as they are now, as far as that is known."""
    if question.own_kernel is None:
        return history.host_key(newest)
    if question.pushes:
        return history.host_key(replace(newest, from_kernel=question.own_kernel))
    return history.host_key(replace(newest, to_kernel=question.own_kernel))


def _like(rows: Sequence[PastTransfer], ends: PathEnds) -> list[list[Finished]]:
    """The transfers of other paths, a list for each, those between memories left out."""
    others = history.of_paths(row for row in rows if not ends.fit(row) and row.modality == "E")
    return [done for some in others.values() if (done := history.usable(some)[0])]


def _basis(
    done: Sequence[Finished], own: EstimateBasis, like: Sequence[Sequence[Finished]]
) -> tuple[EstimateBasis, int, float | None]:
    """What an estimate rests on: its word, how many transfers, when the newest of them ended."""
    if done:
        return own, len(done), done[-1].ended_s or None
    if like:
        newest = max(path[-1].ended_s for path in like)
        return "like-paths", sum(map(len, like)), newest or None
    return "model", 0, None


def _deadline_confidence(
    question: Question, estimator: PathEstimator, prediction: Prediction
) -> float | None:
    """How sure the deadline is, if the transfer begins as asked."""
    if question.deadline_s is None:
        return None
    steps = [(one, interval_of(estimator, prediction, cover_of(one))) for one in CONFIDENCES]
    return kept_within(question.deadline_s - question.begins_s, steps)
