"""One line as a fluid: a copy that is held to a rate, and a CUBIC flow beside it.

The flow's window grows by RFC 9438 (its cubic and its Reno-friendly part) and is cut to 0.7 where
the queue overflows; a flow of limited rate never sends more than that. It is a model: it shows the
rules of a budget, not a network.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from farline.fairness.rate_budget import PathLook, RateBudget

STEP_S = 0.01
LOOK_S = 0.5
_SEGMENT = 8 * 1448
_C, _BETA = 0.4, 0.7
_SECONDS, _SKIPPED_S = 40.0, 10.0


@dataclass(frozen=True)
class Line:
    """A line and who was there before: `load` is the share that they want, 1 for all of it."""

    rate_bps: float
    rtt_s: float
    load: float
    jitter_s: float = 0.0
    """Mean error of a round trip that is seen, as on a busy host."""


@dataclass
class _Cubic:
    """The other flow."""

    line: Line
    window: float = 0.0
    most: float = 0.0
    cut_s: float = 0.0

    def __post_init__(self) -> None:
        share = self.line.load if self.line.load < 1 else 0.5
        self.window = self.most = self.line.rate_bps * self.line.rtt_s * share

    @property
    def limit_bps(self) -> float:
        return 0.95 * self.line.load * self.line.rate_bps if self.line.load < 1 else float("inf")

    def rate_bps(self, round_trip_s: float) -> float:
        return min(self.window / round_trip_s, self.limit_bps)

    def step(self, at_s: float, round_trip_s: float, is_lost: bool) -> None:
        if is_lost and at_s - self.cut_s > round_trip_s:
            self.most, self.cut_s = self.window, at_s
            self.window *= _BETA
            return
        climb_s = (self.most * (1 - _BETA) / (_C * _SEGMENT)) ** (1 / 3)
        since_s = at_s - self.cut_s
        cubic = _C * _SEGMENT * (since_s - climb_s) ** 3 + self.most
        friendly = self.window + 0.53 * _SEGMENT * STEP_S / round_trip_s
        self.window = max(friendly, min(self.window * (1 + STEP_S / round_trip_s), cubic))
        if self.line.load < 1:
            # What is not used does not grow.
            self.window = min(self.window, 2 * self.limit_bps * round_trip_s)


def shared(line: Line, max_harm: float | None, seed: int = 1) -> tuple[float, float]:
    """Mean rates of copy and flow in the last half minute; without a budget there is no copy."""
    draw = random.Random(seed)
    budget = None if max_harm is None else RateBudget(max_harm)
    other, queue, seen_s = _Cubic(line), 0.0, line.rtt_s
    room = line.rate_bps * max(line.rtt_s, 0.001)
    sent = lost = 0.0
    ours = theirs = 0.0
    for step in range(round(_SECONDS / STEP_S)):
        at_s = step * STEP_S
        round_trip_s = line.rtt_s + queue / line.rate_bps
        rate, flow = (0.0 if budget is None else budget.rate_bps), other.rate_bps(round_trip_s)
        total = rate + flow
        wanted = queue + (total - line.rate_bps) * STEP_S
        queue, over = min(room, max(0.0, wanted)), max(0.0, wanted - room)
        part = min(1.0, line.rate_bps / total) if total else 1.0
        sent += part * rate * STEP_S
        lost += over * rate / total if total else 0.0
        if at_s >= _SKIPPED_S:
            ours, theirs = ours + part * rate, theirs + part * flow
        other.step(at_s, round_trip_s, over > 0)
        seen_s += (round_trip_s - seen_s) * min(1.0, STEP_S / max(round_trip_s, 0.02))
        if budget is not None and step % round(LOOK_S / STEP_S) == 0 and step:
            late_s = abs(draw.gauss(0, line.jitter_s))
            budget.step(PathLook(
                sent / LOOK_S, (seen_s + late_s, line.rtt_s), lost / LOOK_S
            ))  # fmt: skip
            sent = lost = 0.0
    steps = round((_SECONDS - _SKIPPED_S) / STEP_S)
    return ours / steps, theirs / steps
