"""Arrow arrays of Python values, from buffers.

`pyarrow.array` imports pandas to look at what it is given: half a second that every probe and
every question to a store would pay.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_CODES = {"int64": "q", "uint64": "Q", "double": "d"}


def array_of(values: Sequence[Any], kind: str) -> pa.Array:
    """An array of the Arrow type `kind` (string, bool, int64, uint64, double), None for null.

    Raises:
        TypeError, AttributeError, OverflowError: for a value that is not of the type.
    """
    known = [value is not None for value in values]
    validity = _bits(known)
    if kind == "string":
        texts = [b"" if value is None else value.encode() for value in values]
        ends = array("i", itertools.accumulate(map(len, texts), initial=0))
        data = pa.py_buffer(b"".join(texts))
        return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), data, validity)
    if kind == "bool":
        data = _bits([_switch(value) for value in values])
    else:
        numbers = [0 if value is None else value for value in values]
        if kind != "double":
            numbers = [_whole(number) for number in numbers]
        data = pa.py_buffer(array(_CODES[kind], numbers))
    return pa.Array.from_buffers(pa.type_for_alias(kind), len(values), [validity, data])


def scalar_of(text: str) -> pa.Scalar:
    """A text to compare a column with."""
    return array_of([text], "string")[0]


def repeated(text: str, rows: int) -> pa.Array:
    """An array of `rows` times the same text."""
    content = text.encode()
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * len(content))
    return pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(content * rows))


def integers(column: np.ndarray[Any, Any], known: np.ndarray[Any, Any]) -> pa.Array:
    """An array of 64-bit integers, null where not known."""
    data = pa.py_buffer(np.ascontiguousarray(column, dtype=np.int64))
    validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(column), [validity, data])


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array(flags, dtype=bool), bitorder="little"))


def _switch(value: object) -> bool:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return bool(value)


def _whole(value: Any) -> Any:
    """A whole number that JSON may have as `3.0`."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
