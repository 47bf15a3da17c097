"""One entry of a mapping, as `mapping` reads it from a text and readers of tables take it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mapped:
    """Where the values of `column` come from: a column of the table by its name, or a text."""

    column: str
    """Column of a row of a transfer."""
    name: str
    """Name of the column of the table, or the text itself."""
    unit: str | None = None
    literal: bool = False
    """Whether `name` is the text that each row has."""
