"""JSON that somebody else has written: text to values, or `ValueError` in words.

`json.loads` alone ends in `RecursionError` where a document is deep, and takes `NaN`.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn


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
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("lists and objects are nested too deep") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number that JSON has")


def read_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that `text` stands for.

    Raises:
        ValueError: when it is none, in one line that says why.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
