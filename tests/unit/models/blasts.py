"""Blasts packet by packet, by chance: what the formulas are held against.

Nothing here uses the models' formulas: only what the sender and the receiver do, in time.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from farline.models.rbudp import Case


def packet_s(case: Case) -> float:
    """Time that a packet takes of the rate."""
    whole = case.packet_payload_bytes + case.wire_overhead_bytes
    return 8 * whole / case.rate_bps


def blast_by_passes(case: Case, chance: np.random.Generator) -> tuple[float, int]:
    """Time and passes of one blast with a report after each pass, the report's size left out."""
    missing, time_s, passes = case.packets, 0.0, 0
    while True:
        time_s += missing * packet_s(case) + case.rtt_s
        passes += 1
        missing = int(chance.binomial(missing, case.loss))
        if missing == 0:
            return time_s, passes
        time_s += case.settling_s


def blast_with_early_reports(case: Case, chance: np.random.Generator) -> float:
    """Time of one blast: a question each interval and whenever there is nothing to send.

    What a question's packets lack is there to send again a round trip and a wait later.
    """
    each_s, round_s = packet_s(case), case.rtt_s + case.settling_s
    to_send, missing, lost_since = case.packets, case.packets, 0
    now_s, next_s, last_s = 0.0, chance.random() * case.reporting_s, 0.0
    answers: list[tuple[float, int]] = []
    while missing:
        while answers and answers[0][0] <= now_s:
            to_send += heapq.heappop(answers)[1]
        if to_send:
            until_s = min(next_s, answers[0][0] if answers else math.inf)
            burst = min(to_send, max(1, int((until_s - now_s) / each_s) + 1))
            lost = int(chance.binomial(burst, case.loss))
            now_s += burst * each_s
            to_send, missing, lost_since = (
                to_send - burst, missing - burst + lost, lost_since + lost
            )  # fmt: skip
            last_s = now_s if lost < burst else last_s
        if not to_send or now_s >= next_s:
            if lost_since:
                heapq.heappush(answers, (now_s + round_s, lost_since))
            lost_since = 0
            while next_s <= now_s:
                next_s += case.reporting_s
        if not to_send and missing and answers:
            now_s = max(now_s, answers[0][0])
    return last_s + case.rtt_s
