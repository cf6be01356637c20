"""How far a noisy number may lie from the truth: quantiles of combinations of independent noise.

Intervals speak of the noise alone. What the bounds left out is said in words beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms import Gaussian, Laplace
from discreet.trusted.ring_a.exact import figure, fraction

Floats = NDArray[np.float64]
Mechanism = Laplace | Gaussian

CONFIDENCE = 0.95


def half_width(mechanism: Mechanism, weights: Sequence[float], miss: float) -> float:
    """The least h with P(|Σ wᵢ·noiseᵢ| > h) ≤ miss, for independent noises of one mechanism."""
    used = [abs(weight) for weight in weights if weight]
    if not used:
        return 0.0
    if isinstance(mechanism, Gaussian):
        norm = math.sqrt(sum(weight**2 for weight in used))
        if len(used) == 1:
            return norm * mechanism.half_width(1 - miss)
        return -NormalDist().inv_cdf(miss / 2) * float(mechanism.sigma) * norm
    if len(used) == 1:
        return used[0] * mechanism.half_width(1 - miss)
    scales = np.array(used)[:, None] * float(mechanism.scale)
    return float(_quantile(scales, miss)[0])


def _quantile(scales: Floats, miss: float) -> Floats:
    """z with P(|Σ Laplace(scaleᵢ)| > z) = miss, for each column of scales (components × cases).

    For distinct scales b the tail is Σ Aᵢ·exp(−z/bᵢ) with Aᵢ = Π_{j≠i} bᵢ²/(bᵢ² − bⱼ²) (partial fractions of the
    characteristic function Π 1/(1 + bᵢ²t²)). Equal scales are pushed apart, upwards, by a few parts in ten thousand.
    """
    scales = np.sort(np.maximum(scales, 1e-300), axis=0)
    for index in range(1, len(scales)):
        scales[index] = np.maximum(scales[index], scales[index - 1] * 1.0004)
    squares = scales**2
    factors = np.ones_like(scales)
    for i in range(len(scales)):
        for j in range(len(scales)):
            if i != j:
                factors[i] *= squares[i] / (squares[i] - squares[j])
    low, high = np.zeros(scales.shape[1]), scales.sum(axis=0) * (math.log(1 / miss) + 4)
    for _ in range(60):
        middle = (low + high) / 2
        above = (factors * np.exp(-middle / scales)).sum(axis=0) > miss
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    result: Floats = high
    return result


@lru_cache(maxsize=64)
def _mean_quantiles(miss: float) -> tuple[Floats, Floats]:
    """For t on a grid over [0, 1], the quantile of |(1 − t)·X − t·Y| with X, Y Laplace of scale 1."""
    grid = np.linspace(0.0, 1.0, 129)
    return grid, _quantile(np.stack([1 - grid, grid]), miss)


def mean_quantile(mechanism: Mechanism, position: Floats, miss: float) -> Floats:
    """The quantile of |(1 − t)·X − t·Y| for two noises X, Y of the mechanism, at each position t in [0, 1]."""
    if isinstance(mechanism, Gaussian):
        spread = np.sqrt((1 - position) ** 2 + position**2)
        result: Floats = -NormalDist().inv_cdf(miss / 2) * float(mechanism.sigma) * spread
        return result
    grid, values = _mean_quantiles(miss)
    return np.interp(position, grid, values) * (float(mechanism.scale) if mechanism.half_width(0.999999) else 0.0)


def mean_interval(spread: Callable[[Floats], Floats], above: Floats, below: Floats) -> tuple[Floats, Floats, Floats]:
    """A mean's position t in [0, 1] and its interval, from noisy A = n·t·w and B = n·(1 − t)·w (in any one unit).

    `spread` gives c(t), the quantile of |(1 − t)·X − t·Y| at a position t, X and Y the noise of A and B. The truth
    satisfies A·(1 − t) − B·t = 0, so for the noisy ones that difference is (1 − t)·X − t·Y: the interval
    {t : |A(1 − t) − B·t| ≤ c(t)} misses the truth as often as c(t) says, whatever n is (Fieller's construction). Where
    it is everything, or the noisy count is not positive, the answer is all of [0, 1].
    """
    count = above + below
    position = np.where(count > 0, above / np.where(count > 0, count, 1.0), 0.5).clip(0.0, 1.0)

    def inside(t: Floats) -> NDArray[np.bool_]:
        return np.abs(above * (1 - t) - below * t) <= spread(t) + 1e-9 * np.abs(count)

    usable = (count > 0) & inside(position)
    ends = []
    for end in (0.0, 1.0):
        out = np.full_like(position, end)
        good = position.copy()
        whole = inside(out) | ~usable
        for _ in range(50):
            middle = (out + good) / 2
            fits = inside(middle)
            good, out = np.where(fits, middle, good), np.where(fits, out, middle)
        ends.append(np.where(whole, end, out))
    return position, ends[0], ends[1]


def three_digits(error: float) -> str:
    """An expected error, to three digits."""
    return figure(fraction(error), 3) if error < 1e300 else "any"
