"""A figure that a command draws into the file it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import SystemFailure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Draws in the style of all figures and writes `path`, in the format that its name says.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    from farline.plots.style import paper_style, save

    try:
        with paper_style():
            save(draw(), path.with_suffix(""), [path.suffix.lstrip(".")])
    except OSError as error:
        raise SystemFailure(f"{path}: cannot draw into it: {error.strerror or error}") from None
