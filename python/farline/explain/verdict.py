"""What limited a run: rules over its figures, the first that fits wins.

Order matters. What was asked for comes first (a rate limit is no defect), then
the harness and the CPUs (a window that closes because the reader is slow is the
reader's fault), then the windows the kernel accounts for in TCP_INFO (busy time
split into receiver window, send buffer and congestion window), then the path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from farline.explain import (
    black_hole,
    copy_verdict,
    rbudp_rules,
    rbudp_text,
    tcp_rules,
    udp_rules,
    udt_rules,
)
from farline.explain.copy_figures import copy_figures_of
from farline.explain.figures import Figures, directions_of, figures_of
from farline.explain.finding import Finding, larger_packets, percent
from farline.profiles.application_bound import Bound
from farline.profiles.copy_streams import data_only
from farline.profiles.series import Columns
from farline.spec._types import RunRecord, Verdict
from farline.spec.units import rate_human, size_human, time_human

RATE_REACHED = 0.95
"""Share of the asked rate from which the rate itself is the limit."""

SHORT_S = 0.05
"""Seconds of data below which shares of time and of CPUs mean nothing."""

PATH_FULL = 0.97
"""Share of an emulated link's payload rate from which the link is the limit."""

NEARLY_FULL = 0.85
"""The same of a run whose start-up is part of it, if it was full from then on."""

Rule = Callable[[Figures], Finding | None]


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
        line = f"{slowest.direction} (the slower way): {line}"
    known = [bound] if bound and not above else []
    return {
        "limit": found.limit,
        "line": line + _zerocopy_note(slowest),
        "evidence": [*found.evidence, *_common_evidence(slowest), *known],
        "remedies": list(found.remedies),
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
    full = None if figures.status == "failed" else _full_path(figures)
    found = full or copy_verdict.find(copied) or judge(figures)
    if found.limit == "path" and copied.same_host and not record.get("path"):
        # What waits on loopback waits for a CPU.
        found = _nothing_stands_out(figures)
    verdict = copy_verdict.verdict_of(found, copied)
    more = [*_path_evidence(figures), *_warnings(figures)]
    return {**verdict, "evidence": [*verdict["evidence"], *more]}


def judge(figures: Figures) -> Finding:
    """The first rule's finding; `unknown` with the figures when none fits."""
    for rule in RULES:
        found = rule(figures)
        if found is not None:
            return found
    return _nothing_stands_out(figures)


def _nothing_stands_out(figures: Figures) -> Finding:
    return Finding("unknown", f"no single limit stands out at {rate_human(figures.throughput_bps)}")


def _failed(figures: Figures) -> Finding | None:
    if figures.status != "failed":
        return None
    return Finding("unknown", f"the run failed: {figures.error or 'no reason given'}")


def _nothing_moved(figures: Figures) -> Finding | None:
    if figures.throughput_bps > 0:
        return None
    return Finding("unknown", "no byte arrived, so there is nothing to judge")


def _harness(figures: Figures) -> Finding | None:
    if figures.transport != "null":
        return None
    line = f"harness: no network in this run, {rate_human(figures.throughput_bps)} is its ceiling"
    return Finding("harness", line, remedies=("a real transport: --transport tcp",))


def _rate(figures: Figures) -> Finding | None:
    reached = figures.throughput_bps / figures.asked_bps if figures.asked_bps else 0.0
    if reached < RATE_REACHED or udp_rules.is_lossy(figures):
        return None
    line = f"rate: {percent(reached)} of {rate_human(figures.asked_bps)} reached"
    if figures.rate_note:
        return _rate_of_ticket(figures, line)
    none = (f"a higher rate, or none: {figures.asked_by} 0",)
    remedies = none if figures.rbudp is None else rbudp_rules.rate_remedies(figures)
    return Finding("rate", line, (f"asked for {rate_human(figures.asked_bps)} in all",), remedies)


def _rate_of_ticket(figures: Figures, line: str) -> Finding:
    """The server holds the run to that rate: a higher one would be refused."""
    line += ", which is all that the server allows with this ticket"
    remedies = (
        "a ticket that allows more, of the server: farline ticket --limit-rate RATE,"
        " farline serve --limit-rate RATE (without a ticket: --anonymous-rate RATE)",
    )
    return Finding("rate", line, (f"the server: {figures.rate_note}",), remedies)


def _too_short(figures: Figures) -> Finding | None:
    if figures.moved_s >= SHORT_S:
        return None
    span = time_human(figures.moved_s * 1e6)
    return Finding(
        "unknown",
        f"too short to tell what limited it: data moved for {span}",
        remedies=("a longer run: -t 10",),
    )


def _full_path(figures: Figures) -> Finding | None:
    """An emulated link carries what it can, whatever else is nearly busy too."""
    most = figures.path_payload_bps
    # RBUDP does not slow down on a full path: its own rules say what is lost of a rate beyond it.
    if figures.rbudp is not None:
        return None
    if not most or udp_rules.is_lossy(figures):
        return None
    share = percent(figures.throughput_bps / most)
    line = f"path: {share} of what the emulated link carries of payload"
    if figures.throughput_bps < PATH_FULL * most:
        settled = figures.settled_bps or 0.0
        if figures.throughput_bps < NEARLY_FULL * most or settled < PATH_FULL * most:
            return None
        line += f", and {percent(min(1.0, settled / most))} once it had started up"
    faster = "a faster link: --link-rate, or --rate of the testbed"
    return Finding("path", line, remedies=(faster, *larger_packets(figures)))


def _for_udp(rule: Rule) -> Rule:
    return lambda figures: rule(figures) if figures.transport == "udp" else None


def _for_udt(rule: Rule) -> Rule:
    return lambda figures: rule(figures) if figures.udt is not None else None


def _for_rbudp(rule: Rule) -> Rule:
    return lambda figures: rule(figures) if figures.rbudp is not None else None


def _for_tcp(rule: Rule) -> Rule:
    return lambda figures: rule(figures) if figures.transport == "tcp" else None


RULES: tuple[Rule, ...] = (
    _failed,
    _nothing_moved,
    _harness,
    _too_short,
    _rate,
    _full_path,
    *map(_for_udp, udp_rules.RULES),
    *map(_for_tcp, tcp_rules.RULES),
    *map(_for_udt, udt_rules.RULES),
    *map(_for_rbudp, rbudp_rules.RULES),
)
"""Every rule, in the order they are asked."""


def _zerocopy_note(figures: Figures) -> str:
    sent = figures.zerocopy_copied_bytes + figures.zerocopy_true_bytes
    if not sent:
        return ""
    share = figures.zerocopy_copied_bytes / sent
    return f"; MSG_ZEROCOPY: the kernel copied {percent(share)} of {size_human(sent)} after all"


def _common_evidence(figures: Figures) -> list[str]:
    lines = []
    if figures.throughput_bps > 0:
        lines.append(f"throughput {rate_human(figures.throughput_bps)}, {figures.direction}")
    lines += _path_evidence(figures)
    if figures.moved_s >= SHORT_S:
        lines.append(
            f"busiest sender thread {percent(figures.sender_cpu)} of a CPU, "
            f"busiest receiver thread {percent(figures.receiver_cpu)}"
        )
    return lines + udt_rules.evidence(figures) + rbudp_text.evidence(figures) + _warnings(figures)


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
        lines.append("an end runs a debug build: its speed says nothing")
    if figures.steal_share >= 0.05:
        lines.append(f"the hypervisor took {percent(figures.steal_share)} of the CPU time away")
    return lines
