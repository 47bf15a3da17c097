"""What limited a run: the first rule that fits (`rules.table`), with evidence and remedies.

Before the rules comes what no figure shows: a path that swallows large packets. Beside them stands
what every verdict about a transport says, whichever rule was first.
"""

from __future__ import annotations

from collections.abc import Sequence

from farline.findings import black_hole, copy_verdict, rbudp_text, udt_text
from farline.findings.copy_figures import copy_figures_of
from farline.findings.driven_verdict import driven_verdict
from farline.findings.figures import Figures, directions_of, figures_of
from farline.findings.finding import Finding, percent
from farline.findings.rules import table
from farline.findings.rules.limits import limits_of
from farline.findings.rules.path import full_emulated_link
from farline.profiles.application_bound import Bound
from farline.profiles.copy_streams import data_only
from farline.profiles.driven import is_driven
from farline.profiles.series import Columns
from farline.spec._types import RunRecord, Verdict
from farline.spec.units import rate_human, size_human, time_human

_SHARE_STREAMS = (
    "check for links bundled by a hash of addresses and ports (LACP, ECMP): most streams may share "
    "one link of the bundle",
    "check for streams that started late: farline show RUN --samples",
)
"""What to check where one stream carried most of the bytes."""


def verdict(
    record: RunRecord,
    samples: Columns,
    bounds: Sequence[Bound] = (),
    passing: black_hole.Passing | None = None,
) -> Verdict:
    """What limited the run; with data both ways, what limited the slower way.

    `bounds` are what was measured before of what the receiving application can take in, oldest
    first: an RBUDP run is told whether its rate is above that.
    `passing` asks the path which packets it passes, where large ones seem to vanish.
    """
    if is_driven(record):
        return driven_verdict(record)
    record, samples = data_only(record, samples)
    hole = black_hole.suspicion(record, samples)
    if hole is not None:
        size = passing(hole) if passing is not None else None
        swallowed = black_hole.finding(hole, size)
        if swallowed is not None:
            return _into_black_hole(swallowed, record)
    if copy_verdict.is_judged_here(record):
        return _of_copy(record, samples)
    judged = [figures_of(record, samples, end) for end in directions_of(record)]
    slowest = min(judged, key=lambda figures: figures.throughput_bps)
    found = rbudp_text.for_others(slowest, judge(slowest))
    bound, above = rbudp_text.bound_text(slowest, bounds)
    line = f"{found.line}; {bound}" if above else found.line
    if len(judged) > 1:
        line = f"{slowest.direction} (the slower direction): {line}"
    known = [bound] if bound and not above else []
    return {
        "limit": found.limit,
        "line": line + _zerocopy_note(slowest),
        "evidence": [*found.evidence, *_common_evidence(slowest), *known],
        "remedies": [*found.remedies, *_common_remedies(slowest)],
    }


def _into_black_hole(found: Finding, record: RunRecord) -> Verdict:
    error = record.get("error")
    why = [f"the run failed: {error['message']}"] if error is not None else []
    return {
        "limit": found.limit,
        "line": found.line,
        "evidence": [*found.evidence, *why],
        "remedies": list(found.remedies),
    }


def _of_copy(record: RunRecord, samples: Columns) -> Verdict:
    """A full path, then what the record says of files, then windows and paths."""
    copied = copy_figures_of(record)
    (end,) = directions_of(record)
    figures = figures_of(record, samples, end)
    full = None if figures.status == "failed" else full_emulated_link(figures)
    found = full or copy_verdict.find(copied) or judge(figures)
    if found.limit == "path" and copied.same_host and not record.get("path"):
        # What waits on loopback waits for a CPU.
        found = _nothing_stands_out(figures)
    verdict = copy_verdict.verdict_of(found, copied)
    more = [*_path_evidence(figures), *_warnings(figures)]
    return {**verdict, "evidence": [*verdict["evidence"], *more]}


def judge(figures: Figures) -> Finding:
    """The first rule's finding; `unknown` with the rate when none fits."""
    return table.judge(figures) or _nothing_stands_out(figures)


