"""What items of Rao et al. 2018 share: profiles of single values, made-up logs, pictures."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from farline.plots.gallery import Curve, Picture
from farline.profiles.throughput_profile import ThroughputProfile
from farline.reproduce.made_logs import ALIKE, PETASCALE, PRODUCTION, Made, profiles

if TYPE_CHECKING:
    import numpy.typing as npt


def made_profile(
    rtt_ms: npt.ArrayLike, rates: npt.ArrayLike, capacity: float, label: str = ""
) -> ThroughputProfile:
    """A profile of single values."""
    places = np.asarray(rtt_ms, dtype=np.float64)
    count = len(places)
    return ThroughputProfile(
        rtt_ms=places, mean_bps=np.asarray(rates, dtype=np.float64),
        sd_bps=np.full(count, np.nan), n=np.ones(count), capacity_bps=capacity, label=label,
    )  # fmt: skip


def roughness(profile: ThroughputProfile) -> float:
    """How far a profile is from non-increasing: all its rises over its mean."""
    rises = np.diff(profile.mean_bps)
    return float(rises[rises > 0].sum() / profile.mean_bps.mean())


def profile_picture(name: str, caption: str, shown: Sequence[ThroughputProfile]) -> Picture:
    scale, unit = (1e9, "Gb/s") if max(p.mean_bps.max() for p in shown) > 2e9 else (1e6, "Mb/s")
    curves = [
        Curve(p.label or p.name, p.rtt_ms.tolist(), (p.mean_bps / scale).tolist()) for p in shown
    ]
    return Picture(name, caption, "RTT (ms)", unit, curves)


def running_curve(name: str, profile: ThroughputProfile) -> Curve:
    run = profile.running()
    return Curve(name, run.rtt_ms.tolist(), run.c_uc.tolist())


def running_picture(name: str, found: Mapping[str, ThroughputProfile]) -> Picture:
    curves = [running_curve(label, profile) for label, profile in found.items()]
    return Picture(name, "C_UC over RTT: all, a part, and each site", "RTT (ms)", "C_UC", curves)


def profiles_of(
    made: Made, groups: tuple[tuple[str, ...], ...] = ()
) -> Mapping[str, ThroughputProfile]:
    """Profiles of made-up logs, read once in a process."""
    return _read_once(made.name, groups)


@functools.cache
def _read_once(name: str, groups: tuple[tuple[str, ...], ...]) -> Mapping[str, ThroughputProfile]:
    made = next(one for one in (PETASCALE, PRODUCTION, ALIKE) if one.name == name)
    with tempfile.TemporaryDirectory(prefix="farline-reproduce-") as folder:
        return profiles(made, Path(folder), groups)
