"""Which verdict rules there are, in the order in which they are asked, and for which transports.

Order matters. What was requested comes first (a rate limit is no defect), then CPUs (a window that
closes because the reader is slow is the reader's fault), then windows and buffers by the accounts
of the kernel or the connection, then the path and the congestion control. A rule that two
transports ask at different places stands here twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from farline.findings.figures import Figures
from farline.findings.finding import Finding
from farline.findings.rules import (
    blasts,
    congestion,
    cpu,
    outcome,
    path,
    receivers,
    sender,
    tcp_windows,
    udt_windows,
)

EVERY = ("null", "tcp", "udp", "udt", "rbudp", "quic")


@dataclass(frozen=True)
class Rule:
    """A rule and the transports whose runs it is asked about."""

    find: Callable[[Figures], Finding | None]
    transports: tuple[str, ...] = EVERY


RULES: tuple[Rule, ...] = (
    Rule(outcome.failed),
    Rule(outcome.nothing_moved),
    # Without a network, a rate that was set is the limit before farline itself is.
    Rule(outcome.rate, ("null",)),
    Rule(outcome.harness),
    Rule(outcome.too_short),
    Rule(outcome.rate, ("tcp", "udp", "udt", "rbudp", "quic")),
    Rule(path.full_emulated_link, ("tcp", "udp", "udt", "quic")),
    # Datagrams that nobody sends again: what was lost is the story.
    Rule(receivers.slow_receiver, ("udp", "rbudp")),
    Rule(receivers.overflowing_socket, ("udp", "rbudp")),
    Rule(path.lossy_path, ("udp",)),
    Rule(path.overloaded_path, ("rbudp",)),
    Rule(path.full_emulated_link, ("rbudp",)),
    # CPUs.
    Rule(cpu.busy_thread),
    Rule(cpu.busy_host),
    # Windows, buffers and senders without data.
    Rule(tcp_windows.receive_window, ("tcp",)),
    Rule(tcp_windows.send_buffer, ("tcp",)),
    Rule(udt_windows.receive_window, ("udt",)),
    Rule(udt_windows.send_buffer, ("udt",)),
    Rule(cpu.starved_sender, ("tcp", "udt")),
    Rule(sender.idle_sender, ("tcp", "udt")),
    Rule(receivers.overflowing_socket, ("udt",)),
    # The path and what the congestion control makes of it.
    Rule(path.full_interface, ("tcp", "udt", "quic")),
    Rule(path.fixed_rate, ("udt",)),
    Rule(congestion.still_growing, ("tcp", "udt", "quic")),
    Rule(path.standing_queue, ("tcp", "udt", "quic")),
    Rule(path.found_link, ("udt",)),
    Rule(congestion.losses, ("tcp", "udt", "quic")),
    Rule(cpu.late_pacing, ("udt",)),
    Rule(congestion.paced_by_model, ("tcp",)),
    Rule(congestion.waits_for_pacing, ("udt",)),
    Rule(congestion.full_window, ("tcp", "udt")),
    # Blasts.
    Rule(blasts.lowered_rate, ("rbudp",)),
    Rule(blasts.idle_path, ("rbudp",)),
    Rule(cpu.slow_sender, ("udp", "rbudp")),
    Rule(blasts.waiting_blasts, ("rbudp",)),
    Rule(blasts.idle_between, ("rbudp",)),
    Rule(path.lossy_path, ("rbudp",)),
    Rule(receivers.blocked_sender, ("udp", "rbudp")),
    Rule(cpu.nearly_busy, ("udt", "rbudp", "quic")),
)
"""Every rule; the first that finds something gives the verdict."""


def judge(figures: Figures) -> Finding | None:
    """The first rule's finding; None where no rule fits."""
    rules = (rule for rule in RULES if figures.transport in rule.transports)
    return next((found for rule in rules if (found := rule.find(figures))), None)
