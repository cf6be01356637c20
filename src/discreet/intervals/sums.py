"""How far a sum over cells lies from the truth: quantiles of sums of independent noises, far out in the tail.

A stored answer has one noisy number for each cell of its keys. What a question adds up of these cells has as noise the
sum of theirs, which are independent and of one mechanism. Its quantile follows from the convolution:

* one Laplace number a cell: the sum of n discrete Laplace numbers is the difference of two negative binomial numbers
  A and B with n successes, so P(sum ≥ h) = Σ_b P(B = b)·P(A ≥ h + b), where only positive terms are added. The tail of
  B beyond the last b that is looked at is added to it, so the chance is never taken for too small;
* several numbers a cell, with weights: the chance is bounded from above in two ways, and the smaller bound is taken.
  Chernoff: P(|sum| ≥ h) ≤ 2·e^(−th)·E[e^(t·noise)]^n for every t > 0, where the transform of independent numbers is
  the product of theirs. Peakedness (Proschan 1965, Theorem 2.3): for independent symmetric log-concave numbers the
  chance grows as weights of one sum are moved to one number, so the quantile is at most that of a single number's sum
  times the sum of the weights. That speaks of densities: noise of few steps, whose numbers are mostly 0, is bounded by
  the union of its numbers instead, each with its part of the failures;
* Gaussian noise: the sum is Gaussian but for the rounding, which adds 1/12 to each variance and has lighter tails.

The joint noise is taken as continuous, as in `intervals.joint`: its steps are a millionth of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.intervals import joint
from discreet.intervals.noise import half_width as alone
from discreet.mechanisms import Ball, Gaussian, Laplace, variance

Floats = NDArray[np.float64]

_POINTS = 400
"""How many exponents Chernoff's bound is tried at; each gives a bound."""

_FEW_STEPS = 2
"""Noise of no larger a scale is not taken as continuous."""

_LARGEST = 200_000
"""Up to so many steps of a noise are added up one by one."""


@dataclass(frozen=True)
class Summed:
    """The noise of a sum over `cells` cells, each with independent noise `of` one mechanism. Nothing draws it: it says
    how numbers that were drawn are spread once they are added up."""

    of: Laplace | Gaussian | Ball
    cells: int

    def describe(self) -> str:
        return f"sums over {self.cells:,} cells with {self.of.describe()} each"


def half_width(noise: Summed, weights: Sequence[Fraction], miss: float) -> float:
    """An h with P(|Σ wᵢ·(sum of the i-th number over the cells)| > h) ≤ miss."""
    return _quantile(noise.of, noise.cells, tuple(float(weight) for weight in weights), miss)


def spread(
    noise: Summed, above: Sequence[Fraction], below: Sequence[Fraction], miss: float
) -> Callable[[Floats], Floats]:
    """For positions t of a mean, the quantile of |(1 − t)·X − t·Y|, X and Y the noise of what `above` and `below` make
    of the numbers."""
    places = np.linspace(0.0, 1.0, joint.PLACES)
    values = [
        half_width(noise, [(1 - t) * a - t * b for a, b in zip(above, below, strict=True)], miss)
        for t in map(Fraction, places.tolist())
    ]
    return lambda t: np.interp(t, places, values)


@lru_cache(maxsize=65_536)
def _quantile(mechanism: Laplace | Gaussian | Ball, cells: int, weights: tuple[float, ...], miss: float) -> float:
    used = [abs(weight) for weight in weights if weight]
    if not used or not cells:
        return 0.0
    if isinstance(mechanism, Ball):
        if cells == 1:
            return joint.half_width(mechanism, [Fraction(weight) for weight in weights], miss)
        return _chernoff_of_ball(mechanism, cells, weights, miss)
    if cells == 1:
        return alone(mechanism, used, miss)
    norm = math.sqrt(sum(weight**2 for weight in used))
    if isinstance(mechanism, Gaussian):
        return norm * (-NormalDist().inv_cdf(miss / 2) * math.sqrt(variance(mechanism) * cells) + 0.5)
    if max(used) - min(used) <= 1e-12 * max(used):
        return used[0] * _laplace(mechanism, cells * len(used), miss)
    alike = miss if mechanism.scale > _FEW_STEPS else miss / len(used)
    return min(sum(used) * _laplace(mechanism, cells, alike), _chernoff_of_laplace(mechanism, cells, used, miss))


