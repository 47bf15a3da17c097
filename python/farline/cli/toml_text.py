"""A document as TOML: plain values first, then a table for each entry of its lists of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def toml_text(document: Mapping[str, Any]) -> str:
    """The text; what is null or empty is left out."""
    plain = {key: value for key, value in document.items() if not _is_tables(value)}
    lines = list(_lines(plain))
    for key, value in document.items():
        if _is_tables(value):
            for table in value:
                lines += ["", f"[[{key}]]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _lines(table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        text = _value(value)
        if text is not None:
            yield f"{_key(key)} = {text}"


def _key(key: str) -> str:
    bare = key.replace("_", "").replace("-", "")
    return key if bare.isascii() and bare.isalnum() else json.dumps(key)


def _value(value: Any) -> str | None:
    """TOML spells numbers, texts and booleans as JSON does."""
    if value is None or value in ({}, []):
        return None
    if isinstance(value, Mapping):
        inner = [(key, _value(item)) for key, item in value.items()]
        said = [f"{_key(key)} = {text}" for key, text in inner if text is not None]
        return "{ " + ", ".join(said) + " }" if said else None
    if isinstance(value, list):
        return "[" + ", ".join(text for item in value if (text := _value(item))) + "]"
    return json.dumps(value, ensure_ascii=False)
