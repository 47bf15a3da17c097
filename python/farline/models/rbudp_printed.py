"""He et al. 2002, section 4, equations 1 to 6 as they are printed.

Nothing is mended here but what cannot be computed: without loss N_resend is 0 (its logarithm has
no value), and a payload of a packet or less is sent once (the logarithm turns negative).
"""

from __future__ import annotations

import math

from farline.models.rbudp import Case, Passes, Prediction

_CLOSE = 1e-9
"""A logarithm this close to a whole number is that number: S L^N = P comes out so in binary."""


def printed(case: Case) -> Prediction:
    """T_total by equations 1, 2, 5 and 6; without loss they are equation 3.

    The case's overhead, settling and windows are no part of the paper and do not count.
    """
    passes = printed_resends(case) + 1
    resent = printed_resent_bytes(case)
    send_s, resend_s = (8 * size / case.rate_bps for size in (case.payload_bytes, resent))
    report_s, waiting_s = passes * printed_ack_s(case), passes * case.rtt_s
    time_s = math.fsum((send_s, resend_s, report_s, waiting_s))
    return Prediction(
        model="printed",
        case=case,
        passes=Passes(passes, passes, passes),
        send_s=send_s,
        resend_s=resend_s,
        report_s=report_s,
        waiting_s=waiting_s,
        resent_bytes=resent,
        time_low_s=time_s,
        time_high_s=time_s,
    )


def printed_ack_bytes(case: Case) -> float:
    """S_ack: a bit per packet, S / (8 P)."""
    return case.payload_bytes / (8 * case.packet_payload_bytes)


def printed_ack_s(case: Case) -> float:
    """T_ack: the bitmap at the rate of the blast, whatever TCP makes of it."""
    return 8 * printed_ack_bytes(case) / case.rate_bps


def printed_resends(case: Case) -> int:
    """N_resend by equation 5: the logarithm of P / S to the base L, rounded up."""
    ratio = case.packet_payload_bytes / case.payload_bytes
    if case.loss == 0 or ratio >= 1:
        return 0
    return math.ceil(math.log(ratio) / math.log(case.loss) - _CLOSE)


def strict_resends(case: Case) -> int:
    """Equation 5 by its own words: resend until *less* than one packet is left.

    None without loss, or where less than a packet is missing from the start; one more than
    equation 5 where exactly one packet is left.
    """
    if case.loss * case.payload_bytes < case.packet_payload_bytes * (1 - _CLOSE):
        return 0
    resends = printed_resends(case)
    left = case.payload_bytes * case.loss**resends
    return resends + 1 if left >= case.packet_payload_bytes * (1 - _CLOSE) else resends


def printed_resent_bytes(case: Case) -> float:
    """S_resend by equation 6: the geometric sum of N_resend passes."""
    share = case.loss
    return case.payload_bytes * share * (1 - share ** printed_resends(case)) / (1 - share)


def printed_payload_bytes(rate_bps: float, rtt_s: float, efficiency: float) -> float:
    """Payload for `efficiency` by equation 4, which leaves the report out: RTT B r / (1 - r)."""
    _check_efficiency(efficiency)
    return rtt_s * rate_bps / 8 * efficiency / (1 - efficiency)


def printed_payload_with_ack_bytes(case: Case, efficiency: float) -> float:
    """Payload for `efficiency` by equation 3, with the report's T_ack kept.

    Raises:
        ValueError: when the report alone takes more than what may be lost.
    """
    _check_efficiency(efficiency)
    room = 1 / efficiency - 1 - 1 / (8 * case.packet_payload_bytes)
    if room <= 0:
        most = 1 / (1 + 1 / (8 * case.packet_payload_bytes))
        raise ValueError(f"efficiency: {efficiency:g} is never reached: the report leaves {most:g}")
    return case.rtt_s * case.rate_bps / 8 / room


def _check_efficiency(efficiency: float) -> None:
    if not 0 < efficiency < 1:
        raise ValueError(f"efficiency: {efficiency:g} is out of range; allowed: between 0 and 1")
