"""The largest rate whose harm to others stays within a budget, found while data move.

Pure: looks in, a rate out. What others leave free shows in one's own round trips and losses: while
queues stay short nobody is hurt (LEDBAT's signal, RFC 6817), so the rate rises; once they grow, or
packets are lost, it falls, at first by little, since the queue may be its own, then by more, down
to the budget's share of the line. Others that want the whole line lose that share and no more:
harm(r) = r / L (Ware et al. 2019, throughput). docs/design/fairness-budget.md has its error.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

FIRST_BPS = 10e6
LEAST_BPS = 1e6
"""What a copy keeps whatever others do: less than that it could not end."""
_MOST_BPS = 1e12
_TARGET_S = (0.002, 0.025)
"""Bounds of the queueing delay that counts as a queue, a quarter of the shortest round trip."""
_BURST_S, _BURST_SHARE = 0.0035, 0.35
"""A flow that uses half of the line sends bursts that wait this long: such a wait is not a full
line. On short paths only a wait up to this share of the round trip passes, since the longest queue
may be one round trip."""
LOSS, MUCH_LOSS = 5e-4, 0.05
"""Share of segments sent again from which on a path is full, and not just lossy by chance, if it
lasts; and from which on it is full at once."""
_START, _RISE, _CREEP = 2.0, 1.15, 1.03
"""Growth a look: before the line was ever full, below where it was full last, and near there."""
_NEAR = 0.9
_FALLS = (0.92, 0.9, 0.75, 0.6)
"""What is left of the rate after one look at a full line, two, and more in a row."""
_USED = 0.8
"""Share of the rate that must be sent: a line is not tried by what is not."""
_PATIENCE = 2
"""Looks without a queue before the rate rises again: a loss-based flow leaves such gaps."""
_AHEAD = 2.0
"""How far the rate may be above the most that was sent lately."""
_LATELY = 5
"""Looks that are lately: large pieces of files make what is sent in one of them uneven."""


@dataclass(frozen=True, slots=True)
class PathLook:
    """What a copy saw of its path since the last look.

    `round_trip_s` is now and the shortest one known, None where no stream knows; `again_bps` the
    rate of what was sent again.
    """

    sent_bps: float
    round_trip_s: tuple[float, float] | None
    again_bps: float

    @property
    def is_queued(self) -> bool:
        """Whether packets wait longer than a line with room left has them wait."""
        if self.round_trip_s is None:
            return False
        now_s, least_s = self.round_trip_s
        low, high = _TARGET_S
        burst_s = min(_BURST_S, _BURST_SHARE * least_s)
        return now_s - least_s > min(high, max(low, burst_s, least_s / 4))


@dataclass(slots=True)
class RateBudget:
    """Decides the rate; see `step`."""

    max_harm: float
    most_bps: float = _MOST_BPS
    rate_bps: float = FIRST_BPS
    """In force."""
    line_bps: float = 0.0
    """The most that was ever sent: the line carries at least that, so its share errs to the side of
    the others."""
    _full_bps: float | None = None
    _full_looks: int = 0
    _free_looks: int = 0
    _was_crowded: bool = False
    _sent: deque[float] = field(default_factory=lambda: deque(maxlen=_LATELY))

    def __post_init__(self) -> None:
        """Begins low.

        Raises:
            ValueError: for a budget that is none.
        """
        if not 0 < self.max_harm < 1:
            raise ValueError("max_harm must be between 0 and 1")
        self.rate_bps = min(self.rate_bps, self.most_bps)

    @property
    def floor_bps(self) -> float:
        """What the budget allows beside others that want everything."""
        return max(LEAST_BPS, self.max_harm * self.line_bps)

    def step(self, look: PathLook) -> float:
        """Takes a look, every half second; the rate from now on."""
        self._sent.append(look.sent_bps)
        # Over what is sent lately: in one look that may be nothing.
        loss = look.again_bps / max(self._mean_bps, look.again_bps, 1.0)
        is_crowded = look.is_queued or loss > LOSS
        # A round trip that is late once is late by itself, and a burst may lose some segments.
        is_full = is_crowded and (self._was_crowded or loss > MUCH_LOSS)
        self._was_crowded = is_crowded
        if is_full:
            self._full_looks, self._free_looks = self._full_looks + 1, 0
            self._fall()
        elif not is_crowded:
            # What is sent while packets get lost is not what the line carries.
            if len(self._sent) == _LATELY:
                self.line_bps = max(self.line_bps, self._mean_bps)
            self._full_looks, self._free_looks = 0, self._free_looks + 1
            self._rise()
        return self.rate_bps

    @property
    def _mean_bps(self) -> float:
        return sum(self._sent) / len(self._sent)

    def _fall(self) -> None:
        sent_bps = min(self.rate_bps, max(self._sent[-1], _USED * self.rate_bps))
        if self._full_looks == 1:
            self._full_bps = max(sent_bps, LEAST_BPS)
        left = _FALLS[min(self._full_looks, len(_FALLS)) - 1]
        self._set(max(self.floor_bps, left * sent_bps))

    def _rise(self) -> None:
        if max(self._sent[-1], self._mean_bps) < _USED * self.rate_bps:
            return
        if self._full_bps is None:
            self._set(_START * self.rate_bps)
        elif self._free_looks >= _PATIENCE:
            is_near = _NEAR * self._full_bps <= self.rate_bps
            if is_near:
                # Beyond where it was full last: that may be long ago.
                self._full_bps = max(self._full_bps, self.rate_bps)
            # The longer the line is free, the less it is what it was.
            near = min(_RISE, _CREEP ** (self._free_looks // 2))
            self._set((near if is_near else _RISE) * self.rate_bps)
        self._set(min(self.rate_bps, max(FIRST_BPS, _AHEAD * max(self._sent))))

    def _set(self, rate_bps: float) -> None:
        self.rate_bps = min(self.most_bps, max(LEAST_BPS, rate_bps))
