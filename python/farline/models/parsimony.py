"""Which form of one model a fit keeps: more parameters must earn their place.

Within a model only. Which of several models predicts best is asked of knots that were left out
(`model_choice`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

_EXACT = 1e-9
"""Relative deviation below which a fit counts as exact: there is nothing left to compare."""


class Fit(Protocol):
    """One form of a model, fitted: its weighted squares of log residuals, and its parameters."""

    @property
    def squares(self) -> float:
        """Sum over knots of weight times (ln predicted − ln measured)²."""
        ...

    @property
    def parameters(self) -> int:
        """How many figures were taken from the data."""
        ...


F = TypeVar("F", bound=Fit)


def criterion(fit: Fit, knots: int) -> float:
    """Schwarz's criterion of a fit to so many knots: K ln(squares/K) + p ln K; less is better."""
    squares = max(fit.squares / knots, _EXACT**2)
    return knots * math.log(squares) + fit.parameters * math.log(knots)


def thriftiest(fits: Sequence[F], knots: int) -> F:
    """The fit with the least criterion; of equal ones the first.

    A form with as many parameters as there are knots meets them whatever they are, and is only
    taken where there is no other.
    """
    tested = [fit for fit in fits if fit.parameters < knots]
    return min(tested or fits, key=lambda fit: criterion(fit, knots))
