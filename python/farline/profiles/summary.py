"""What a run comes to: one `Summary` from its record and its samples.

Throughput is what the receivers saw. Total counts the whole run, ramp
included; steady leaves the warm-up out, by the time the caller stated or else
by MSER-5. Retransmits and round-trip times come from the senders, losses from
the receivers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from farline.profiles.copy_streams import data_only, elapsed_us
from farline.profiles.driven import driven_throughput, is_driven
from farline.profiles.run_totals import stream_figures, streams_of, total
from farline.profiles.series import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    Columns,
    Progress,
    known,
    mean,
    plain,
    progress,
    rates_bps,
    rows_of,
)
from farline.spec._types import RunRecord, Summary, Throughput

BATCH_SAMPLES = 5
BATCHES_MIN = 10
SAMPLES_MIN = BATCH_SAMPLES * BATCHES_MIN
"""Samples MSER-5 needs before it says anything."""

_TAIL_BATCHES = 5
"""Batches always kept: the error of a mean of fewer is an accident."""


def mser5(samples: Sequence[float]) -> int | None:
    """How many samples at the start are warm-up; `None` if there are too few, or none settled."""
    batches = len(samples) // BATCH_SAMPLES
    if batches < BATCHES_MIN:
        return None
    means = [
        sum(samples[at : at + BATCH_SAMPLES]) / BATCH_SAMPLES
        for at in range(0, batches * BATCH_SAMPLES, BATCH_SAMPLES)
    ]
    errors = _squared_errors(means)[: batches - _TAIL_BATCHES + 1]
    cut = errors.index(min(errors))
    return None if cut > batches / 2 else cut * BATCH_SAMPLES


def _squared_errors(means: Sequence[float]) -> list[float]:
    """For each cut the squared error of the mean of what is behind it.

    From the end on, by Welford's update: one pass, and no difference of large squares.
    """
    errors, average, squares = [], 0.0, 0.0
    for count, one in enumerate(reversed(means), start=1):
        off = one - average
        average += off / count
        squares += off * (one - average)
        errors.append(squares / count**2)
    return errors[::-1]


def summarise(record: RunRecord, samples: Columns) -> Summary:
    """The summary of a run; figures that neither end knows are `None`.

    Of a copy, streams that carry messages count for nothing.
    """
    if is_driven(record):
        ways = {way: driven_throughput(record, way) for way in ("forward", "reverse")}
        return cast("Summary", {**ways, **stream_figures(record)})
    record, samples = data_only(record, plain(samples))
    return cast(
        "Summary",
        {
            "forward": _throughput(record, samples, SERVER),
            "reverse": _throughput(record, samples, CLIENT),
            **stream_figures(record),
            "mean_rtt_us": _mean_rtt_us(samples),
        },
    )


def _mean_rtt_us(samples: Columns) -> float | None:
    return mean(known(samples, "rtt_us", rows_of(samples, SENDER)))


def _throughput(record: RunRecord, samples: Columns, end: int) -> Throughput | None:
    """Throughput towards `end`; `None` if no stream goes there or its receiver did not report."""
    streams = streams_of(record, RECEIVER, end)
    if not streams:
        return None
    took_us = elapsed_us(record, streams)
    total_bytes = total(streams, "bytes")
    moved = progress(samples, RECEIVER, end)
    is_senders = not moved.times_us and record["spec"].get("transport", "tcp") == "tcp"
    if is_senders:
        # A server of iperf3's sends the end of its account alone. What TCP took from the sender
        # arrives, a buffer later.
        moved = progress(samples, SENDER, 1 - end)
    omitted_us, rule = _warmup(record, moved, took_us)
    if is_senders and rule != "none":
        rule = f"{rule}, by the sender"
    return {
        "total_bps": total_bytes * 8e6 / took_us if took_us else 0.0,
        "steady_bps": None if rule == "none" else _steady_bps(moved, omitted_us, took_us),
        "omitted_s": omitted_us / 1e6,
        "warmup_rule": rule,
        "bytes": total_bytes,
        "elapsed_s": took_us / 1e6,
    }


def _warmup(record: RunRecord, moved: Progress, elapsed_us: int) -> tuple[int, str]:
    """Microseconds left out, and the rule that says so."""
    stated_s = record["spec"].get("omit_s")
    if stated_s is not None:
        return round(stated_s * 1e6), "stated"
    width_us = round(record["spec"].get("interval_s", 1.0) * 1e6)
    rates = rates_bps(moved, width_us, min(elapsed_us, moved.end_us))
    cut = mser5(rates)
    return (0, "none") if cut is None else (cut * width_us, "mser-5")


def _steady_bps(moved: Progress, omitted_us: int, elapsed_us: int) -> float | None:
    """Rate after the warm-up; `None` if the samples do not reach beyond it."""
    until_us = min(elapsed_us, moved.end_us)
    if until_us <= omitted_us:
        return None
    before, after = moved.at([omitted_us, until_us])
    return (after - before) * 8e6 / (until_us - omitted_us)