def _nothing_stands_out(figures: Figures) -> Finding:
    return Finding("unknown", f"no single limit stands out at {rate_human(figures.throughput_bps)}")


def _zerocopy_note(figures: Figures) -> str:
    sent = figures.zerocopy_copied_bytes + figures.zerocopy_true_bytes
    if not sent:
        return ""
    share = figures.zerocopy_copied_bytes / sent
    return f"; MSG_ZEROCOPY: the kernel still copied {percent(share)} of {size_human(sent)}"


def _common_evidence(figures: Figures) -> list[str]:
    lines = []
    if figures.throughput_bps > 0:
        lines.append(f"throughput {rate_human(figures.throughput_bps)}, {figures.direction}")
    lines += _unequal_streams(figures)
    if (share := _dominant_share(figures)) is not None:
        lines.append(f"one stream of {figures.streams} carried {percent(share)} of the bytes")
    lines += _path_evidence(figures)
    if figures.moved_s >= limits_of(figures).short_s:
        lines.append(
            f"busiest sender thread {percent(figures.sender_cpu)} of a CPU, "
            f"busiest receiver thread {percent(figures.receiver_cpu)}"
        )
    return lines + udt_text.evidence(figures) + rbudp_text.evidence(figures) + _warnings(figures)


def _common_remedies(figures: Figures) -> tuple[str, ...]:
    """What to do about a line of `_common_evidence`; after what would lift the limit."""
    return _SHARE_STREAMS if _dominant_share(figures) is not None else ()


def _dominant_share(figures: Figures) -> float | None:
    """What one of several TCP streams carried, if that is most of the bytes."""
    limits, share = limits_of(figures), figures.largest_stream_share
    if figures.transport != "tcp" or figures.streams < limits.streams_compared:
        return None
    if share is None or share <= limits.stream_share or figures.moved_s < limits.stream_share_s:
        return None
    return share


def _unequal_streams(figures: Figures) -> list[str]:
    """Rates far apart, whatever limits the run: a mean of them, and `-P`, say little then."""
    limits, fastest = limits_of(figures), figures.fastest_stream_bps
    if figures.streams < limits.streams_compared or figures.moved_s < limits.short_s:
        return []
    if not fastest or fastest < limits.streams_unequal * figures.slowest_stream_bps:
        return []
    return [
        f"rates of the {figures.streams} streams are unequal: "
        f"{rate_human(figures.slowest_stream_bps)} to {rate_human(fastest)}"
    ]


def _path_evidence(figures: Figures) -> list[str]:
    lines = []
    if figures.mean_rtt_us is not None:
        lowest = f", smallest {time_human(figures.min_rtt_us)}" if figures.min_rtt_us else ""
        lines.append(f"round-trip time {time_human(figures.mean_rtt_us)} on average{lowest}")
    if figures.path_payload_bps:
        lines.append(
            f"the emulated link carries at most {rate_human(figures.path_payload_bps)} of payload"
        )
    if figures.busy_share is not None:
        lines.append(
            f"senders had data to send {percent(figures.busy_share)} of the time; "
            f"of that, held back by receiver window {percent(figures.receive_window_share)}, "
            f"send buffer {percent(figures.send_buffer_share)}, "
            f"{_congestion_share(figures)}"
        )
    return lines


def _congestion_share(figures: Figures) -> str:
    """The rest of the busy time: of UDT's, the part that was pacing is known."""
    if figures.udt is None:
        return f"congestion window {percent(figures.cwnd_share)}"
    paced = percent(figures.udt.paced_share)
    return f"congestion control {percent(figures.cwnd_share)} (pacing {paced})"


def _warnings(figures: Figures) -> list[str]:
    """What makes the figures themselves doubtful."""
    lines = []
    if "debug" in figures.builds:
        lines.append("one end runs a debug build: the rates are not representative")
    if figures.steal_share >= 0.05:
        lines.append(f"the hypervisor took {percent(figures.steal_share)} of the CPU time away")
    return lines
