"""Results of items: documents that are kept, and how one compares with the last."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from farline.errors import SystemFailure
from farline.plots.gallery import Picture, picture_of
from farline.reproduce.evidence import Check

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Result:
    """What an item came to at one time."""

    item: str
    verdict: str
    scale: str
    made_at: str
    reason: str = ""
    instead: str = ""
    checks: Sequence[Check] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    budget: Mapping[str, float] = field(default_factory=dict)
    commands: Sequence[str] = ()
    plans: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[Sequence[str]] = ()
    drift: Sequence[str] = ()
    schema: int = SCHEMA

    def document(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)


def write_result(folder: Path, result: Result) -> None:
    """Keeps a result, in place of the last one of its item and scale.

    Raises:
        SystemFailure: when the folder cannot be written.
    """
    path = _path(folder, result.item, result.scale)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(result.document(), indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise SystemFailure(f"{path}: cannot write the result: {error.strerror}") from error


def read_result(folder: Path, item: str, scale: str) -> Result | None:
    """The last result of an item at a scale; None where there is none, or one of another schema.

    Raises:
        SystemFailure: when it is damaged.
    """
    path = _path(folder, item, scale)
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            return None
        checks = [Check(**check) for check in document["checks"]]
        pictures = [picture_of(picture) for picture in document["pictures"]]
        return Result(**{**document, "checks": checks, "pictures": pictures})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}; delete it") from error


def drift_of(before: Result | None, now: Result) -> list[str]:
    """What changed since the last result, one line each; nothing where all is the same.

    A figure has changed where it moved by more than both results' margins together.
    """
    if before is None or before.verdict == "not measured":
        return []
    lines = []
    if before.verdict != now.verdict:
        lines.append(f"the verdict was {before.verdict} on {before.made_at[:10]}")
    known = {check.text: check for check in before.checks}
    for check in now.checks:
        old = known.get(check.text)
        if old is None or old.value is None or check.value is None:
            continue
        # Ratios and figures of two means each: the margins of both, in squares.
        margin = 2 * math.hypot(_margin(old), _margin(check))
        if abs(check.value - old.value) > margin + 1e-9 * abs(old.value):
            lines.append(f"{check.text}: {old.ours} before, {check.ours} now")
    return lines


def _margin(check: Check) -> float:
    """The margin of a check in the unit of its value; budgets of ratios are shares."""
    assert check.value is not None
    return check.margin * abs(check.value) if check.ours.endswith(" times") else check.margin


def _path(folder: Path, item: str, scale: str) -> Path:
    return folder / "results" / f"{item}-{scale}.json"
