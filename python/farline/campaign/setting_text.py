"""A setting in words: names and values of what a campaign varies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from farline.spec.units import rate_human, size_text

_SHORT = {
    "tcp.congestion_control": "congestion",
    "block_bytes": "block",
    "rate_bps": "rate",
    "duration_s": "duration",
    "path.rtt_s": "RTT",
    "path.rate_bps": "link rate",
    "path.delay_s": "delay",
    "path.capacity_bytes": "queue",
    "path.capacity_bdp": "queue BDP",
}


def short_name(path: str) -> str:
    """An option's name as the head of a column."""
    word = path.rpartition(".")[2].removesuffix("_bytes").removesuffix("_ms")
    return _SHORT.get(path, word.replace("_", " "))


def value_text(path: str, value: object) -> str:
    """An option's value as a cell."""
    if value is None:
        return "auto"
    if path in ("path.rtt_s", "path.delay_s") and isinstance(value, int | float):
        return f"{1000 * value:g} ms"
    if isinstance(value, float):
        return f"{value:g}"
    if path.endswith("_bytes") and isinstance(value, int):
        return size_text(value)
    if path.endswith("_ms") and isinstance(value, int):
        return f"{value} ms"
    if path.endswith("_bps") and isinstance(value, int):
        return rate_human(value) if value else "unlimited"
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def setting_text(varied: Mapping[str, Any]) -> str:
    """A setting in one line."""
    words = [f"{short_name(path)} {value_text(path, value)}" for path, value in varied.items()]
    return ", ".join(words) or "the only setting"
