"""Results of items: documents that are kept, and how one compares with the last."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from farline.errors import SystemFailure
from farline.plots.gallery import Picture, picture_of
from farline.plots.whole_file import write_whole
from farline.reproduce.budget import NOTHING
from farline.reproduce.evidence import Check, Verdict
from farline.reproduce.field_types import has_declared_type

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
        write_whole(path, json.dumps(result.document(), indent=1) + "\n")
    except OSError as error:
        raise SystemFailure(f"{path}: cannot write the result: {error.strerror}") from error


def read_result(folder: Path, item: str, scale: str) -> Result | None:
    """The last result of an item at a scale; None where there is none, or one of another schema.

    Raises:
        SystemFailure: when it cannot be read, or is damaged.
    """
    path = _path(folder, item, scale)
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            return None
        found = _result(document)
        if (found.item, found.scale) != (item, scale):
            raise ValueError(f"it is of {found.item!r} at {found.scale!r} scale")
        return found
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SystemFailure(f"{path}: cannot read the result: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        # What is missing and what is too much comes in words of Python alone.
        why = str(error) if type(error) is not TypeError else "it is not what farline writes"
        why = f"{why} is missing" if isinstance(error, KeyError) else why
        raise SystemFailure(f"{path}: damaged: {why}; delete it") from error


def _result(document: Mapping[str, Any]) -> Result:
    """The result of a document.

    Raises:
        ValueError, KeyError, TypeError: when people or another program have changed it.
    """
    checks = [Check(**check) for check in document["checks"]]
    pictures = [picture_of(picture) for picture in document["pictures"]]
    found = Result(**{**document, "checks": checks, "pictures": pictures})
    for name in (one.name for one in fields(Result)):
        if not has_declared_type(found, name):
            raise ValueError(f"{name!r} is not what farline writes")
    if found.verdict not in get_args(Verdict):
        raise ValueError(f"{found.verdict!r} is not one of the verdicts")
    if any(len(fact) != 2 for fact in found.facts):
        raise ValueError("a fact is not a name and a text")
    if found.budget and set(found.budget) != set(NOTHING.document()):
        raise ValueError("the budget has other parts")
    if any(len(curve.x) != len(curve.y) for one in pictures for curve in one.curves):
        raise ValueError("a curve has not as many places as values")
    return found


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
