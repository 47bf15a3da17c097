"""Work that tells its events, driven to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from farline.tools.events import Event, Steps

_Value = TypeVar("_Value")


def finished(steps: Steps[_Value], told: list[Event] | None = None) -> _Value:
    """What it returns; its events go to `told`."""
    try:
        while True:
            event = next(steps)
            if told is not None and event is not None:
                told.append(event)
    except StopIteration as end:
        value: _Value = end.value
        return value
