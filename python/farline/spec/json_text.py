"""JSON that somebody else has written: text to values, or `ValueError` in words.

`json.loads` alone ends in `RecursionError` where a document is deep, and takes `NaN`.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

MAX_DEPTH = 100
"""Most lists and objects within each other; farline's own documents have less than ten."""


def read_json(text: str | bytes) -> Any:
    """The value that `text` stands for.

    Raises:
        ValueError: when it is no JSON, in one line that says why.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"byte {error.start} is not UTF-8") from None
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("lists and objects are nested too deep") from None
    check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """Refuses what is nested so deep that a walk through it would end in `RecursionError`.

    Raises:
        ValueError: when it is.
    """
    level, depth = [value], 0
    while level := [
        part
        for whole in level
        if isinstance(whole, dict | list)
        for part in (whole.values() if isinstance(whole, dict) else whole)
        if isinstance(part, dict | list)
    ]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"tables and lists are nested deeper than {MAX_DEPTH} levels")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def read_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that `text` stands for.

    Raises:
        ValueError: when it is none, in one line that says why.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
