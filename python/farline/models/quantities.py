"""Arguments of formulas as arrays, refused in one line where they are out of range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farline.errors import SpecError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def positive(name: str, given: ArrayLike) -> Floats:
    """An array of numbers above 0; infinity is one.

    Raises:
        SpecError: for anything else, with its place where there are several.
    """
    values = np.asarray(given, dtype=np.float64)
    return _kept(name, values, values > 0, "more than 0")


def not_negative(name: str, given: ArrayLike) -> Floats:
    """An array of finite numbers from 0. Raises `SpecError` for anything else."""
    values = np.asarray(given, dtype=np.float64)
    return _kept(name, values, np.isfinite(values) & (values >= 0), "0 or more")


def positive_finite(name: str, given: ArrayLike) -> Floats:
    """An array of finite numbers above 0. Raises `SpecError` for anything else."""
    values = np.asarray(given, dtype=np.float64)
    return _kept(name, values, np.isfinite(values) & (values > 0), "finite and more than 0")


def loss_share(name: str, given: ArrayLike) -> Floats:
    """An array of shares above 0, up to 1. Raises `SpecError` for anything else."""
    values = np.asarray(given, dtype=np.float64)
    return _kept(name, values, (values > 0) & (values <= 1), "more than 0, up to 1")


def _kept(name: str, values: Floats, good: NDArray[np.bool_], allowed: str) -> Floats:
    if good.all():
        return values
    at = int(np.argmin(good))
    place = f"[{at}]" if values.ndim else ""
    value = values.ravel()[at]
    raise SpecError(f"{name}{place}: {value:g} is out of range; allowed: {allowed}")
