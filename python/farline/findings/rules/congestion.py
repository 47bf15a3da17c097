"""Rules about congestion control: windows and rates that grow, are held down, or are chosen."""

from __future__ import annotations

from farline.findings.figures import Figures
from farline.findings.finding import Finding, more_streams, other_congestion_control, percent
from farline.findings.rules.limits import limits_of
from farline.findings.rules.losses import MODELS, are_of_start, control, lost, slow_down_control
from farline.findings.rules.path import WITHOUT_START, capacity
from farline.spec.units import rate_human, size_human


def still_growing(figures: Figures) -> Finding | None:
    """The run ended before the congestion control had settled."""
    udt = figures.udt
    growth = udt.rate_growth if udt else figures.cwnd_growth
    if growth is None or growth < limits_of(figures).growth or slow_down_control(figures):
        return None
    what = f"the rate of {control(figures)}" if udt else "the congestion window"
    line = f"congestion control: {what} still grew by {percent(growth - 1)} in the last third"
    line += " of the run" + ("" if udt else ", without losses")
    longer_s = max(30.0, 2 * (figures.duration_s or 0.0))
    ramp = () if figures.omit_s else (WITHOUT_START,)
    return Finding("cwnd", line, remedies=(f"a longer run: -t {longer_s:g}", *ramp))


def losses(figures: Figures) -> Finding | None:
    """Losses hold the congestion control down though no queue stands."""
    if not slow_down_control(figures):
        return None
    name = control(figures)
    if figures.udt is not None:
        line = f"congestion control: losses slow {name} down ({lost(figures)}); "
        line += _why_lost(figures.udt.wire_loss)
        other = () if name in MODELS else ("a control that ignores random losses: -C bbr",)
        return Finding("cwnd", line, remedies=(*other, *more_streams(figures)))
    line = f"congestion control: losses keep the window of {name} small ({lost(figures)})"
    if figures.transport == "quic":
        model = () if name in MODELS else ("a control that ignores random losses: -C bbr",)
        return Finding("cwnd", line, _window(figures), (*more_streams(figures), *model))
    pace = "a lower --fq-rate" if figures.asked_by == "--fq-rate" else "--fq-rate"
    remedies = (
        *more_streams(figures),
        *other_congestion_control(figures, "bbr"),
        f"pace below the rate at which packets are lost: {pace}",
    )
    return Finding("cwnd", line, _window(figures), remedies)


def _why_lost(wire_loss: bool | None) -> str:
    """Whether chance loses the packets or a queue, by what is known of an emulated path."""
    if wire_loss is None:
        return "no queue stands on average: random losses, or a short queue"
    if wire_loss:
        return "the path drops packets on purpose, and no queue stands"
    return "no link drops packets on purpose, so a queue overflows now and then"


def _window(figures: Figures) -> tuple[str, ...]:
    if figures.cwnd_bytes is None or figures.udt is not None:
        return ()
    return (f"congestion window {size_human(figures.cwnd_bytes)} on average",)


def paced_by_model(figures: Figures) -> Finding | None:
    """TCP's control paces at the rate that its model says the path carries."""
    limits, reached = limits_of(figures), figures.stream_bps
    if figures.congestion_control not in MODELS or not figures.pacing_bps:
        return None
    if not limits.pacing_least * reached <= figures.pacing_bps <= limits.pacing_most * reached:
        return None
    line = (
        f"congestion control: {figures.congestion_control} paces each stream at "
        f"{rate_human(figures.pacing_bps)} on average, without losses"
    )
    if figures.retransmits and are_of_start(figures):
        line += f" after its start-up ({lost(figures)}, nearly all at the start)"
    remedies = (*more_streams(figures), *other_congestion_control(figures, "cubic"))
    return Finding("cwnd", line, _window(figures), remedies)


def waits_for_pacing(figures: Figures) -> Finding | None:
    """UDT's senders wait for their own pacing, which the connection counts."""
    share = figures.udt.paced_share if figures.udt else 0.0
    if share < limits_of(figures).paced:
        return None
    at = f" each stream at {rate_human(figures.pacing_bps)}" if figures.pacing_bps else ""
    line = (
        f"congestion control: {control(figures)} paces{at}; senders waited for it "
        f"{percent(share)} of their busy time"
    )
    others = [f"-C {name}" for name in ("bbr", "native") if name != control(figures)]
    remedies = (*more_streams(figures), f"another congestion control: {others[0]}")
    return Finding("cwnd", line, capacity(figures), remedies)


def full_window(figures: Figures) -> Finding | None:
    """The congestion window was the limit though little was lost."""
    share = figures.cwnd_share - (figures.udt.paced_share if figures.udt else 0.0)
    if share < limits_of(figures).cwnd or _has_room(figures):
        return None
    line = f"congestion window: senders waited for it {percent(share)} of their busy time"
    return Finding("cwnd", line, _window(figures), (*more_streams(figures), "a longer run"))


def _has_room(figures: Figures) -> bool:
    """Whether the window allowed far more than was reached.

    The kernel, and a UDT connection, count as the congestion window's time all that is neither
    the receiver window's nor the send buffer's.
    """
    udt, limits = figures.udt, limits_of(figures)
    if udt is not None:
        least = limits.cwnd_in_flight * (udt.cwnd_packets or 0.0)
        return bool(udt.cwnd_packets) and (udt.flight_packets or 0.0) < least
    if figures.cwnd_bytes is None or not figures.mean_rtt_us:
        return False
    allowed_bps = figures.cwnd_bytes * 8e6 / figures.mean_rtt_us
    return allowed_bps > limits.cwnd_spare * figures.stream_bps
