"""Additive noise mechanisms on vectors of exact integers: discrete Laplace and rounded Gaussian.

Both see integers on a public lattice and give integers, so no digit of an answer depends on floating point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from discreet.trusted.ring_a.exact import figure, sqrt_ceiling
from discreet.trusted.ring_a.gaussian import rounded_gaussian
from discreet.trusted.ring_a.laplace import discrete_laplace
from discreet.trusted.ring_a.loss import DiscreteLaplace
from discreet.trusted.ring_a.loss import GaussianLoss as GaussianLoss


def hold_width(width: object) -> None:
    """Raises ValueError unless the width of a noise is a Fraction above 0: with another number no loss is exact."""
    if type(width) is not Fraction or width <= 0:
        raise ValueError("the width of a noise is a Fraction above 0")


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise on a vector of integers (Dwork & Roth 2014, Definition 3.3, on the integers).

    Units: lattice steps. Neighbours: one person added or removed, so exact vectors x, y with ‖x − y‖₁ ≤ sensitivity.
    Privacy: P(noise = k) ∝ exp(−|k|/scale), so each coordinate's probability ratio is at most exp(|xᵢ − yᵢ|/scale);
    coordinates are independent, the exponents add up, and every outcome's ratio is at most exp(sensitivity/scale):
    pure differential privacy with epsilon = sensitivity/scale (Theorem 3.6). Sampling is exact but for a total
    variation below 2^−100 a vector.
    """

    scale: Fraction

    name = "discrete Laplace"

    def loss(self, sensitivity: int) -> DiscreteLaplace:
        """The loss on vectors of that ℓ1 sensitivity."""
        return DiscreteLaplace(sensitivity / self.scale, sensitivity)

    def release(self, exact: Sequence[int]) -> list[int]:
        """The vector with fresh noise on every coordinate."""
        noise = discrete_laplace(self.scale, len(exact)).tolist()
        return [value + extra for value, extra in zip(exact, noise, strict=True)]

    def half_width(self, confidence: float, cells: int = 1) -> int:
        """The least h such that all `cells` coordinates stay within ±h with `confidence` (Theorem 3.8).

        P(|X| > h) = 2q^(h+1)/(1+q) on the integers, and a union bound over the cells.
        """
        miss = (1 - confidence) / cells
        rate = float(1 / self.scale)
        if rate > 700:
            return 0
        q = math.exp(-rate)
        return max(0, math.ceil(math.log(2 / ((1 + q) * miss)) / rate - 1e-9) - 1)

    def describe(self) -> str:
        """The noise and its scale in words, in lattice steps."""
        return f"{self.name} noise, scale {figure(self.scale)}"


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise rounded to the integers, on a vector of integers.

    Units: lattice steps. Neighbours: one person added or removed, so exact vectors x, y with ‖x − y‖₂ ≤ sensitivity.
    Privacy: x + N(0, sigma²) on each coordinate is μ-GDP with μ = sensitivity/sigma (Dong, Roth & Su 2019, Theorem
    2.7). As x is an integer, rounding x + N is x + round(N): adding rounded noise is post-processing of that release,
    so it is μ-GDP exactly.
    """

    sigma: Fraction

    name = "rounded Gaussian"

    def loss(self, sensitivity_squared: int) -> GaussianLoss:
        """The loss on vectors of that squared ℓ2 sensitivity, rounded up."""
        return GaussianLoss(sqrt_ceiling(sensitivity_squared / self.sigma**2))

    def release(self, exact: Sequence[int]) -> list[int]:
        """The vector with fresh noise on every coordinate."""
        noise = rounded_gaussian(self.sigma, len(exact)).tolist()
        return [value + extra for value, extra in zip(exact, noise, strict=True)]

    def half_width(self, confidence: float, cells: int = 1) -> int:
        """The least h such that all `cells` coordinates stay within ±h with `confidence`, by a union bound."""
        miss = (1 - confidence) / cells
        return math.ceil(-NormalDist().inv_cdf(miss / 2) * float(self.sigma) - 0.5)

    def describe(self) -> str:
        """The noise and its sigma in words, in lattice steps."""
        return f"{self.name} noise, sigma {figure(self.sigma)}"
