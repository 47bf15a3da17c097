"""Documents of `farline analyze ... --json`: values as JSON, and never NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from farline.models.model_choice import Choice
    from farline.plots.analysis_values import ProfileView
    from farline.profiles.throughput_profile import ThroughputProfile


def print_document(parts: Mapping[str, Any]) -> None:
    """Prints one document; every value as `plain` makes it."""
    click.echo(json.dumps({"schema": 1, **plain(parts)}, indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays and sets as lists, frozen values as objects, NaN as null.

    Raises:
        TypeError: for what has no such form.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def profile_document(view: ProfileView) -> dict[str, Any]:
    """One profile with everything that was computed from it."""
    return {
        "name": view.name,
        **_knots(view.profile),
        "mean_low_bps": view.mean_low_bps,
        "mean_high_bps": view.mean_high_bps,
        "coefficients": view.coefficients,
        "regions": view.regions,
        "running": view.running,
        "model": None if view.choice is None else choice_document(view.choice),
    }


def _knots(profile: ThroughputProfile) -> dict[str, Any]:
    return {
        "modality": profile.modality,
        "capacity_bps": profile.capacity_bps,
        "failed": profile.failed,
        "unplaced": profile.unplaced,
        "notes": profile.notes,
        "rtt_ms": profile.rtt_ms,
        "n": profile.n,
        "mean_bps": profile.mean_bps,
        "sd_bps": profile.sd_bps,
        "low_bps": profile.low_bps,
        "high_bps": profile.high_bps,
        "quantiles_bps": profile.quantiles,
    }


def choice_document(choice: Choice) -> dict[str, Any]:
    """The chosen model and the candidates, best first."""
    return {
        "chosen": choice.chosen.name,
        "words": choice.chosen.in_words(),
        "rule": choice.rule,
        "candidates": [
            {
                "name": candidate.model.name,
                "error": candidate.error,
                "parameters": candidate.parameters,
                "why_not": candidate.why_not,
            }
            for candidate in choice.candidates
        ],
    }
