"""An entry: one figure, table or sentence of a paper, and how farline comes to the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import FarlineError

if TYPE_CHECKING:
    from farline.reproduce.evidence import Evidence
    from farline.reproduce.measured import Measured

Judge = Callable[["Measured"], "Evidence"]


@dataclass(frozen=True, slots=True)
class Item:
    """One entry.

    `place` is where in the paper, such as "Fig. 6" or "section 4, text". `claim` is what it says,
    in our words. `sources` are names of campaigns (`sources.SOURCES`) that `judge` reads; without
    any it is computed. `scaling` says what is unlike in the paper and why that is allowed.
    `impossible` says why it cannot be had here; then nothing is judged. `guide` is the page of the
    documentation that stands on it.
    """

    id: str
    paper: str
    place: str
    title: str
    claim: str
    judge: Judge | None = None
    sources: Sequence[str] = ()
    scaling: str = ""
    impossible: str = ""
    guide: str = ""

    @property
    def kind(self) -> str:
        """`text` for a sentence, else `figure`: what the rows of the gallery are counted by."""
        return "text" if "text" in self.place else "figure"


def why(error: FarlineError) -> str:
    """A failure as the reason of a verdict."""
    return error.message
