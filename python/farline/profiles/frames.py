"""Columns of anything that has columns: pandas frames, Arrow tables, mappings of arrays.

None of the libraries is imported here: whoever has a frame of one has imported it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from farline.errors import SpecError

Frame = Any
"""A pandas DataFrame, a pyarrow Table, or a mapping of names to sequences of equal length."""


def column_names(frame: Frame) -> list[str]:
    """Names of the columns in their order.

    Raises:
        SpecError: when `frame` has none.
    """
    for name in ("column_names", "columns", "keys"):
        names = getattr(frame, name, None)
        if names is not None:
            return [str(one) for one in (names() if callable(names) else names)]
    raise SpecError(
        f"rows: {type(frame).__name__} has no columns; use a pandas DataFrame, an Arrow table or "
        "a mapping of arrays"
    )


def numbers(frame: Frame, name: str) -> npt.NDArray[np.float64]:
    """A column as numbers (N,), NaN where it says nothing.

    Raises:
        SpecError: when there is no such column, or it holds something else.
    """
    column = _column(frame, name)
    try:
        if hasattr(column, "to_pylist"):
            return np.array(column.to_pylist(), dtype=np.float64)
        if hasattr(column, "isna"):
            return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecError(f"column {name}: contains a value that is not a number") from None


def values(frame: Frame, name: str) -> list[Any]:
    """A column as Python values; None where it says nothing.

    Raises:
        SpecError: when there is no such column.
    """
    column = _column(frame, name)
    for method in ("to_pylist", "tolist"):
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    return [None if _is_nothing(value) else value for value in column]


def _is_nothing(value: object) -> bool:
    # pandas has its own words for nothing, NA and NaT.
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _column(frame: Frame, name: str) -> Any:
    names = column_names(frame)
    if name not in names:
        raise SpecError(f"column {name}: no such column; the columns are {', '.join(names)}")
    return frame[name]
