"""Log files of farline as tests read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]


def read_lines(path: Path) -> list[Line]:
    """Every line of a log in JSON; each is one object with time, level, target and message."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all({"time", "level", "target", "message"} <= line.keys() for line in lines)
    return lines


def said(lines: Sequence[Line], message: str, **wanted: Any) -> list[Line]:
    """Lines with this message whose ids or fields are as wanted."""
    return [
        line
        for line in lines
        if line["message"] == message
        and all({**line.get("fields", {}), **line}.get(name) == wanted[name] for name in wanted)
    ]


def field(line: Line, name: str) -> Any:
    """A field of a line."""
    return line.get("fields", {}).get(name)
