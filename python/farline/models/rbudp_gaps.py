"""Where the printed equations of He et al. 2002 part from what happens, case by case, in words.

Each gap says by which of its assumptions the printed prediction is off for this case and, where
that can be told, by how much. The whole list, with those that touch the paper's text alone, is in
docs/design/rbudp-model.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from farline.models.rbudp import ETHERNET_OVERHEAD_BYTES, PRINTED_PACKET_BYTES, Case
from farline.models.rbudp_corrected import (
    SEGMENT_BYTES,
    PassDistribution,
    by_passes,
    report_bytes,
    tcp_rounds,
)
from farline.models.rbudp_printed import printed, printed_resends, strict_resends
from farline.spec.units import rate_human, time_human

SETUP_SHARE = 0.01
"""Share of the time that a round trip must take for the unmodelled opening to be worth a word."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One assumption of the paper that does not hold; `adds_s` is what mending it adds to T_total.

    `adds_s` is None where no figure can be given.
    """

    name: str
    text: str
    adds_s: float | None = None


def as_printed(case: Case) -> Case:
    """The case as the paper would take it: packets of 1500 bytes, nothing beside them."""
    return replace(case, packet_payload_bytes=PRINTED_PACKET_BYTES, wire_overhead_bytes=0)


def gaps(case: Case) -> tuple[Gap, ...]:
    """What the printed equations get wrong of `case`, beside the corrected ones of its passes.

    Largest effect first, those without a figure last. Empty only where nothing differs.
    """
    found = (_packet(case), _report(case), _chance(case), _edge(case), _settling(case),
             _constant(case), _setup(case))  # fmt: skip
    return tuple(sorted((gap for gap in found if gap is not None), key=_rank))


def _rank(gap: Gap) -> tuple[bool, float]:
    return gap.adds_s is None, -abs(gap.adds_s or 0.0)


def _packet(case: Case) -> Gap | None:
    paper = as_printed(case)
    if paper.packet_payload_bytes == case.packet_payload_bytes:
        return None
    whole = case.packet_payload_bytes + ETHERNET_OVERHEAD_BYTES
    line_bps = case.payload_rate_bps * whole / case.packet_payload_bytes
    text = (
        f"1500 bytes is the MTU of Ethernet; a packet carries {case.packet_payload_bytes}, so "
        f"there are {case.packets:,} packets, not {paper.packets:,}, and "
        f"{rate_human(case.payload_rate_bps)} of payload take {rate_human(line_bps)} of an "
        "Ethernet link"
    )
    longer_s = 8 * case.payload_bytes * (1 / case.payload_rate_bps - 1 / case.rate_bps)
    return Gap("packet size", text, longer_s / (1 - case.loss) if longer_s > 0 else None)


def _report(case: Case) -> Gap | None:
    if case.loss == 0:
        return None
    size = float(report_bytes(case.packets, np.array([case.loss]))[0])
    rounds = int(tcp_rounds(np.array([size]), case.initial_window_segments)[0])
    if rounds == 1:
        return None
    segments = int(np.ceil(size / SEGMENT_BYTES))
    beyond = time_human((rounds - 1) * case.rtt_s * 1e6)
    text = (
        f"the first report has about {size:,.0f} bytes in {segments} TCP segments, which slow "
        f"start sends in {rounds} rounds: {beyond} beyond the first; T_ack does not include this"
    )
    return Gap(
        "report over TCP", text, by_passes(case).report_s - printed(as_printed(case)).report_s
    )


def _chance(case: Case) -> Gap | None:
    if case.loss == 0:
        return None
    resends = printed_resends(as_printed(case))
    distribution = PassDistribution(case.packets, case.loss)
    low, high = distribution.quantile(0.05), distribution.quantile(0.95)
    text = (
        f"N_resend is not {resends} but random: {distribution.mean:.2f} on average, {low} to "
        f"{high} in nine of ten blasts; {resends} are enough in "
        f"{100 * distribution.cdf(resends):.4g} % of blasts"
    )
    return Gap("chance", text, (distribution.mean - resends) * case.rtt_s)


def _edge(case: Case) -> Gap | None:
    paper = as_printed(case)
    resends, strict = printed_resends(paper), strict_resends(paper)
    if resends == strict:
        return None
    if strict == 0:
        text = "fewer than one packet is missing on average, but equation 5 never gives 0 resends"
    else:
        text = (
            f"exactly one packet is left after {resends} resends; for fewer than one, as the "
            f"paper states, {strict} are needed"
        )
    return Gap("edge of equation 5", text)


def _settling(case: Case) -> Gap | None:
    if case.loss == 0 or case.settling_s == 0:
        return None
    mean = PassDistribution(case.packets, case.loss).mean
    text = (
        f"a receiver waits {time_human(case.settling_s * 1e6)} for late packets before it reports "
        "gaps, or it would request packets that are still in flight"
    )
    return Gap("stragglers", text, mean * case.settling_s)


def _constant(case: Case) -> Gap | None:
    if case.loss == 0:
        return None
    text = (
        "loss is assumed to be the same in each pass and at each rate; near the capacity it is "
        "not (He et al. 2002 saw 33 % with a slow receiver, under 2 % with a fast one, at one "
        "rate)"
    )
    return Gap("constant loss", text)


def _setup(case: Case) -> Gap | None:
    if case.rtt_s < SETUP_SHARE * printed(as_printed(case)).time_s:
        return None
    text = "opening the control channel takes additional round trips, which no equation includes"
    return Gap("set-up", text)
