"""The generated option table as values to work with."""

from __future__ import annotations

from dataclasses import dataclass

from farline.spec._options import OPTIONS as _ROWS


@dataclass(frozen=True)
class Option:
    """One option of a run.

    `path` is its place in a spec document, `kind` how a text becomes its value
    (size, rate, seconds, ms, integer, number, word, string, flag, array), `item` what an
    array holds. `minimum` and `maximum` bound the number, the entries of an
    array, or the length of a string.
    """

    path: str
    section: str
    flags: tuple[str, ...]
    kind: str
    item: str | None
    unit: str | None
    choices: tuple[str, ...]
    minimum: int | float | None
    maximum: int | float | None
    default: bool | int | float | str | tuple[()] | None
    help: str
    sweep: bool

    @property
    def name(self) -> str:
        """Last word of the path; options that share a flag share it."""
        return self.path.rpartition(".")[2]


OPTIONS: tuple[Option, ...] = tuple(Option(**row) for row in _ROWS)
"""Every option of a run, in the order of the spec."""

COPY = "copy"
"""Section of the options that only a copy has."""

TRANSPORT_SECTIONS: tuple[str, ...] = tuple(
    dict.fromkeys(option.section for option in OPTIONS if option.section not in ("run", COPY))
)
"""Transports with a section of options of their own."""
