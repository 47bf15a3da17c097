"""What every verdict about a UDT run rests on besides its rule: packets and windows."""

from __future__ import annotations

from farline.findings.figures import Figures
from farline.findings.rules.losses import control, lost


def evidence(figures: Figures) -> list[str]:
    """What every verdict about a UDT run rests on besides the common figures."""
    if figures.udt is None:
        return []
    lines = [
        f"{figures.sent_packets} packets sent, {figures.retransmits} of them retransmissions; "
        f"{lost(figures)}; congestion control {control(figures)}"
    ]
    udt = figures.udt
    if udt.flight_packets is not None:
        windows = [
            f"{value:.0f} by {what}"
            for what, value in (
                ("the congestion window", udt.cwnd_packets),
                ("the flow window", udt.flow_window_packets),
            )
            if value is not None
        ]
        allowed = f"; allowed: {', '.join(windows)}" if windows else ""
        flight = round(udt.flight_packets)
        lines.append(f"{flight} packet{'s' * (flight != 1)} in flight on average{allowed}")
    if udt.packet_bytes_most:
        lines.append(
            f"packets of {udt.packet_bytes} B, although the MTU of both ends allows "
            f"{udt.packet_bytes_most} B"
        )
    return lines
