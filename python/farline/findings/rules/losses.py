"""What a run lost, in the terms of its transport: shares for rules, words for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.findings.finding import counted, percent
from farline.findings.rules.limits import limits_of

if TYPE_CHECKING:
    from farline.findings.figures import Figures

MODELS = ("bbr",)
"""Congestion controls that work from a model of the path: they choose a pacing rate, not only a
window, and do not take every loss for congestion."""


def control(figures: Figures) -> str:
    """The congestion control by its name, where it is known."""
    return figures.congestion_control or "congestion control"


def lost_share(figures: Figures) -> float:
    """Share of the packets that did not arrive when they were sent first."""
    if figures.transport == "tcp":
        return figures.retransmit_share
    if figures.transport == "quic":
        # Its sender finds out; what is lost goes again in packets of other numbers.
        return figures.retransmits / figures.sent_packets if figures.sent_packets else 0.0
    blasts = figures.rbudp.blasts if figures.rbudp else None
    return blasts.first_pass_lost_share if blasts and blasts.packets else figures.lost_share


def lost(figures: Figures) -> str:
    """The losses in words."""
    share = percent(lost_share(figures))
    if figures.transport == "tcp":
        return f"{counted(figures.retransmits, 'segment')} retransmitted, {share}"
    if figures.rbudp is not None:
        return f"{share} of the packets were missing after the first pass"
    if figures.transport == "udp":
        return f"{share} of {figures.sent_packets} datagrams lost"
    if figures.transport == "quic":
        return f"{figures.retransmits} of {figures.sent_packets} packets lost, {share}"
    return f"{figures.lost_packets} of {figures.sent_packets} packets lost, {share}"


def is_lossy(figures: Figures) -> bool:
    """Whether so many packets were lost that the loss is the story."""
    return lost_share(figures) >= limits_of(figures).loss


def slow_down_control(figures: Figures) -> bool:
    """Whether the losses are so many that the congestion control slows down for them."""
    if control(figures) == "fixed" or are_of_start(figures):
        return False
    limits, models = limits_of(figures), control(figures) in MODELS
    return lost_share(figures) >= (limits.loss_to_model if models else limits.loss)


def explain_missing_rate(figures: Figures, share: float) -> bool:
    """Whether a share of the requested rate, lost or left idle, is most of what is missing."""
    missing = 1 - figures.throughput_bps / figures.asked_bps
    return share >= limits_of(figures).explains * missing


def are_of_start(figures: Figures) -> bool:
    """Whether a control with a model of the path had its losses in its start-up only."""
    late = figures.late_retransmit_share
    models = figures.transport == "tcp" and figures.congestion_control in MODELS
    return models and late is not None and late < limits_of(figures).loss


def dropped_by_hosts(figures: Figures) -> int:
    """Datagrams that hosts of an emulated path are known to have dropped for want of room."""
    own = figures.udt or figures.rbudp
    return own.drops if own else 0


def is_lost_by_host(figures: Figures) -> bool:
    """Whether the socket of the receiving host overflowed: it says so, or no path can lose."""
    own, limits = figures.udt or figures.rbudp, limits_of(figures)
    drops = dropped_by_hosts(figures)
    if not drops and not (figures.same_host and not (own and own.emulated)):
        return False
    by_link = own is not None and bool(own.wire_loss)
    return not by_link or limits.burst_packets * drops >= limits.drops * figures.lost_packets
