"""How a blast with early reports ends: what is still to come when nothing is left to send.

While the blast goes on the sender asks for a report each interval; what the report misses is sent
again at once. When nothing is left to send, the packets of the last questions have not been
reported. Each question's packets then go through rounds of their own (a round trip and the wait
for stragglers, and the time to send what is missing), all at the same time, and the blast ends
with the slowest of them. Who asked earlier is ahead: that is why this is less than the passes of
as many packets sent at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farline.models.rbudp import Case
from farline.models.rbudp_passes import Floats, PassDistribution, log_kept

_PHASES = 8
"""Places of the last question within an interval over which figures are averaged."""

_QUESTIONS_MAX = 32
"""Questions without an answer that are told apart; a shorter interval counts as so many."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a blast: `packets` at risk, of whose `loss` the end depends.

    `late_s` are times after the last packet's first report could be there, in order, `whole` the
    chance that all has come by then. Both have one value per step; before the first, nothing is
    whole yet.
    """

    packets: float
    loss: float
    late_s: Floats
    whole: Floats

    @property
    def mean_s(self) -> float:
        """Mean time that the gaps of the tail add."""
        return float(np.sum((1 - self.whole[:-1]) * np.diff(self.late_s)))

    def quantile_s(self, share: float) -> float:
        """Time within which `share` of blasts are whole."""
        place = int(np.searchsorted(self.whole, share))
        return float(self.late_s[min(place, len(self.late_s) - 1)])


def tail(case: Case) -> Tail:
    """The end of a blast of `case`, the last question's place in its interval averaged over."""
    phases = [_one_phase(case, (index + 0.5) / _PHASES) for index in range(_PHASES)]
    late_s = np.unique(np.concatenate([one.late_s for one in phases]))
    whole = np.mean([_at(one, late_s) for one in phases], axis=0)
    packets = math.fsum(one.packets for one in phases) / _PHASES
    return Tail(packets, case.loss, late_s, whole)


def _at(one: Tail, late_s: Floats) -> Floats:
    """The chance of being whole at other times."""
    place = np.searchsorted(one.late_s, late_s, side="right") - 1
    return np.asarray(one.whole[np.maximum(place, 0)], dtype=np.float64)


def _one_phase(case: Case, phase: float) -> Tail:
    """The end when the last early question came `phase` of an interval before nothing was left."""
    ages_s, sizes = _questions(case, phase)
    count = len(PassDistribution(float(sizes.sum()), case.loss).reach())
    rounds = np.arange(count)
    sending_s = 8 * case.packet_payload_bytes / case.payload_rate_bps
    # Sum of loss^1 to loss^k: what k rounds of a question's packets send again.
    again = case.loss * (1 - case.loss**rounds) / (1 - case.loss)
    steps_s = (
        rounds * (case.rtt_s + case.settling_s)
        + np.outer(sizes, again) * sending_s
        - ages_s[:, np.newaxis]
    )
    late_s = np.unique(np.append(steps_s[steps_s > 0], 0.0))
    log_whole = np.zeros_like(late_s)
    for own_s, size in zip(steps_s, sizes, strict=True):
        chances = np.searchsorted(own_s, late_s, side="right").astype(np.float64)
        log_whole += size * log_kept(case.loss, chances)
    return Tail(float(sizes.sum()), case.loss, late_s, np.exp(log_whole))


def _questions(case: Case, phase: float) -> tuple[Floats, Floats]:
    """Age of each question without an answer in seconds, and how many packets it is about.

    The last one has no age; those before it are an interval apart. Together they are about no
    more than the blast.
    """
    round_s = case.rtt_s + case.settling_s
    interval_s = max(case.reporting_s, round_s / _QUESTIONS_MAX)
    ages_s = np.append(0.0, np.arange(phase * interval_s, round_s, interval_s))
    widths_s = np.full(len(ages_s), interval_s)
    widths_s[0] = phase * interval_s
    upto = np.minimum(np.cumsum(widths_s) * case.payload_rate_bps / 8 / case.packet_payload_bytes,
                      case.packets)  # fmt: skip
    sizes = np.diff(np.append(0.0, upto))
    kept = sizes > 0
    return ages_s[kept], sizes[kept]
