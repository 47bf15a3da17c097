"""Whether values that were read from a file are of the types that their dataclass declares."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any


def has_declared_type(value: Any, name: str) -> bool:
    """Whether the field of that name of a dataclass's value holds what its type says."""
    return _is_of(getattr(value, name), typing.get_type_hints(type(value))[name])


def _is_of(value: Any, hint: Any) -> bool:
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is typing.Literal:
        return value in parts
    if kind in (typing.Union, types.UnionType):
        return any(_is_of(value, part) for part in parts)
    if kind is Sequence:
        return isinstance(value, (list, tuple)) and all(_is_of(one, parts[0]) for one in value)
    if kind is Mapping:
        return isinstance(value, dict) and all(
            _is_of(name, parts[0]) and _is_of(one, parts[1]) for name, one in value.items()
        )
    if is_dataclass(hint):
        names = typing.get_type_hints(hint)
        return isinstance(value, typing.cast("type", hint)) and all(
            has_declared_type(value, name) for name in names
        )
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
