"""Straight lines through the means: the profile itself (Rao et al. 2018, section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from farline.models.profile_model import Regressor

if TYPE_CHECKING:
    from farline.models.profile_model import Floats, Knots


class PiecewiseLinear(Regressor):
    """The means with straight lines between them; level beyond the ends. Smooths nothing.

    `knots_ms_` and `knots_bps_` are what the lines go through.
    """

    name: ClassVar[str] = "linear"
    knots_ms_: Floats
    knots_bps_: Floats

    @property
    def knots_needed(self) -> int:
        """Two."""
        return 2

    def _learn(self, knots: Knots) -> None:
        self.knots_ms_, self.knots_bps_ = knots.rtt_ms, knots.rate_bps
        self.parameters_ = len(knots)

    def _curve(self, rtt_ms: Floats) -> Floats:
        return np.asarray(np.interp(rtt_ms, self.knots_ms_, self.knots_bps_))

    def _words(self) -> str:
        low_ms, high_ms = self.rtt_range_ms_
        return (
            f"straight lines through {len(self.knots_ms_)} means, {low_ms:.3g} to {high_ms:.3g} ms"
        )
