"""Rates of a copy's three stages from the counters that both ends tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from farline.spec._types import CopyStages
    from farline.tools.events import Columns

LEAST_S = 0.4
"""Shortest time over which rates are taken: an interval may be shorter."""
_COARSE_BPS = 3e8
"""Below that the counters of stages, which grow by whole pieces of files (up to 4 MiB), are too
coarse for rates over two seconds. What goes over the network follows the slowest stage as well."""
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
    _moved_bytes: int = 0
    """Payload that this end's streams moved since the last report, by their samples."""

    def begin(self) -> None:
        """What comes next is not compared with what came before."""
        self._last, self._moved_bytes = None, 0

    def note(self, columns: Columns) -> None:
        """Takes samples of the streams, which are finer than the counters of the stages."""
        rows = zip(columns["end"], columns["bytes"], strict=True)
        self._moved_bytes += sum(moved for end, moved in rows if end == 0)

    def add(self, report: CopyStages) -> StageRates | None:
        """Rates since the last ones; None while there is nothing to compare, or too little time."""
        last = self._last
        if last is None:
            self._last, self._moved_bytes = report, 0
            return None
        span_s = (report["at_us"] - last["at_us"]) / 1e6
        if span_s < LEAST_S:
            return None
        self._last = report
        sent = self._moved_bytes or _grown(last, report, ("sent_bytes", "received_bytes"))
        self._moved_bytes = 0
        if sent is None:
            return None
        again = _grown(last, report, ("retransmits",)) or 0
        network_bps = 8 * sent / span_s

        def side_bps(*names: str) -> float:
            # A side that has nothing to do for the moment holds nobody up.
            grown = 0 if network_bps < _COARSE_BPS else _grown(last, report, names)
            return 8 * grown / span_s if grown else network_bps

        again_bps = 8 * again * _SEGMENT_BYTES / span_s
        write_bps = side_bps("written_bytes", "received_bytes")
        return StageRates(span_s, side_bps("read_bytes"), network_bps, write_bps, again_bps)


def _grown(before: CopyStages, after: CopyStages, names: Iterable[str]) -> int | None:
    """By how much the first counter has grown that both reports have."""
    for name in names:
        first, last = before.get(name), after.get(name)
        if isinstance(first, int) and isinstance(last, int):
            return max(0, last - first)
    return None
