"""What the gallery of the papers' figures shows, as plain values: curves, pictures, one page each.

Values come from `farline.reproduce`; `gallery_figures` draws them and `gallery_page` writes the
pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Of = Literal["here", "paper", "model"]
"""Whose curve: measured or computed here, read from the paper, or a formula."""

Scale = Literal["linear", "log2", "log10", "words"]
"""Of the x axis; `words` has a place for each value, in order."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve of P points; `low` and `high` bound their intervals, None where there is none."""

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    of: Of = "here"
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """Curves on the axes of the paper's figure. `bars` draws them as bars beside each other."""

    name: str
    caption: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    x_scale: Scale = "linear"
    bars: bool = False
    stacked: bool = False
    y_from: float | None = 0.0


def picture_of(document: Mapping[str, Any]) -> Picture:
    """The picture of a document, as `dataclasses.asdict` makes it."""
    curves = [Curve(**curve) for curve in document["curves"]]
    return Picture(**{**document, "curves": curves})


@dataclass(frozen=True, slots=True)
class Line:
    """One check on a page: what the paper says, what came out, whether it holds."""

    text: str
    paper: str
    ours: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One item: its row in the index and its page."""

    id: str
    paper: str
    place: str
    title: str
    claim: str
    verdict: str
    is_text: bool
    reason: str = ""
    instead: str = ""
    scaling: str = ""
    notes: Sequence[str] = ()
    lines: Sequence[Line] = ()
    pictures: Sequence[Picture] = ()
    budget: Sequence[tuple[str, str]] = ()
    commands: Sequence[str] = ()
    plans: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    drift: Sequence[str] = ()
    made: str = ""
    guide: str = ""


@dataclass(frozen=True, slots=True)
class Gallery:
    """All entries, in the order of the index."""

    entries: Sequence[Entry]
    made: str
    facts: str
    version: str
    command: str
