"""The model of He et al. 2002 corrected: a report after each pass, or reports on the way.

Both take the number of passes from chance (`PassDistribution`), send at the payload's share of the
rate, know that a report goes over TCP, and wait for stragglers before gaps are reported. A
receiver that has everything says so at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farline.models.rbudp import Case, ModelName, Passes, Prediction
from farline.models.rbudp_printed import printed

Floats = NDArray[np.float64]

_NEVER = 1e-18
"""A chance this small is none."""


@dataclass(frozen=True, slots=True)
class PassDistribution:
    """Distribution of N, the number of resends of `packets` packets lost with chance `loss`."""

    packets: float
    """How many; a mean may be broken."""
    loss: float

    def cdf(self, resends: int) -> float:
        """P(N <= resends)."""
        if resends < 0:
            return 0.0
        return float(np.exp(self.packets * log_kept(self.loss, np.array([resends + 1.0]))[0]))

    def reach(self) -> Floats:
        """P(N >= k) for k from 0 to where there is no chance left; the first is 1.

        One value per resend, as many as are needed: 1 without loss, some thousands near
        certain loss.
        """
        k = np.arange(1, 1 + self._most(), dtype=np.float64)
        beyond = -np.expm1(self.packets * log_kept(self.loss, k))
        return np.asarray(np.append(1.0, beyond[beyond > _NEVER]), dtype=np.float64)

    def probabilities(self) -> Floats:
        """P(N = k) for k from 0; they sum to 1."""
        reach = self.reach()
        return np.asarray(reach - np.append(reach[1:], 0.0), dtype=np.float64)

    @property
    def mean(self) -> float:
        """E[N]: the sum of P(N >= k) over k >= 1."""
        return math.fsum(self.reach()[1:])

    def quantile(self, share: float) -> int:
        """The smallest k with P(N <= k) >= `share`.

        Raises:
            ValueError: when `share` is not between 0 and 1.
        """
        if not 0 < share < 1:
            raise ValueError(f"share: {share:g} is out of range; allowed: between 0 and 1")
        more = self.reach()[1:]
        return int(np.count_nonzero(more > 1 - share))

    def _most(self) -> int:
        """Resends after which nothing is left to expect."""
        if self.loss == 0:
            return 0
        return math.ceil(
            (math.log(max(self.packets, 1.0)) - math.log(_NEVER)) / -math.log(self.loss)
        )


def log_kept(loss: float, chances: Floats) -> Floats:
    """ln(1 - loss^chances): of a packet that was sent so often, that it came."""
    if loss == 0:
        return np.zeros_like(chances)
    return np.log1p(-np.exp(chances * math.log(loss)))


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


SEGMENT_BYTES = 1448
"""Payload of a TCP segment on Ethernet with timestamps."""

HEADER_BYTES = 21
"""What a report says besides the packets: its length and kind, blast, statement and number."""

_STEPS = 128.0 ** np.arange(1, 7)
"""Numbers from which a LEB128 number takes one byte more."""


def bitmap_bytes(packets: float, missing_share: Floats) -> Floats:
    """Mean size of a bitmap from the first missing packet to the last: a bit per packet.

    m places taken at random among n span (n + 1)(m - 1) / (m + 1) + 1 on average. Two bytes more
    say the form and where it begins.
    """
    missing = np.maximum(packets * missing_share, 1.0)
    span = (packets + 1) * (missing - 1) / (missing + 1) + 1
    return np.asarray(2 + np.ceil(np.clip(span, 1.0, packets) / 8), dtype=np.float64)


def runs_bytes(packets: float, missing_share: Floats) -> Floats:
    """Mean size as runs of missing packets: for each, how many came before it, and its length.

    n p (1 - p) runs (and one more where the last packet is missing); gaps and lengths are
    geometric. Both are sent less 1, so that P(gap >= t) = (1 - p)^t and P(length >= t) = p^t. A
    number takes one byte, and one more for each power of 128 that it reaches.
    """
    share = np.asarray(missing_share, dtype=np.float64)[..., np.newaxis]
    with np.errstate(divide="ignore"):
        gaps = np.exp(_STEPS * np.log1p(-share))
        lengths = np.exp(_STEPS * np.log(share))
    each = 2 + np.sum(np.where(share > 0, gaps + lengths, 0.0), axis=-1)
    flat = np.asarray(missing_share, dtype=np.float64)
    return np.asarray(1 + (packets * flat * (1 - flat) + flat) * each, dtype=np.float64)


def report_bytes(packets: float, missing_share: Floats) -> Floats:
    """Mean size of farline's report when each of `packets` is missing with that chance.

    `missing_share` is an array of chances; one size for each, the report's header included.
    """
    smaller = np.minimum(bitmap_bytes(packets, missing_share), runs_bytes(packets, missing_share))
    return HEADER_BYTES + smaller


def tcp_rounds(size_bytes: Floats, initial_window_segments: int) -> Floats:
    """Round trips that slow start needs for so many bytes: the smallest r that sends them all.

    IW (2^r - 1) segments have been sent after r rounds (RFC 5681, section 3.1, one ACK for each
    segment). 35 segments take 3 rounds from a window of 10, 5 from one of 2.
    """
    segments = np.maximum(np.ceil(np.asarray(size_bytes, dtype=np.float64) / SEGMENT_BYTES), 1.0)
    return np.ceil(np.log2(segments / initial_window_segments + 1) - 1e-12)


_LOW, _HIGH = 0.05, 0.95
_NORMAL_HIGH = 1.645
"""Standard deviations from the mean of a normal distribution to its 95 %."""


def predict(case: Case, model: ModelName) -> Prediction:
    """What `model` says of `case`."""
    return {"printed": printed, "passes": by_passes, "early": early}[model](case)


def by_passes(case: Case) -> Prediction:
    """One report after each pass, as in He et al. 2002, section 3.

    Mean over the passes: pass k happens with P(N >= k), sends S L^k bytes and costs a round trip,
    the report of what it left missing, and the wait for stragglers where anything is missing.
    """
    distribution = PassDistribution(case.packets, case.loss)
    reach = distribution.reach()
    mean = math.fsum(reach[1:])
    passes, sending = _passes(distribution), _sending(case)
    report_s = _reports_s(case, reach)
    round_s = case.rtt_s + case.settling_s
    other_s = sending.send_s + sending.resend_s + report_s + case.rtt_s
    return Prediction(
        model="passes",
        case=case,
        passes=passes,
        send_s=sending.send_s,
        resend_s=sending.resend_s,
        report_s=report_s,
        waiting_s=case.rtt_s + mean * round_s,
        resent_bytes=sending.resent_bytes,
        time_low_s=other_s + (passes.low - 1) * round_s - sending.spread_s,
        time_high_s=other_s + (passes.high - 1) * round_s + sending.spread_s,
    )


def early(case: Case) -> Prediction:
    """Reports while the blast goes on, gaps filled at once: the path never idles before the end.

    Only what had no report yet when nothing was left to send decides how long the end takes
    (`tail`); what is sent again then is sent while others wait and costs no time of its own.
    """
    end = tail(case)
    sending = _sending(case, at_the_end_bytes=end.packets * case.packet_payload_bytes)
    before_s = sending.send_s + sending.resend_s + case.rtt_s
    return Prediction(
        model="early",
        case=case,
        passes=_passes(PassDistribution(case.packets, case.loss)),
        send_s=sending.send_s,
        resend_s=sending.resend_s,
        report_s=0.0,
        waiting_s=case.rtt_s + end.mean_s,
        resent_bytes=sending.resent_bytes,
        time_low_s=before_s + end.quantile_s(_LOW) - sending.spread_s,
        time_high_s=before_s + end.quantile_s(_HIGH) + sending.spread_s,
    )


@dataclass(frozen=True, slots=True)
class _Sending:
    send_s: float
    resend_s: float
    resent_bytes: float
    spread_s: float
    """From the mean to where 5 % of blasts send longer."""


def _sending(case: Case, at_the_end_bytes: float = 0.0) -> _Sending:
    """Every byte goes 1 / (1 - L) times on average.

    `at_the_end_bytes` are those whose repeats belong to the end and take no time here.
    """
    again = case.loss / (1 - case.loss)
    byte_s = 8 / case.payload_rate_bps
    ahead_bytes = max(0.0, case.payload_bytes - at_the_end_bytes)
    packets = ahead_bytes / case.packet_payload_bytes
    # Transmissions of a packet are geometric: their variance is L / (1 - L)^2.
    deviation = math.sqrt(packets * case.loss) / (1 - case.loss)
    return _Sending(
        send_s=case.payload_bytes * byte_s,
        resend_s=ahead_bytes * again * byte_s,
        resent_bytes=case.payload_bytes * again,
        spread_s=_NORMAL_HIGH * deviation * case.packet_payload_bytes * byte_s,
    )


def _reports_s(case: Case, reach: Floats) -> float:
    """Time of all reports: their bytes at the sending rate, and TCP's rounds beyond the first."""
    if case.loss == 0:
        return 0.0
    missing = np.exp(np.arange(1, len(reach) + 1) * math.log(case.loss))
    sizes = report_bytes(case.packets, missing)
    extra = (tcp_rounds(sizes, case.initial_window_segments) - 1) * case.rtt_s
    return math.fsum(reach * (8 * sizes / case.rate_bps + extra))


def _passes(distribution: PassDistribution) -> Passes:
    return Passes(
        distribution.mean + 1,
        distribution.quantile(_LOW) + 1,
        distribution.quantile(_HIGH) + 1,
    )
