"""What tunes a copy while it runs: the controller of `farline.tuning.online`, as a copy asks it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from farline.tuning.online import Decision, OnlineController, OnlineSettings, Tick

if TYPE_CHECKING:
    from farline.copying.live_tuning import TunerStart
    from farline.copying.stage_rates import StageRates


class StreamTuner:
    """Decides on the number of streams of one copy."""

    def __init__(self, start: TunerStart) -> None:
        """Begins with the streams that there are."""
        self._controller = OnlineController(
            OnlineSettings(start.streams, start.most_streams, start.ramp_s, start.is_known)
        )

    @property
    def setting(self) -> int:
        """Streams that it wants now."""
        return self._controller.setting

    @property
    def settled_bps(self) -> float | None:
        """The rate of its setting, while it tries nothing; else None."""
        one = self._controller
        return math.exp(one.held_level) if one.is_settled else None

    @property
    def noise(self) -> float:
        """Standard deviation of rates of one setting, of logs."""
        return self._controller.noise

    def look(self, at_s: float, rates: StageRates, left_bytes: float | None) -> None:
        """What was seen before the first decision."""
        self._controller.look(_tick(at_s, rates, left_bytes))

    def tick(self, at_s: float, rates: StageRates, left_bytes: float | None) -> Sequence[Decision]:
        """What was seen; what changes now."""
        return self._controller.tick(_tick(at_s, rates, left_bytes))

    def restart(self, setting: int, most: int | None = None) -> None:
        """So many streams are in force for another reason."""
        self._controller.restart(setting, most)


def _tick(at_s: float, rates: StageRates, left_bytes: float | None) -> Tick:
    return Tick(
        at_s, rates.read_bps, rates.network_bps, rates.write_bps, rates.loss, left_bytes
    )  # fmt: skip
