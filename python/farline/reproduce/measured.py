"""What the judges of items read: campaigns of the store, and what other trials left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import SystemFailure, UsageError
from farline.plots.gallery import Curve, Of
from farline.reproduce.budget import Budget, budget_of, widest

if TYPE_CHECKING:
    from farline.campaign.contention.outcome import Outcome
    from farline.plots.data import CampaignData
    from farline.profiles.response import ResponsePoint
    from farline.profiles.throughput_profile import ThroughputProfile
    from farline.reproduce.plans import Scale

TOTAL = "total_bps"
RTT = "path.rtt_s"

Where = Mapping[str, Any]


class NotMeasured(SystemFailure):
    """A figure that the judge of an item needs is not there; the line says which and why."""


@dataclass
class Measured:
    """Campaigns and trials at one scale; each is read once."""

    folder: Path
    scale: Scale = "quick"
    _campaigns: dict[str, CampaignData] = field(default_factory=dict)
    _contentions: dict[str, Outcome] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        """The store of the results."""
        return self.folder / "store"

    def campaign(self, source: str) -> CampaignData:
        """The newest campaign of a source.

        Raises:
            NotMeasured: when there is none.
        """
        from farline.plots.data import load_campaign

        if source not in self._campaigns:
            try:
                self._campaigns[source] = load_campaign(self.store, f"{source}-{self.scale}")
            except UsageError as error:
                raise NotMeasured(f"campaign {source}: {error.message}") from None
        return self._campaigns[source]

    def contention(self, source: str) -> Outcome:
        """The newest fairness measurement of a source.

        Raises:
            NotMeasured: when there is none.
        """
        from farline.campaign.contention.journal import read_journal
        from farline.campaign.contention.outcome import outcome_so_far
        from farline.store import Store

        if source not in self._contentions:
            try:
                store = Store(self.store, create=False)
                journal = read_journal(store, f"{source}-{self.scale}")
            except UsageError as error:
                raise NotMeasured(f"measurement {source}: {error.message}") from None
            self._contentions[source] = outcome_so_far(store, journal)
        return self._contentions[source]

    def trial(self, name: str) -> Mapping[str, Any]:
        """What a trial left.

        Raises:
            NotMeasured: when it was not made, or its file is damaged.
        """
        found = kept_trial(self.folder, name, self.scale)
        if found is None:
            raise NotMeasured(f"trial {name} was not made")
        return found

    def budget(self, *sources: str, column: str = TOTAL) -> Budget:
        """The error budget of campaigns, the widest of each part."""
        found = []
        for source in sources:
            data = self.campaign(source)
            found.append(budget_of(data.rows, data.points.get(column) or ()))
        return widest(found)


def trial_path(folder: Path, name: str, scale: Scale) -> Path:
    """Where what a trial left is kept."""
    return folder / "trials" / f"{name}-{scale}.json"


def kept_trial(folder: Path, name: str, scale: Scale) -> Mapping[str, Any] | None:
    """What a trial left, None where it was not made.

    Raises:
        NotMeasured: when the file cannot be read, or is damaged.
    """
    path = trial_path(folder, name, scale)
    try:
        found: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotMeasured(f"{path}: cannot read the trial: {error.strerror}") from None
    except ValueError as error:
        raise NotMeasured(f"{path}: damaged: {error}; delete it") from None
    if not isinstance(found, dict):
        raise NotMeasured(f"{path}: damaged: no JSON object; delete it")
    return found


def points_at(data: CampaignData, where: Where, column: str = TOTAL) -> list[ResponsePoint]:
    """Settings with these values that have a mean; what the campaign does not vary is not asked."""
    return [
        point
        for point in data.points.get(column) or ()
        if point.mean is not None and _fits(point, where)
    ]


def _fits(point: ResponsePoint, where: Where) -> bool:
    return all(
        name not in point.settings or point.settings[name] == wanted
        for name, wanted in where.items()
    )


def mean_at(data: CampaignData, where: Where, column: str = TOTAL) -> float:
    """The mean of one setting.

    Raises:
        NotMeasured: when it has no valid run.
    """
    found = points_at(data, where, column)
    if not found:
        named = ", ".join(f"{name} {value}" for name, value in where.items())
        raise NotMeasured(f"{data.name}: no valid run at {named}")
    return float(found[0].mean or 0.0)


def curve_of(
    data: CampaignData,
    x: str,
    where: Where,
    name: str = "",
    column: str = TOTAL,
    scale: float = 1e9,
    x_scale: float = 1.0,
    of: Of = "here",
) -> Curve:
    """Means over a parameter with their intervals, in units of `scale`.

    Raises:
        NotMeasured: when there is no point.
    """
    found = sorted(points_at(data, where, column), key=lambda point: _order(point.settings[x]))
    if not found:
        named = ", ".join(f"{name} {value}" for name, value in where.items())
        raise NotMeasured(f"{data.name}: no valid run with {named}")
    return Curve(
        name=name,
        x=[_place(point.settings[x], x_scale) for point in found],
        y=[float(point.mean or 0.0) / scale for point in found],
        of=of,
        low=[None if point.low is None else point.low / scale for point in found],
        high=[None if point.high is None else point.high / scale for point in found],
    )


def _order(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, (int, float)) else (1, str(value))


def _place(value: Any, scale: float) -> float | str:
    return value / scale if isinstance(value, (int, float)) else str(value)


def values_of(data: CampaignData, name: str) -> list[Any]:
    """The values of a parameter that some setting with a mean has, in order."""
    every = {p.settings[name] for p in data.throughput if name in p.settings and p.mean is not None}
    return sorted(every, key=_order)


def profile_over_rtt(
    data: CampaignData, where: Where, capacity_bps: float, label: str, modality: str = "T"
) -> ThroughputProfile:
    """The throughput profile of some settings over the emulated round-trip times.

    Raises:
        NotMeasured: when it has less than three round-trip times.
    """
    import numpy as np

    from farline.profiles.throughput_profile import ThroughputProfile

    found = sorted(points_at(data, where), key=lambda point: float(str(point.settings[RTT])))
    if len(found) < 3:
        raise NotMeasured(f"{data.name}: {label} has only {len(found)} round-trip times with runs")
    return ThroughputProfile(
        rtt_ms=np.array([1e3 * float(str(point.settings[RTT])) for point in found]),
        mean_bps=np.array([float(point.mean or 0.0) for point in found]),
        sd_bps=np.array([_deviation(point.values) for point in found]),
        n=np.array([float(point.n) for point in found]),
        capacity_bps=capacity_bps,
        label=label,
        modality=modality,
    )


def _deviation(values: Sequence[float]) -> float:
    import statistics

    return statistics.stdev(values) if len(values) > 1 else float("nan")
