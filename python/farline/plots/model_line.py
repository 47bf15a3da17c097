"""A model's line in a figure that a plan asks for: what RBUDP should reach on the path.

The table `[[figure.model]]` of a plan is read and checked in `farline.campaign.model_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from farline.models.rbudp import PRINTED_PACKET_BYTES, Case, ModelName
from farline.models.rbudp_corrected import predict
from farline.plots.axes import Axis

RATE, PAYLOAD = "rate_bps", "payload_bytes"
OVER = (RATE, PAYLOAD)
"""What a line can run over: the one of the two that it does not state."""

PLACES = 121
"""Points of a line."""


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One line: which of RBUDP's models, for which path.

    Of `rate_bps` (bit/s) and `payload_bytes` one is None: that lies on the x axis. `loss` is the
    share of the packets of a pass that never come.
    """

    name: str
    rtt_s: float
    model: ModelName = "printed"
    loss: float = 0.0
    rate_bps: int | None = None
    payload_bytes: int | None = None

    @property
    def over(self) -> str:
        """What lies on the x axis."""
        return RATE if self.rate_bps is None else PAYLOAD

    def document(self) -> dict[str, Any]:
        """The table that reads to this."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {key: value for key, value in values.items() if value is not None}

    def throughput_bps(self, place: float) -> float:
        """B_achievable of He et al. 2002 at a rate in bit/s or a payload in bytes.

        The printed equations have packets of 1500 bytes, as the paper; the corrected ones have
        farline's.
        """
        own = {RATE: self.rate_bps, PAYLOAD: self.payload_bytes} | {self.over: place}
        packet = {"packet_payload_bytes": PRINTED_PACKET_BYTES} if self.model == "printed" else {}
        case = Case(
            payload_bytes=round(float(own[PAYLOAD] or 0)),
            rate_bps=float(own[RATE] or 0),
            rtt_s=self.rtt_s,
            loss=self.loss,
            **packet,
        )
        return predict(case, self.model).throughput_bps


def model_line(table: Mapping[str, Any]) -> ModelLine:
    """The line of a table whose values are plain."""
    return ModelLine(**table)


def line_places(line: ModelLine, axis: Axis) -> tuple[Sequence[float], Sequence[float]]:
    """Where the line stands on an axis, and its throughput in bit/s there; nothing among words."""
    if not axis.ordered or min(axis.positions) == max(axis.positions):
        return [], []
    numbers = [float(value) for value in axis.values if isinstance(value, (int, float))]
    space = np.linspace if axis.scale == "linear" else np.geomspace
    places = space(max(1.0, min(numbers)), max(numbers), PLACES)
    positions = np.linspace(min(axis.positions), max(axis.positions), PLACES)
    return positions.tolist(), [line.throughput_bps(float(place)) for place in places]