def _laplace(mechanism: Laplace, count: int, miss: float) -> float:
    """The least h with P(|sum of `count` numbers| > h) ≤ miss; a bound above it where the noise has too many steps to
    add its chances up."""
    rate = float(1 / mechanism.scale)
    if rate > 700:
        return 0.0
    wide = count / rate + 40 * math.sqrt(count) / rate + 60 / rate
    if wide > _LARGEST:
        return _many_steps(float(mechanism.scale), count, miss)
    from scipy.special import betainc, betaln

    places = np.arange(math.ceil(wide) + 1, dtype=float)
    logarithms = count * math.log(-math.expm1(-rate)) - places * rate - betaln(places + 1, count)
    masses = np.exp(logarithms - np.log(places + count))
    beyond = float(betainc(places[-1] + 1, count, math.exp(-rate)))

    def missed(reach: int) -> bool:
        """Whether |sum| > reach has more than `miss`."""
        return 2 * (float(masses @ betainc(places + reach + 1, count, math.exp(-rate))) + beyond) > miss

    low, high = -1, math.ceil(wide)
    while missed(high):
        high *= 2
        if high > 64 * wide:  # the chance is below what is left out of B
            return _chernoff_of_laplace(mechanism, count, [1.0], miss)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(middle) else (low, middle)
    return float(high)


def _many_steps(scale: float, count: int, miss: float) -> float:
    """An h with P(|sum of `count` numbers| > h) ≤ miss, where the noise has many steps.

    A discrete Laplace number is ⌊E⌋ − ⌊E′⌋ of two exponential variables, less than one step from E − E′. Of n such
    differences the sum is positive with the law of a mixture of Gamma variables: shape n − k with the weight
    C(n − 1 + k, k)/2^(n + k), for k < n.
    """
    from scipy.special import gammaincc, gammaln

    k = np.arange(count, dtype=float)
    logarithms = gammaln(count + k) - gammaln(k + 1) - gammaln(count) - (count + k) * math.log(2)
    masses = np.exp(logarithms)
    low, high = 0.0, 2.0 * count + 2 * math.log(1 / miss) + 60
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * float(masses @ gammaincc(count - k, middle)) > miss else (low, middle)
    return scale * high + count


def _chernoff_of_laplace(mechanism: Laplace, cells: int, weights: Sequence[float], miss: float) -> float:
    """E[e^(tX)] = (1 − q)²/((1 − q·e^t)(1 − q·e^(−t))) for t below 1/scale, q = e^(−1/scale)."""
    rate, largest = float(1 / mechanism.scale), max(weights)
    if rate > 700:
        return 0.0
    exponents = _exponents(rate)
    logarithm = np.zeros_like(exponents)
    for weight in weights:
        t = exponents * (weight / largest)
        logarithm += 2 * math.log(-math.expm1(-rate)) - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
    return _least(exponents, cells * logarithm, miss) * largest


def _chernoff_of_ball(mechanism: Ball, cells: int, weights: Sequence[float], miss: float) -> float:
    """E[e^(tMY)] = E[(1 − tY)^−(d + 1)] for |tY| < 1, M a Gamma variable of shape d + 1 and Y the place in the ball."""
    size, chance, largest = joint.places_in_ball(mechanism, weights)
    exponents = _exponents(1 / float(size.max()))
    t = exponents[:, None] * size[None, :]
    power = mechanism.coordinates + 1
    transform = ((1 - t) ** -power + (1 + t) ** -power) / 2 @ (chance / chance.sum())
    return _least(exponents, cells * np.log(transform), miss) * float(mechanism.scale) * largest


def _exponents(limit: float) -> Floats:
    """Exponents below a limit, closer together near both ends."""
    ends = 1 / (1 + np.exp(-np.linspace(-14.0, 10.0, _POINTS)))
    found: Floats = limit * ends
    return found


def _least(exponents: Floats, logarithms: Floats, miss: float) -> float:
    """The least of Chernoff's bounds."""
    return float(((math.log(2 / miss) + logarithms) / exponents).min())
