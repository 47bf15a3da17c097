"""What is believed of throughput over a grid of settings: Gaussian, in ln Mbit/s.

The shape over the grid is what matters; the level of a path is left open by a large common
variance. Past transfers of one group (the same in all but the setting) enter by their contrasts, so
that the level of their day does not; samples of now enter as they are.

The knowledge gradient (Frazier, Powell and Dayanik 2009) of a setting is how much one more sample
there raises the best mean; expected improvement (Jones, Schonlau and Welch 1998) how much it may
beat the best setting of now. Pure: the same figures give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

HISTORY_SD = 0.3
"""Spread of past transfers of one group about its curve: the median over paths of repeats."""

SAMPLE_SD = 0.25
"""Spread of samples that follow each other."""

_NODES = 9
"""Points of the Gauss-Hermite rule by which expectations are taken."""


def log_of(rate_bps: float) -> float:
    """ln Mbit/s. The unit matters: the prior's level is 0 with a standard deviation of 5."""
    return math.log(rate_bps / 1e6)


def rate_of(log_rate: float) -> float:
    """bit/s of ln Mbit/s."""
    return 1e6 * math.exp(log_rate)


@dataclass(frozen=True, slots=True)
class Group:
    """Past transfers that differ in the setting alone: per grid point how many, and their sum.

    `sums` are of ln Mbit/s.
    """

    counts: Floats
    sums: Floats
    weight: float = 1.0

    @property
    def information(self) -> Floats:
        """diag(n) − nn'/N: precision of the contrasts, the level eliminated; for unit variance."""
        outer = np.outer(self.counts, self.counts) / self.counts.sum()
        return np.asarray(np.diag(self.counts) - outer)

    @property
    def vector(self) -> Floats:
        """S − n ΣS/N: what goes with it."""
        return np.asarray(self.sums - self.counts * self.sums.sum() / self.counts.sum())


@dataclass(frozen=True, eq=False, slots=True)
class Belief:
    """Mean and covariance of ln Mbit/s at each of k settings."""

    mean: Floats
    covariance: Floats

    def with_groups(self, groups: Iterable[Group], sd: float = HISTORY_SD) -> Self:
        """After the contrasts of these groups, each by its weight."""
        information = np.zeros_like(self.covariance)
        vector = np.zeros_like(self.mean)
        for group in groups:
            information += group.weight / sd**2 * group.information
            vector += group.weight / sd**2 * group.vector
        # (Σ⁻¹ + Λ)⁻¹ without inverting Σ, which a smooth shape makes nearly singular.
        covariance = np.linalg.solve(
            np.eye(len(self.mean)) + self.covariance @ information, self.covariance
        )
        covariance = (covariance + covariance.T) / 2
        mean = self.mean + covariance @ (vector - information @ self.mean)
        return type(self)(mean, covariance)

    def with_sample(self, at: int, log_rate: float, sd: float = SAMPLE_SD) -> Self:
        """After one sample at a setting."""
        column = self.covariance[:, at]
        gain = column / (column[at] + sd**2)
        mean = self.mean + gain * (log_rate - self.mean[at])
        return type(self)(mean, self.covariance - np.outer(gain, column))

    def with_level(self, shift: float, sd: float) -> Self:
        """After the mean over all settings was seen `shift` above what was believed."""
        together = self.covariance.mean(axis=1)
        gain = together / (together.mean() + sd**2)
        return type(self)(self.mean + gain * shift, self.covariance - np.outer(gain, together))

    @property
    def shape(self) -> Floats:
        """Mean of each setting under the best one's: 0 there, below elsewhere."""
        return np.asarray(self.mean - self.mean.max())

    @property
    def shape_variance(self) -> Floats:
        """Variance of each setting's distance from the mean over all."""
        centre = np.eye(len(self.mean)) - 1 / len(self.mean)
        return np.asarray(np.diag(centre @ self.covariance @ centre))

    def difference_sd(self, one: int, other: int) -> float:
        """Standard deviation of the difference of two settings."""
        c = self.covariance
        return float(np.sqrt(max(c[one, one] + c[other, other] - 2 * c[one, other], 0.0)))

    def knowledge_gradients(self, sd: float = SAMPLE_SD) -> Floats:
        """For each setting: how much a sample there is expected to raise the best mean."""
        nodes, weights = np.polynomial.hermite.hermgauss(_NODES)
        moved = self.covariance / np.sqrt(np.diag(self.covariance) + sd**2)
        # Settings by samples by nodes; the largest over settings, expected over nodes.
        after = self.mean[:, None, None] + moved[:, :, None] * (np.sqrt(2) * nodes)
        expected = after.max(axis=0) @ (weights / np.sqrt(np.pi))
        return np.asarray(expected - self.mean.max())

    def expected_improvements(self) -> Floats:
        """For each setting: how much it may be above the setting that is best by its mean."""
        from scipy.special import ndtr

        best = int(np.argmax(self.mean))
        c = self.covariance
        variance = np.diag(c) + c[best, best] - 2 * c[best]
        sd = np.sqrt(np.maximum(variance, 1e-18))
        z = (self.mean - self.mean[best]) / sd
        found = sd * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) + (
            self.mean - self.mean[best]
        ) * ndtr(z)
        found[best] = 0.0
        return np.asarray(found)


def smooth_covariance(
    points: Floats, amplitude: float, lengths: float | Floats, level: float
) -> Floats:
    """a² exp(−(Δx/l)²/2) + level between rows of `points`: settings close by behave alike."""
    apart = (points[:, None, :] - points[None, :, :]) / lengths
    return np.asarray(amplitude**2 * np.exp(-(apart**2).sum(axis=2) / 2) + level)
