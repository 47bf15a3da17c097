"""What tuning a copy while it ran leaves behind: beside its record, and for later copies."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from farline.errors import FarlineError
from farline.logs import Log
from farline.store.layout import Layout
from farline.store.paths.choices import StoredChoice, read_choice, write_choice
from farline.store.paths.past_transfer import bare_host

if TYPE_CHECKING:
    from pathlib import Path

    from farline.copying.live_tuning import Settled
    from farline.spec._types import RunRecord
    from farline.tools.events import Tuned

_LOG = Log(__name__)

MOST_KEPT = 200
"""Decisions that are written down; the newest stay."""
_NORMAL_90 = 1.2816
"""Half-width of the middle 80 % of a normal distribution, in standard deviations."""


def tuning_label(events: Sequence[Tuned], settled: Settled | None) -> dict[str, Any]:
    """The run's label `tuning`: what was kept, how much was tried, where it ended."""
    kept = [event for event in events if event.reason in ("keep", "alarm")]
    return {
        "first": events[0].before,
        "last": events[-1].streams,
        "settled": None if settled is None else settled.streams,
        "tried": sum(event.reason in ("probe", "small") for event in events),
        "decisions": [
            {
                "at_s": round(one.at_s, 3), "reason": one.reason, "before": one.before,
                "streams": one.streams, "rate_bps": round(one.rate_bps),
                **({} if one.rate_before_bps is None
                   else {"rate_before_bps": round(one.rate_before_bps)}),
            }
            for one in kept[-MOST_KEPT:]
        ],
    }  # fmt: skip


def keep_settled(record: RunRecord, settled: Settled, far: str | None, folder: Path) -> None:
    """Has later copies over the path begin with what this one ended with.

    A path whose choice cannot be written is as it was: the copy is not to blame.
    """
    choice = _choice(record, settled, far)
    if choice is None:
        return
    known = read_choice(folder, choice.far, choice.pushes)
    if known is not None:
        # How many files at once is another question, which this copy has not asked.
        choice = replace(choice, concurrency=known.concurrency, pipelining=known.pipelining)
    try:
        write_choice(folder, Layout(folder.parent).temp, choice)
    except FarlineError as error:
        _LOG.warning("the tuned setting is not kept", reason=error.message)


def _choice(record: RunRecord, settled: Settled, far: str | None) -> StoredChoice | None:
    report, server = record.get("copy"), record["server"]
    if far is None or report is None or not report["copied"]["files"]:
        return None
    spread = math.exp(_NORMAL_90 * settled.noise)
    client = record["client"]
    return StoredChoice(
        far=bare_host(far), pushes=record["spec"].get("direction") == "forward",
        made_s=time.time(), streams=settled.streams, concurrency=None, pipelining=None,
        rate_bps=settled.rate_bps, low_bps=settled.rate_bps / spread,
        high_bps=settled.rate_bps * spread,
        basis=f"{settled.tried} settings tried while a copy ran", reason="gain",
        rtt_ms=settled.rtt_ms, loaded_rtt_ms=settled.loaded_rtt_ms,
        here_kernel=client["host"]["kernel"] if client else None,
        there_kernel=server["host"]["kernel"] if server else None,
        transport=record["spec"].get("transport", "tcp"),
        file_bytes=report["copied"]["bytes"] / report["copied"]["files"],
    )  # fmt: skip
