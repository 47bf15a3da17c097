"""What every model of a throughput profile is: fitted to means over RTT, asked at other RTTs.

In the habit of scikit-learn: parameters of the method are arguments of the constructor, what was
fitted ends in an underscore, `fit` returns the model. Any object that keeps `ProfileModel` can be
compared with the others (`model_choice`); those of this room share `Regressor`.
"""

from __future__ import annotations

import abc
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from farline.errors import SpecError, UsageError
from farline.models.quantities import not_negative, positive_finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


class ProfileModel(Protocol):
    """A profile as a function of RTT. `name` is a word for tables and `--model`.

    `parameters_` is how many figures the last fit took from the data.
    """

    name: ClassVar[str]
    parameters_: int

    def fit(
        self, rtt_ms: ArrayLike, rate_bps: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fits to K means; weights are n of each, or none. Raises `SpecError` for too few."""
        ...

    def predict(self, rtt_ms: ArrayLike) -> Floats:
        """Rates in bit/s at these RTTs; no limits are applied to where they are asked."""
        ...

    def in_words(self) -> str:
        """What was fitted, in one line with units."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor, by name: another model of the same kind takes them."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Knots:
    """K means in the order of their RTTs, all different. Weights have a mean of 1."""

    rtt_ms: Floats
    rate_bps: Floats
    weight: Floats

    def __len__(self) -> int:
        """How many RTTs there are."""
        return len(self.rtt_ms)

    def only(self, kept: NDArray[np.bool_]) -> Knots:
        """The knots that `kept`, one truth value for each, says; their weights as they are."""
        return Knots(self.rtt_ms[kept], self.rate_bps[kept], self.weight[kept])


class Regressor(abc.ABC):
    """What the models of this room have in common. Order and repeats of knots do not matter."""

    name: ClassVar[str]
    parameters_: int
    rtt_range_ms_: tuple[float, float]
    """Smallest and largest RTT that the last fit was shown."""

    @property
    @abc.abstractmethod
    def knots_needed(self) -> int:
        """The smallest number of different RTTs that a fit can be made to."""

    def fit(
        self, rtt_ms: ArrayLike, rate_bps: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fits to K means in bit/s; `sample_weight` is how many measurements each stands for.

        Means at the same RTT are joined first, by weight.

        Raises:
            SpecError: for arrays of unlike lengths, values out of range, too few different RTTs.
        """
        knots = knots_of(rtt_ms, rate_bps, sample_weight, self.name)
        if len(knots) < self.knots_needed:
            raise SpecError(
                f"{self.name}: {len(knots)} different RTTs are too few to fit: at least "
                f"{self.knots_needed} are needed"
            )
        self._learn(knots)
        self.rtt_range_ms_ = (float(knots.rtt_ms[0]), float(knots.rtt_ms[-1]))
        return self

    def predict(self, rtt_ms: ArrayLike) -> Floats:
        """Rates in bit/s at these RTTs, in an array of the same shape.

        No limits are applied to where they are asked: `rtt_range_ms_` says what was seen.

        Raises:
            SpecError: for a negative RTT or one that is no number.
            UsageError: before `fit`.
        """
        self._check_fitted()
        asked_ms = np.asarray(rtt_ms, dtype=np.float64)
        not_negative("rtt_ms", asked_ms)
        return self._curve(asked_ms.ravel()).reshape(asked_ms.shape)

    def score(
        self, rtt_ms: ArrayLike, rate_bps: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """R², the share of the rates' variance that is predicted: 1 at best, may be negative.

        As in scikit-learn, rates that are all equal give 1 where they are met and 0 otherwise.
        """
        knots = knots_of(rtt_ms, rate_bps, sample_weight, self.name)
        left = np.sum(knots.weight * (knots.rate_bps - self.predict(knots.rtt_ms)) ** 2)
        mean_bps = np.average(knots.rate_bps, weights=knots.weight)
        total = np.sum(knots.weight * (knots.rate_bps - mean_bps) ** 2)
        if total == 0:
            return 1.0 if left == 0 else 0.0
        return float(1 - left / total)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor, by name. No model has parts, so `deep` changes nothing."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Changes arguments of the constructor; what was fitted stays until the next `fit`.

        Raises:
            UsageError: for a name that the constructor does not take.
        """
        known = list(inspect.signature(type(self)).parameters)
        for name, value in params.items():
            if name not in known:
                allowed = ", ".join(known) or "nothing"
                raise UsageError(f"{self.name}: no parameter {name!r}: allowed: {allowed}")
            setattr(self, name, value)
        return self

    def in_words(self) -> str:
        """What was fitted, in one line with units."""
        self._check_fitted()
        return self._words()

    def __repr__(self) -> str:
        """As it would be written."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    @abc.abstractmethod
    def _learn(self, knots: Knots) -> None:
        """Sets what ends in an underscore; there are enough knots."""

    @abc.abstractmethod
    def _curve(self, rtt_ms: Floats) -> Floats:
        """Rates at RTTs in a flat array."""

    @abc.abstractmethod
    def _words(self) -> str:
        """`in_words` of a fitted model."""

    def _check_fitted(self) -> None:
        if not hasattr(self, "rtt_range_ms_"):
            raise UsageError(f"{self.name}: not fitted yet: call fit first")


def knots_of(
    rtt_ms: ArrayLike, rate_bps: ArrayLike, sample_weight: ArrayLike | None, name: str
) -> Knots:
    """Means in order of their RTTs, those at the same RTT joined by weight.

    Raises:
        SpecError: for arrays of unlike lengths, an RTT below 0, a rate or weight of 0 or less.
    """
    rtts_ms, rates_bps = (np.asarray(given, dtype=np.float64) for given in (rtt_ms, rate_bps))
    weights = np.ones_like(rates_bps) if sample_weight is None else np.asarray(sample_weight, float)
    if rtts_ms.ndim != 1 or not rtts_ms.shape == rates_bps.shape == weights.shape:
        raise SpecError(
            f"{name}: RTTs, rates and weights have the shapes {rtts_ms.shape}, {rates_bps.shape} "
            f"and {weights.shape}: they must have one dimension and the same length"
        )
    not_negative("rtt_ms", rtts_ms)
    positive_finite("rate_bps", rates_bps)
    positive_finite("sample_weight", weights)
    places_ms, place = np.unique(rtts_ms, return_inverse=True)
    whole = np.bincount(place, weights).astype(np.float64)
    # Shares of each RTT's weight are taken first, so that one mean alone keeps all its digits.
    means_bps = np.bincount(place, rates_bps * (weights / whole[place])).astype(np.float64)
    return Knots(places_ms, means_bps, whole / whole.mean() if len(whole) else whole)


def twin(model: ProfileModel) -> ProfileModel:
    """Another model of the same kind with the same arguments, not fitted."""
    return type(model)(**model.get_params(deep=False))
