"""Plan files: TOML that somebody has written, to a plan; what is wrong with it names the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from farline.errors import SpecError, UsageError
from farline.spec.toml_reading import read_toml

_Plan = TypeVar("_Plan")


def read_plan_file(path: Path, make: Callable[[Mapping[str, Any]], _Plan]) -> _Plan:
    """What `make` makes of the document in a file.

    Raises:
        UsageError: when there is no such file or it is not TOML.
        SpecError: what `make` raises; the line names the file.
    """
    try:
        document = read_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    try:
        return make(document)
    except SpecError as error:
        raise SpecError(f"{path}: {error.message}") from None


def name_of(path: Path, longest: int) -> str:
    """A name for the plan in a file, after the file's own; nothing where that has no letter."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", path.stem)[:longest].lstrip("-_")
