"""The model of He et al. 2002 corrected: a report after each pass, or reports on the way.

Both take the number of passes from chance (`rbudp_passes`), send at the payload's share of the
rate, know that a report goes over TCP, and wait for stragglers before gaps are reported. A
receiver that has everything says so at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farline.models.rbudp import Case, ModelName, Passes, Prediction
from farline.models.rbudp_passes import Floats, PassDistribution
from farline.models.rbudp_printed import printed
from farline.models.rbudp_report import report_bytes, tcp_rounds
from farline.models.rbudp_tail import tail

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
    (`rbudp_tail`); what is sent again then is sent while others wait and costs no time of its own.
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
