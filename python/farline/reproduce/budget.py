"""The error budget: how far two figures may be apart and still be called the same.

Three parts, each a share of a figure, added in squares: what the emulator does not do as it was
told, what the host's other work takes, and what repeated runs differ by.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farline.profiles.response import ResponsePoint

EMULATOR_RATE = 0.001
"""Largest error of an emulated rate over a second or more (docs/design/emulator.md)."""
UNREPEATED = 0.05
"""Share that single runs are taken to differ by, where nothing was repeated."""
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Budget:
    """Shares of a figure; `whole` is what two of them are compared with."""

    emulator: float = 0.0
    host: float = 0.0
    repetition: float = 0.0

    @property
    def whole(self) -> float:
        """All parts together, as the error of one mean."""
        return math.sqrt(self.emulator**2 + self.host**2 + self.repetition**2)

    def document(self) -> dict[str, float]:
        """As it is kept."""
        parts = {"emulator": self.emulator, "host": self.host, "repetition": self.repetition}
        return {**parts, "whole": self.whole}


NOTHING = Budget()
"""Of what is computed: it either comes out or does not."""


def budget_of(rows: Sequence[Mapping[str, Any]], points: Sequence[ResponsePoint]) -> Budget:
    """The budget of a campaign, from its runs' records and from how its repetitions differ."""
    stamps = [(row, stamp) for row, stamp in ((row, _stamp(row)) for row in rows) if stamp]
    return Budget(
        emulator=_largest([EMULATOR_RATE, *(_late_share(row, stamp) for row, stamp in stamps)]),
        host=_largest(_stolen_share(stamp) for _, stamp in stamps),
        repetition=_repetition(points),
    )


def widest(budgets: Iterable[Budget]) -> Budget:
    """The largest of each part: of figures that rest on several campaigns."""
    found = list(budgets)
    return Budget(
        _largest(one.emulator for one in found),
        _largest(one.host for one in found),
        _largest(one.repetition for one in found),
    )


def _stamp(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    record = json.loads(row["record"]) if row.get("record") else {}
    path = record.get("path") or {}
    stamp: Mapping[str, Any] | None = path.get("stamp")
    return None if stamp is None or not stamp["valid"] else {**stamp, "rtt_s": path.get("rtt_s")}


def _late_share(_row: Mapping[str, Any], stamp: Mapping[str, Any]) -> float:
    """How much longer the round trip was than it was to be, where it was a wide area's."""
    rtt_us = 1e6 * (stamp["rtt_s"] or 0.0)
    return float(2 * stamp["lateness_p50_us"] / rtt_us) if rtt_us >= 1000 else 0.0


def _stolen_share(stamp: Mapping[str, Any]) -> float:
    return float(stamp["steal_s"] / stamp["wall_s"]) if stamp["wall_s"] else 0.0


def _repetition(points: Sequence[ResponsePoint]) -> float:
    """Half of a 95 % interval of a setting's mean over that mean, pooled over the settings."""
    from scipy.special import stdtrit

    several = [point for point in points if point.n > 1 and point.mean]
    freedom = sum(point.n - 1 for point in several)
    if not freedom:
        return UNREPEATED
    squares = math.fsum(
        (value / float(point.mean or 1.0) - 1.0) ** 2 for point in several for value in point.values
    )
    typical = math.fsum(1 / point.n for point in points if point.n) / len(
        [point for point in points if point.n]
    )
    quantile = float(stdtrit(freedom, 0.5 + _CONFIDENCE / 2))
    return quantile * math.sqrt(squares / freedom * typical)


def _largest(values: Iterable[float]) -> float:
    return max(values, default=0.0)
