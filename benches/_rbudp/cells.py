"""Cells of `rbudp-model`: payloads, rates, round trips, losses, and what the model says of each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from _emulator.beds import pipe
from _rbudp.probing import RBUDP_HEADER_BYTES
from farline.models.rbudp import Case, ModelName, Prediction
from farline.models.rbudp_corrected import predict

MB, GB = 10**6, 10**9
PAYLOADS_BYTES = (MB, 10 * MB, 100 * MB, 600 * MB, 2 * GB)
RATES_BPS = (0.1 * GB, 0.6 * GB, 1 * GB, 5 * GB, 9 * GB)
RTTS_MS = (0, 10, 110, 366)
LOSSES = (0.0, 0.01, 0.07, 0.33)
MTU_BYTES, JUMBO_BYTES = 1500, 9000
# From here on packets are as long as a path of that rate has them.
JUMBO_FROM_BPS = 5 * GB
IP_UDP_BYTES = 28
# A blast of the whole grid that takes longer is left out.
LONGEST_S = 30.0


@dataclass(frozen=True)
class Cell:
    """One combination; `early` is farline's way, without it each pass has one report."""

    payload_bytes: int
    rate_bps: float
    rtt_ms: int
    loss: float
    early: bool = False

    @property
    def name(self) -> str:
        """For the table: payload in MB, rate in Gb/s, round trip in ms, loss in per cent."""
        size = f"{self.payload_bytes // MB}MB {self.rate_bps / GB:g}G"
        way = " early" if self.early else ""
        return f"{size} rtt{self.rtt_ms} loss{100 * self.loss:g}{way}"

    @property
    def group(self) -> str:
        """Name of its group: a group is one cell."""
        return self.name.replace(" ", "-")

    @property
    def mtu_bytes(self) -> int:
        """Largest packet of the path."""
        return JUMBO_BYTES if self.rate_bps >= JUMBO_FROM_BPS else MTU_BYTES

    @property
    def model(self) -> ModelName:
        """The corrected model of this way."""
        return "early" if self.early else "passes"

    def pipe(self) -> dict[str, Any]:
        """The way from the sender to the receiver: no rate of its own, so that nothing queues."""
        loss = {"loss": {"random": self.loss}} if self.loss else {}
        return pipe(0, self.rtt_ms / 1000, mtu_bytes=self.mtu_bytes, **loss)

    def case(self, base_rtt_s: float = 0.0, packet_payload_bytes: int | None = None) -> Case:
        """The model's question; `base_rtt_s` is what hosts and emulator add to the round trip."""
        fits = self.mtu_bytes - IP_UDP_BYTES - RBUDP_HEADER_BYTES
        return Case(
            payload_bytes=self.payload_bytes,
            rate_bps=self.rate_bps,
            rtt_s=self.rtt_ms / 1000 + base_rtt_s,
            loss=self.loss,
            packet_payload_bytes=packet_payload_bytes or fits,
        )

    def prediction(
        self, base_rtt_s: float = 0.0, packet_payload_bytes: int | None = None
    ) -> Prediction:
        """What the corrected model says of it."""
        return predict(self.case(base_rtt_s, packet_payload_bytes), self.model)


def chosen() -> list[Cell]:
    """Every payload, rate, round trip and loss, the papers' way, and some with early reports."""
    lossless = [
        (MB, 0.1, 0), (MB, 0.6, 110), (10 * MB, 1, 10), (100 * MB, 0.1, 366),
        (100 * MB, 5, 10), (600 * MB, 0.6, 110), (600 * MB, 9, 0), (2 * GB, 9, 110),
        (2 * GB, 5, 366),
    ]  # fmt: skip
    lossy = [
        (MB, 0.6, 110, 0.07), (MB, 1, 10, 0.33), (10 * MB, 0.1, 10, 0.01), (10 * MB, 9, 366, 0.07),
        (100 * MB, 0.6, 110, 0.07), (100 * MB, 1, 366, 0.01), (100 * MB, 5, 0, 0.33),
        (600 * MB, 1, 110, 0.33), (600 * MB, 9, 10, 0.07), (2 * GB, 9, 110, 0.01),
    ]  # fmt: skip
    early = [
        (10 * MB, 1, 10, 0.0), (100 * MB, 0.6, 110, 0.07), (600 * MB, 5, 110, 0.01),
        (600 * MB, 1, 366, 0.33), (2 * GB, 9, 110, 0.01),
    ]  # fmt: skip
    return [
        *(Cell(size, rate * GB, rtt, 0.0) for size, rate, rtt in lossless),
        *(Cell(size, rate * GB, rtt, loss) for size, rate, rtt, loss in lossy),
        *(Cell(size, rate * GB, rtt, loss, True) for size, rate, rtt, loss in early),
    ]


def grid() -> list[Cell]:
    """Every combination, both ways, but for blasts that take more than `LONGEST_S`."""
    every = (
        Cell(size, rate, rtt, loss, early)
        for size, rate, rtt, loss, early in product(
            PAYLOADS_BYTES, RATES_BPS, RTTS_MS, LOSSES, (False, True)
        )
    )
    return [cell for cell in every if cell.prediction().time_s <= LONGEST_S]
