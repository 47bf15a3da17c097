"""What a host takes in, with and without one copy more: pairs of runs that take turns.

He et al. 2002, section 3, measure so what an application can have of what a host receives.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from farline.campaign.settings import sampled_spec
from farline.errors import UsageError
from farline.profiles.application_bound import APPLICATION, RAW, TRANSPORTS

if TYPE_CHECKING:
    from farline.spec._types import RunSpec

DURATION_S = 3.0
"""Seconds of each run where nothing is stated."""


def new_name() -> str:
    """The name of a measurement, by which its runs are found again."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    return f"app-perf-{stamp}-{secrets.token_hex(2)}"


def pair_specs(stated: Mapping[str, Any]) -> dict[str, RunSpec]:
    """The two specs by their receive mode, from a spec document without one.

    Raises:
        UsageError: for what cannot be compared.
        SpecError: when the options contradict each other.
    """
    document = dict(stated)
    _refuse_the_incomparable(document)
    if document.get("duration_s") is None and document.get("total_bytes") is None:
        document["duration_s"] = DURATION_S
    transport = document.setdefault("transport", "tcp")
    return {
        mode: sampled_spec(
            {**document, transport: {**document.get(transport, {}), "receive_mode": mode}}
        )
        for mode in (RAW, APPLICATION)
    }


def _refuse_the_incomparable(document: Mapping[str, Any]) -> None:
    transport = document.get("transport", "tcp")
    if transport not in TRANSPORTS:
        raise UsageError(
            f"--transport {transport}: it has no --receive-mode to compare; allowed: "
            f"{', '.join(TRANSPORTS)}"
        )
    if document.get("direction") == "bidirectional":
        raise UsageError(
            "--bidir: a bound is measured in one direction; leave this option out, or use -R"
        )
    if transport == "udp" and document.get("rate_bps") is None:
        raise UsageError(
            "--transport udp needs -b RATE, the rate to send; -b 0 sends as fast as the host can, "
            "for a path that nobody else uses"
        )


def order(rounds: int) -> Iterator[tuple[int, str]]:
    """Pairs from 1 with their modes: what comes first takes turns, so that no drift favours one."""
    for number in range(1, rounds + 1):
        modes = (RAW, APPLICATION) if number % 2 else (APPLICATION, RAW)
        yield from ((number, mode) for mode in modes)
