"""Profiles from cells, from tables of measurements and from means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError
from farline.profiles.cells import Cell, cells_of
from farline.profiles.frames import Frame, column_names, numbers, values
from farline.profiles.merging import Knots, knots_of
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]

DURATIONS_ALIKE = 2.0
"""How many times longer tests at one RTT may take than at another to make one profile."""


def profile_of_cells(
    cells: Sequence[Cell],
    merge_ms: float,
    merge_share: float,
    capacity_bps: float | None,
    label: str,
    modality: str | None,
    quantiles: Sequence[float],
) -> ThroughputProfile:
    """`ThroughputProfile.from_cells`."""
    from farline.profiles.throughput_profile import ThroughputProfile

    cells = list(cells)
    knots = knots_of(cells, merge_ms, merge_share)
    found = sorted({str(cell.keys["modality"]) for cell in cells if cell.keys.get("modality")})
    modality = modality or "+".join(found) or "T"
    stated = sorted({cell.capacity_bps for cell in cells if cell.capacity_bps is not None})
    notes = (
        _mixed_modalities(found),
        _mixed_durations(knots, modality),
        "" if capacity_bps is not None else _mixed_capacities(stated),
        _unplaced(knots),
    )
    shares = [cell.quantiles_bps(quantiles) for cell in knots.cells]
    return ThroughputProfile(
        rtt_ms=knots.rtt_ms,
        mean_bps=np.array([cell.mean_bps for cell in knots.cells]),
        sd_bps=knots.sd_bps,
        n=np.array([float(cell.n) for cell in knots.cells]),
        capacity_bps=max(stated, default=None) if capacity_bps is None else capacity_bps,
        label=label,
        modality=modality,
        low_bps=np.array([cell.low_bps for cell in knots.cells]),
        high_bps=np.array([cell.high_bps for cell in knots.cells]),
        quantiles={
            share: np.array([knot[place] for knot in shares])
            for place, share in enumerate(quantiles)
        },
        points_bps=_points(knots),
        failed=knots.failed,
        unplaced=knots.unplaced,
        notes=tuple(note for note in notes if note),
    )


def cells_of_frame(frame: Frame, rtt: str, rate: str) -> list[Cell]:
    """Cells of a table whose columns of RTTs and rates have names of their own."""
    names = column_names(frame)
    rows: dict[str, object] = {"rtt_ms": numbers(frame, rtt), "rate_bps": numbers(frame, rate)}
    for name in ("complete", "modality", "capacity_bps", "bytes", "duration_s"):
        if name in names:
            rows[name] = values(frame, name)
    return cells_of(rows, by=("modality",) if "modality" in names else ())


def profile_of_means(
    rtt_ms: npt.ArrayLike,
    rate_bps: npt.ArrayLike,
    n: npt.ArrayLike | None,
    sd_bps: npt.ArrayLike | None,
    capacity_bps: float | None,
    label: str,
    modality: str,
) -> ThroughputProfile:
    """`ThroughputProfile.from_means`."""
    from farline.profiles.profile_checks import frozen
    from farline.profiles.throughput_profile import ThroughputProfile

    rtt = frozen(rtt_ms, "rtt_ms")
    if sd_bps is not None and n is None:
        raise SpecError("profile: sd_bps needs n, the number of measurements per mean")
    given = {
        "rate_bps": frozen(rate_bps, "rate_bps"),
        "n": np.ones(len(rtt)) if n is None else frozen(n, "n"),
        "sd_bps": np.full(len(rtt), np.nan) if sd_bps is None else frozen(sd_bps, "sd_bps"),
    }
    for name, array in given.items():
        if len(array) != len(rtt):
            raise SpecError(
                f"profile: {name} has {len(array)} entries for {len(rtt)} round-trip times"
            )
    order = np.argsort(rtt, kind="stable")
    return ThroughputProfile(
        rtt_ms=rtt[order],
        mean_bps=given["rate_bps"][order],
        sd_bps=given["sd_bps"][order],
        n=given["n"][order],
        capacity_bps=capacity_bps,
        label=label,
        modality=modality,
    )


def _points(knots: Knots) -> tuple[tuple[float, ...], ...] | None:
    points = tuple(cell.rates_bps or () for cell in knots.cells)
    return points if any(points) else None


def _mixed_modalities(found: Sequence[str]) -> str:
    if len(found) < 2:
        return ""
    return f"modalities {' and '.join(found)} are mixed: their means measure different things"


def _mixed_durations(knots: Knots, modality: str) -> str:
    """Concavity is an effect of how long a test took beside its ramp; files have their sizes."""
    durations = [cell.mean_duration_s for cell in knots.cells]
    known = [duration for duration in durations if not math.isnan(duration)]
    if modality != "T" or not known or max(known) < DURATIONS_ALIKE * min(known):
        return ""
    return (
        f"tests took {min(known):.3g} s at one round-trip time and {max(known):.3g} s at another: "
        "shorter tests lose more to their start-up, which distorts the profile"
    )


def _mixed_capacities(stated: Sequence[float]) -> str:
    if len(stated) < 2:
        return ""
    return (
        f"capacities from {rate_human(stated[0])} to {rate_human(stated[-1])} are mixed: rates "
        "are relative to the largest"
    )


def _unplaced(knots: Knots) -> str:
    if not knots.unplaced:
        return ""
    return f"{knots.unplaced} measurements are left out: their round-trip time is unknown"
