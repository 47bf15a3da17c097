"""Which points make up which curve: one parameter along x, one per curve, the rest held fixed.

Points of different settings are never averaged into one: what is not on the x axis and does not
name a curve is held at one value, and the figure says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from farline.plots.axes import Axis, Scale, parameter_axis
from farline.plots.labels import Quantity
from farline.profiles.response import ResponsePoint, Setting, setting_order

MAX_CURVES = 8
"""Curves that a reader can tell apart in one figure."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points with one value of the curve parameter; `value` is None where there is no such one."""

    value: Setting
    points: tuple[ResponsePoint, ...]


@dataclass(frozen=True, slots=True)
class CurveSet:
    """What one control-response figure shows."""

    axis: Axis
    quantity: Quantity
    curves: tuple[Curve, ...]
    curve_parameter: str | None = None
    fixed: Mapping[str, Setting] = field(default_factory=dict)
    reference: ResponsePoint | None = None


def select_curves(
    points: Sequence[ResponsePoint],
    quantity: Quantity,
    x: str,
    curve_parameter: str | None = None,
    fixed: Mapping[str, Setting] | None = None,
    payload_bytes: float | None = None,
    reference: ResponsePoint | None = None,
    scale: Scale | None = None,
) -> CurveSet:
    """The points of `points` that stand at `fixed`, as curves over parameter `x`."""
    held = dict(fixed or {})
    shown = [p for p in points if all(p.settings[name] == held[name] for name in held)]
    axis = parameter_axis(x, (p.settings[x] for p in shown or points), payload_bytes, scale)
    values = {p.settings[curve_parameter] if curve_parameter else None for p in shown}
    curves = tuple(
        Curve(value, tuple(sorted(_of_curve(shown, curve_parameter, value), key=_by(x))))
        for value in sorted(values, key=setting_order)
    )
    return CurveSet(axis, quantity, curves, curve_parameter, held, reference)


def default_views(
    points: Sequence[ResponsePoint], parameters: Sequence[str], best: ResponsePoint | None
) -> list[tuple[str, str | None, dict[str, Setting]]]:
    """For every parameter along x: what to draw one curve per, and where the rest is held.

    The rest is held at the best setting, or at the first point where none was measured.
    """
    anchor = best or (points[0] if points else None)
    if anchor is None:
        return []
    counts = {name: len({p.settings[name] for p in points}) for name in parameters}
    views = []
    for x in parameters:
        others = [name for name in parameters if name != x and counts[name] <= MAX_CURVES]
        curve = max(others, key=lambda name: (counts[name], -parameters.index(name)), default=None)
        held = {name: anchor.settings[name] for name in parameters if name not in (x, curve)}
        views.append((x, curve, held))
    return views


def _of_curve(
    points: Sequence[ResponsePoint], name: str | None, value: Setting
) -> list[ResponsePoint]:
    return [p for p in points if name is None or p.settings[name] == value]


def _by(name: str) -> Callable[[ResponsePoint], tuple[int, float, str]]:
    return lambda point: setting_order(point.settings[name])
