"""The rule about a program that has nothing to send."""

from __future__ import annotations

from farline.findings.figures import Figures
from farline.findings.finding import Finding, larger_block, more_streams, own_cpu, percent
from farline.findings.rules.limits import limits_of


def idle_sender(figures: Figures) -> Finding | None:
    """The sender often had nothing to send: farline itself, or the CPU it wants, was too slow."""
    if figures.busy_share is None or figures.busy_share >= limits_of(figures).sender_has_data:
        return None
    line = (
        f"application: senders had nothing to send {percent(1 - figures.busy_share)} of the time"
        f"{_held_back(figures)}"
    )
    evidence = (
        f"the busiest sender thread used {percent(figures.sender_cpu)} of a CPU "
        f"and waited for one {percent(figures.sender_wait)} of the time",
    )
    remedies = (*larger_block(figures), *own_cpu(figures, "sender"), *more_streams(figures))
    return Finding("application", line, evidence, remedies)


def _held_back(figures: Figures) -> str:
    """What held idle senders back in the time in which they had something to send."""
    own = "congestion window" if figures.udt is None else "congestion control"
    shares = {
        "receiver's window": figures.receive_window_share,
        "send buffer": figures.send_buffer_share,
        own: figures.cwnd_share,
    }
    name, share = max(shares.items(), key=lambda item: item[1])
    if share < limits_of(figures).window:
        return ", and the network did not hold them back"
    return f"; for {percent(share)} of the rest the {name} held them back"
