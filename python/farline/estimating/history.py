"""Rows of the store's history as what an estimator learns from, and estimators of whole paths."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from farline.estimating.finished import Finished
from farline.estimating.path_estimator import IDLE_VARIANCE, MOST_TRANSFERS, PathEstimator
from farline.estimating.workload import Workload

if TYPE_CHECKING:
    from farline.store.paths import PastTransfer

ABOVE_LINK = 4.0
"""Times its slowest link at which a transfer is none: data that shrink may go faster than the link,
but a rate far above it is a mistake in units, or bytes that never moved."""

MOST_REPLAYED = 400
"""Newest transfers whose scores are found by going through them, where none were kept."""

SAME_RTT = 1.5
"""Ratio up to which two round-trip times of one path are one: they are measured, and jitter."""


def finished_of(row: PastTransfer) -> Finished | None:
    """A row as the estimator learns from it; None if its rate says nothing of the path.

    That is one that was asked for a rate, one that found part of its bytes there already, one
    whose bytes are not known, and one whose figures cannot be true: a log may say anything.
    """
    if row.capped or row.resumed or not row.bytes or not _is_figure(row.rate_bps):
        return None
    load = workload_of(row)
    known_s = row.duration_s if _is_figure(row.duration_s) else None
    rate_bps = 8 * load.volume_bytes / (known_s or 8 * row.bytes / row.rate_bps)
    if not _is_figure(rate_bps) or rate_bps > ABOVE_LINK * (load.link_bps or math.inf):
        return None
    score, residual = _kept(row.estimate or {})
    ended_s = row.ended_s if _is_figure(row.ended_s) else None
    return Finished(load, ended_s or 0.0, rate_bps, score, residual)


def workload_of(row: PastTransfer) -> Workload:
    """What a transfer was before it ran."""
    files = row.files or 1
    concurrency, parallelism = settings(files, row.streams, row.concurrency, row.parallelism)
    return Workload(
        float(row.bytes or 0), files, concurrency, parallelism, row.pipelining or 1,
        row.rtt_ms / 1e3 if row.rtt_ms == 0 or _is_figure(row.rtt_ms) else None,
        row.capacity_bps if _is_figure(row.capacity_bps) else None, row.window_bytes,
        host_key(row),
    )  # fmt: skip


def settings(
    files: int, streams: int | None, concurrency: int | None, parallelism: int | None
) -> tuple[float, float]:
    """Files at once and streams for each, of what is known.

    A mover whose streams take the next file's pieces has as many files under way as streams, if
    there are as many files.
    """
    if concurrency:
        return concurrency, parallelism or max(1, (streams or concurrency) / concurrency)
    total = streams or parallelism or 1
    at_once = min(total, max(1, files))
    return at_once, total / at_once


def host_key(row: PastTransfer) -> str | None:
    """What tells hosts apart that were changed: releases of both kernels, speed of the interface.

    Of a kernel only its first two numbers count: a fix of security changes no throughput.
    """
    parts = (_release(row.from_kernel), _release(row.to_kernel), row.nic_bps)
    return None if not any(parts) else " ".join(str(part or "-") for part in parts)


def _release(kernel: str | None) -> str | None:
    return ".".join(kernel.split(".")[:2]) if kernel else None


def _is_figure(value: float | None) -> TypeGuard[float]:
    """Whether it is a number above 0 that is one."""
    return value is not None and 0 < value < math.inf


def _kept(estimate: Mapping[str, object]) -> tuple[float | None, float | None]:
    """Score and residual as they were kept with a run; None for both where one is no figure.

    They stand under a label, which others may write as well.
    """
    found = [estimate.get(name) for name in ("score", "residual")]
    score, residual = (
        float(one)
        if isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)
        else None
        for one in found
    )
    if score is None or residual is None or score < 0:
        return None, None
    return score, residual


def levelled(rows: Iterable[Finished]) -> list[Finished]:
    """The same, with the round-trip times that only jitter around the path's own made equal."""
    done = list(rows)
    known = [one.workload.rtt_s for one in done if one.workload.rtt_s]
    if not known:
        return done
    usual = statistics.median(known)

    def level(one: Finished) -> Finished:
        rtt_s = one.workload.rtt_s
        near = rtt_s is None or usual / SAME_RTT <= rtt_s <= usual * SAME_RTT
        return replace(one, workload=replace(one.workload, rtt_s=usual)) if near else one

    return [level(one) for one in done]


def of_paths(rows: Iterable[PastTransfer]) -> dict[str, list[PastTransfer]]:
    """Rows by the path that they are of, in their order."""
    paths: dict[str, list[PastTransfer]] = {}
    for row in rows:
        paths.setdefault(row.path, []).append(row)
    return paths


def usable(rows: Sequence[PastTransfer]) -> tuple[list[Finished], bool]:
    """What an estimate of files may learn from, and whether it is of files.

    Runs between memories count only where the path has had no files: disks are not in them.
    """
    files = [row for row in rows if row.modality == "E"]
    probes = [row for row in rows if row.modality == "T" and not row.short]
    chosen = probes if probes and not files else files
    is_of_files, chosen = chosen is not probes, chosen[-MOST_TRANSFERS:]
    return levelled(done for row in chosen if (done := finished_of(row))), is_of_files


def learnt(
    done: Sequence[Finished], covers: Iterable[float], *, of_files: bool = True, level: float = 0.0
) -> PathEstimator:
    """An estimator that has seen these transfers, oldest first.

    Scores that were kept are taken as they are; the others are found for the newest by going
    through the history, each transfer predicted from those before it.
    """
    extra = 0.0 if of_files else IDLE_VARIANCE
    estimator = PathEstimator(covers, level=level, extra_variance=extra)
    unscored = sum(one.score is None for one in done)
    for one in done:
        if one.score is None and unscored > MOST_REPLAYED:
            estimator.take(one)
        else:
            estimator.learn(one, one.ended_s - one.duration_s)
        unscored -= one.score is None
    return estimator
