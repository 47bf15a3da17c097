"""Rules about the path: links that are full, queues that stand, packets that it loses."""

from __future__ import annotations

from farline.findings.figures import Figures
from farline.findings.finding import Finding, larger_packets, percent, rate_flag
from farline.findings.rbudp_figures import RbudpFigures
from farline.findings.rules.blasts import early, rbudp_of
from farline.findings.rules.limits import limits_of
from farline.findings.rules.losses import MODELS, control, is_lossy, lost
from farline.findings.rules.receivers import larger_udp_buffer
from farline.spec.units import rate_human, time_human

_BATCH_SHORT = 8
"""Datagrams per call that make a burst short."""

WITHOUT_START = "leave the start-up out: -O 5"


def full_emulated_link(figures: Figures) -> Finding | None:
    """An emulated link carries what it can, whatever else is nearly busy too."""
    most, limits = figures.path_payload_bps, limits_of(figures)
    if not most or (figures.transport == "udp" and is_lossy(figures)):
        return None
    share = percent(figures.throughput_bps / most)
    line = f"path: the run used {share} of the emulated link's payload rate"
    if figures.throughput_bps < limits.path_full * most:
        settled = figures.settled_bps or 0.0
        if figures.throughput_bps < limits.path_nearly_full * most:
            return None
        if settled < limits.path_full * most:
            return None
        line += f", and {percent(min(1.0, settled / most))} after the start-up"
    faster = "a faster link: --link-rate, or --rate of the testbed"
    return Finding("path", line, remedies=(faster, *larger_packets(figures)))


def full_interface(figures: Figures) -> Finding | None:
    """The interface carries what it can."""
    link_bps = figures.link_bps
    if not link_bps or figures.throughput_bps < limits_of(figures).link_full * link_bps:
        return None
    share = figures.throughput_bps / link_bps
    line = f"path: the payload takes {percent(share)} of the interface's {rate_human(link_bps)}"
    larger = "larger packets leave more room for payload: an MTU of 9000"
    return Finding("path", line, remedies=(larger,))


def found_link(figures: Figures) -> Finding | None:
    """Nearly all that the link carries arrived, or a control paces at the link's rate."""
    most, limits = figures.path_payload_bps or figures.link_bps, limits_of(figures)
    if not most or figures.throughput_bps < limits.link_used * most:
        return None
    pacing_bps = (figures.pacing_bps or 0.0) * figures.streams
    paced = control(figures) in MODELS and pacing_bps >= limits.link_full * most
    if not paced and figures.throughput_bps < limits.link_full * most:
        return None
    share = percent(figures.throughput_bps / most)
    line = f"path: {share} of what the link carries, start-up included"
    if paced:
        line += f"; {control(figures)} has found its rate and paces at {rate_human(pacing_bps)}"
    elif figures.lost_packets:
        line += f"; {lost(figures)}"
    ramp = () if figures.omit_s else (WITHOUT_START,)
    return Finding("path", line, remedies=(*ramp, "a faster link", *larger_packets(figures)))


def standing_queue(figures: Figures) -> Finding | None:
    """Packets wait in a queue: the path delivers what it can."""
    mean_us, min_us, limits = figures.mean_rtt_us, figures.min_rtt_us, limits_of(figures)
    if not mean_us or not min_us or (figures.same_host and not limits.queue_on_one_host):
        return None
    if mean_us < limits.queue_ratio * min_us or mean_us - min_us < limits.queue_us:
        return None
    line = (
        f"path: it is full; packets wait {time_human(mean_us - min_us)} in queues "
        f"on top of {time_human(min_us)}"
    )
    if figures.lost_packets:
        line += f"; {lost(figures)}, because the queue overflows"
    evidence = (lost(figures),) if figures.transport == "tcp" else capacity(figures)
    remedies = ("a faster path, or less load on it", *larger_packets(figures))
    return Finding("path", line, evidence, remedies)


def capacity(figures: Figures) -> tuple[str, ...]:
    """What UDT's packet pairs say of the path."""
    capacity_bps = figures.udt.link_capacity_bps if figures.udt else None
    if not capacity_bps:
        return ()
    return (f"capacity of the path by packet pairs: {rate_human(capacity_bps)}",)


def lossy_path(figures: Figures) -> Finding | None:
    """Datagrams are lost and the receiver had time: the path dropped them."""
    if not is_lossy(figures):
        return None
    if figures.rbudp is not None:
        return _lossy_for_blasts(figures, figures.rbudp)
    line = f"path: {lost(figures)} at {rate_human(figures.throughput_bps)} received"
    shorter = figures.batch_packets is None or figures.batch_packets > _BATCH_SHORT
    remedies = (
        f"the rate that arrived: -b {figures.throughput_bps / 1e9:.3g}G",
        *((f"shorter bursts: --batch {_BATCH_SHORT}",) if shorter else ()),
        "a larger receive buffer, to rule the host out: "
        f"--receive-buffer {larger_udp_buffer(figures)}",
    )
    return Finding("path", line, remedies=remedies)


def _lossy_for_blasts(figures: Figures, rbudp: RbudpFigures) -> Finding:
    line = f"path: {lost(figures)} although the receiver was not busy; {_whose_loss(rbudp)}"
    look = rbudp.path_check is None and rbudp.shared_path == "allow"
    remedies = (
        *early(rbudp),
        *(("see what the path carries: --shared-path warn",) if look else ()),
        f"a lower rate, to see whether fewer are lost: {rate_flag(0.9 * figures.stream_bps)}",
    )
    return Finding("path", line, remedies=remedies)


def _whose_loss(rbudp: RbudpFigures) -> str:
    if rbudp.wire_loss:
        return "a link drops packets on purpose, at any rate"
    if rbudp.carried_share is not None and not rbudp.shared:
        return "the path carried the stated rate before the blast, so the losses are random"
    return "the losses are random, or the rate is more than the path carries"


def overloaded_path(figures: Figures) -> Finding | None:
    """The stated rate is more than the path carries: the excess is lost, and sent again."""
    most = _carried_bps(figures)
    if most is None or not is_lossy(figures):
        return None
    stated = f" of the stated {rate_human(figures.asked_bps)}" if figures.asked_bps else ""
    line = f"path: it carries {rate_human(most)}{stated}, and the rest is lost: {lost(figures)}"
    fits = rate_flag(limits_of(figures).carried * most / figures.streams)
    return Finding("path", line, remedies=(f"what the path carries: {fits}",))


def _carried_bps(figures: Figures) -> float | None:
    """What is known to fit through the path, all streams, where that is less than the rate."""
    rbudp, asked_bps = rbudp_of(figures), figures.asked_bps
    known = [figures.path_payload_bps, figures.link_bps]
    # A path that is not found to be shared let the trains through, whatever times its hosts took.
    if rbudp.shared and rbudp.carried_share is not None:
        known.append(rbudp.carried_share * asked_bps)
    least = min((float(bps) for bps in known if bps), default=None)
    # Without a stated rate whatever is known is less.
    return least if least is not None and (not asked_bps or least < asked_bps) else None


def fixed_rate(figures: Figures) -> Finding | None:
    """A stated rate that the path does not take: what is sent beyond it is lost."""
    if control(figures) != "fixed" or not is_lossy(figures):
        return None
    line = (
        f"path: {rate_human(figures.throughput_bps)} of the requested "
        f"{rate_human(figures.asked_bps)} arrived ({lost(figures)})"
    )
    arrived = f"the rate that arrived: -b {figures.stream_bps / 1e9:.3g}G"
    return Finding("path", line, remedies=(arrived, "a control that finds the rate: -C bbr"))
