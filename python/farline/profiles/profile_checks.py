"""What holds of every profile, checked when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

Floats = npt.NDArray[np.float64]


def frozen(values: npt.ArrayLike, name: str) -> Floats:
    """A read-only copy as numbers.

    Raises:
        SpecError: when the values are no numbers in one row.
    """
    try:
        copy = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecError(f"profile: {name} contains a value that is not a number") from None
    if copy.ndim != 1:
        raise SpecError(f"profile: {name} has {copy.ndim} dimensions; it must have one")
    copy.flags.writeable = False
    return copy


def check_profile(profile: ThroughputProfile) -> None:
    """Raises SpecError with the first thing that does not hold."""
    count = len(profile.rtt_ms)
    if not count:
        raise SpecError("profile: no round-trip time given; at least one is needed")
    named = {name: getattr(profile, name) for name in ("mean_bps", "sd_bps", "n")}
    for name in ("low_bps", "high_bps"):
        if getattr(profile, name) is not None:
            named[name] = getattr(profile, name)
    named |= {f"quantile {share}": values for share, values in profile.quantiles.items()}
    if profile.points_bps is not None:
        named["points_bps"] = profile.points_bps
    for name, values in named.items():
        if len(values) != count:
            raise SpecError(
                f"profile: {name} has {len(values)} entries for {count} round-trip times"
            )
    _check_numbers(profile)


def _check_numbers(profile: ThroughputProfile) -> None:
    rtt_ms, capacity = profile.rtt_ms, profile.capacity_bps
    if not bool(np.all(np.isfinite(rtt_ms) & (rtt_ms >= 0))):
        raise SpecError("profile: rtt_ms has a value that is not a number of 0 or more")
    steps = np.flatnonzero(np.diff(rtt_ms) <= 0)
    if len(steps):
        pair = rtt_ms[steps[0] : steps[0] + 2]
        raise SpecError(
            f"profile: rtt_ms does not increase strictly, {pair[0]:g} is followed by {pair[1]:g}"
        )
    if not bool(np.all(np.isfinite(profile.mean_bps))):
        raise SpecError("profile: mean_bps has a value that is not finite")
    if not bool(np.all(np.isfinite(profile.n) & (profile.n >= 1))):
        raise SpecError("profile: n has a value below 1")
    if bool(np.any(profile.sd_bps < 0)) or bool(np.isinf(profile.sd_bps).any()):
        raise SpecError("profile: sd_bps has a value below 0 or not a number")
    if capacity is not None and not (np.isfinite(capacity) and capacity > 0):
        raise SpecError(f"profile: capacity_bps is {capacity:g}; it must be above 0")
