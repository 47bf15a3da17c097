"""Rates of a copy's three stages from the counters that both ends tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from farline.spec._types import CopyStages

LEAST_S = 0.4
"""Shortest time over which rates are taken: an interval may be shorter."""
_SEGMENT_BYTES = 1448


class StageRates(NamedTuple):
    """Mean rates since the last ones, payload bit/s; `again_bps` is of segments sent again."""

    span_s: float
    read_bps: float
    network_bps: float
    write_bps: float
    again_bps: float

    @property
    def loss(self) -> float:
        """Share of what was sent that was sent again."""
        return self.again_bps / max(self.network_bps, self.again_bps, 1.0)


@dataclass(eq=False, repr=False)
class StageMeter:
    """Takes the counters of a session, oldest first."""

    _last: CopyStages | None = None

    def begin(self) -> None:
        """What comes next is not compared with what came before."""
        self._last = None

    def add(self, report: CopyStages) -> StageRates | None:
        """Rates since the last ones; None while there is nothing to compare, or too little time."""
        last = self._last
        if last is None:
            self._last = report
            return None
        span_s = (report["at_us"] - last["at_us"]) / 1e6
        if span_s < LEAST_S:
            return None
        self._last = report
        sent = _grown(last, report, ("sent_bytes", "received_bytes"))
        if sent is None:
            return None
        read = _grown(last, report, ("read_bytes",))
        written = _grown(last, report, ("written_bytes", "received_bytes"))
        again = _grown(last, report, ("retransmits",)) or 0

        again_bps = 8 * again * _SEGMENT_BYTES / span_s

        def rate_bps(grown: int | None) -> float:
            return 8 * (sent if grown is None else grown) / span_s

        return StageRates(span_s, rate_bps(read), rate_bps(sent), rate_bps(written), again_bps)


def _grown(before: CopyStages, after: CopyStages, names: Iterable[str]) -> int | None:
    """By how much the first counter has grown that both reports have."""
    for name in names:
        first, last = before.get(name), after.get(name)
        if isinstance(first, int) and isinstance(last, int):
            return max(0, last - first)
    return None
