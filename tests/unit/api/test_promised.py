"""What Python programs rely on: the public names and their arguments, as they were committed.

A line that goes, or an argument, is a change that breaks programs: announce it first
(`farline.spec.deprecations`). `FARLINE_WRITE_DOCS=1` writes the file anew after a name was added.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import farline
from farline import errors

PROMISED = Path(__file__).with_name("promised.txt")


def arguments(function: Any) -> str:
    """How it is called: names, `=` where there is a default, `*` before those by name alone."""
    words: list[str] = []
    for name, one in inspect.signature(function).parameters.items():
        if name in ("self", "cls"):
            continue
        if one.kind is one.VAR_POSITIONAL:
            name = f"*{name}"
        elif one.kind is one.VAR_KEYWORD:
            name = f"**{name}"
        elif one.kind is one.KEYWORD_ONLY and not any(word.startswith("*") for word in words):
            words.append("*")
        words.append(name if one.default is one.empty else f"{name}=")
    return ", ".join(words)


def lines() -> Iterator[str]:
    """One for each name, method and attribute."""
    for name in sorted(farline.__all__):
        found = getattr(farline, name)
        if inspect.isclass(found):
            yield name
            for member in sorted(set(dir(found)) | set(getattr(found, "__annotations__", ()))):
                if member.startswith("_") or hasattr(BaseException, member):
                    continue
                value = inspect.getattr_static(found, member, None)
                if isinstance(value, staticmethod | classmethod):
                    value = value.__func__
                calls = f"({arguments(value)})" if inspect.isfunction(value) else ""
                yield f"{name}.{member}{calls}"
        elif callable(found):
            yield f"{name}({arguments(found)})"
        else:
            yield name
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.FarlineError):
            yield f"farline.errors.{name} < {', '.join(base.__name__ for base in kind.__bases__)}"


def test_nothing_is_taken_away_unannounced() -> None:
    now = list(lines())
    if os.environ.get("FARLINE_WRITE_DOCS") == "1":
        PROMISED.write_text("".join(f"{line}\n" for line in now), encoding="utf-8")
    before = PROMISED.read_text(encoding="utf-8").splitlines()
    assert now == before, "see the head of this file"
