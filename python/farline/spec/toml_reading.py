"""TOML that somebody has written by hand: text to a document, or `ValueError` in words."""

from __future__ import annotations

import tomllib
from typing import Any

from farline.spec.json_text import check_depth


def read_toml(text: str) -> dict[str, Any]:
    """The document that `text` stands for.

    Raises:
        ValueError: when it is no TOML, in one line that says why.
    """
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError("tables and lists are nested too deep") from None
    check_depth(document)
    return document
