"""The models of a profile by name, simplest first."""

from __future__ import annotations

from farline.errors import SpecError
from farline.models.concave_convex import ConcaveConvex
from farline.models.dedicated_fit import DedicatedChannel
from farline.models.monotone import Isotonic, Unimodal
from farline.models.piecewise import PiecewiseLinear
from farline.models.power_law import Constant, PowerLaw
from farline.models.profile_model import Regressor
from farline.models.sigmoid_pair import SigmoidPair
from farline.models.window_fit import WindowBound

MODELS: dict[str, type[Regressor]] = {
    model.name: model
    for model in (
        Constant,
        WindowBound,
        PowerLaw,
        DedicatedChannel,
        SigmoidPair,
        ConcaveConvex,
        Isotonic,
        Unimodal,
        PiecewiseLinear,
    )
}
"""Laws with a cause behind them, then shapes, then the means themselves."""


def model_named(name: str) -> Regressor:
    """A model with its defaults. Raises `SpecError` for a name that is none of `MODELS`."""
    if name not in MODELS:
        raise SpecError(f"model: {name!r} is none: allowed is {', '.join(MODELS)}")
    return MODELS[name]()
