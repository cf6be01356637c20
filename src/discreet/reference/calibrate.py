"""Noise calibration of declared batches for a budget; rounded so that the result always keeps the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import Number, ceiling, floor, fraction, sqrt_ceiling
from discreet.trusted.ring_b.further_losses import LaplaceLoss, SubsampledGaussian
from discreet.trusted.ring_c.batch import Composition, compose

_DIGITS = 8
_CLOSE, _NEAR = 4e-6, 1e-3
_ROUNDS = 24


def gaussian_sigma(epsilon: Number, delta: Number, count: int = 1, sensitivity: Number = 1) -> Fraction:
    """The deviation of the noise with which `count` vectors of this ℓ2 sensitivity together are (ε, δ)-DP, rounded
    up.

    count releases of μ = sensitivity/σ are (√count·μ)-GDP; the budget's μ is certified and at most 10^−9 too small.
    """
    mu = mu_of_budget(*_budget(epsilon, delta))
    if mu == 0:
        raise ValueError("Gaussian noise needs a delta")
    return ceiling(fraction(sensitivity) * sqrt_ceiling(Fraction(count)) / mu, 12)


def laplace_epsilon(epsilon: Number, delta: Number, count: int) -> Fraction:
    """The ε of each of `count` Laplace releases, declared together, which are (ε, δ)-DP in all; rounded down.

    Never below ε/count, which needs no δ; else within 4·10^−6 of the largest that the batch's upper bound admits.
    """
    total, least = _budget(epsilon, delta)
    basic = floor(total / count, _DIGITS)
    if count == 1 and least == 0:
        return total
    start = max(float(basic), min(float(total), math.sqrt(float(mu_of_budget(total, least)) ** 2 / count)))
    found = _search(lambda each: compose({LaplaceLoss(each): count}).epsilon(least), float(total), start, floor, 1.0)
    return max(basic, found.value or basic)


def subsampled_sigma(epsilon: Number, delta: Number, rate: Number, steps: int) -> Fraction:
    """The noise multiplier with which a run of the subsampled Gaussian is (ε, δ)-DP, rounded up."""
    total, least = _budget(epsilon, delta)
    whole = float(gaussian_sigma(total, least, steps))

    def run(sigma: Fraction) -> Composition:
        return compose([SubsampledGaussian(sigma, rate, steps)])

    start = max(0.6, whole * float(fraction(rate)))
    near = _search(lambda sigma: run(sigma).rough_epsilon(least), float(total), start, ceiling, -1.0, _NEAR)
    start = float(near.value or start)
    found = _search(lambda sigma: run(sigma).epsilon(least), float(total), start, ceiling, -near.rate)
    return found.value or ceiling(fraction(whole) * (1 + Fraction(1, 10**9)), _DIGITS)


def _budget(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    total, least = fraction(epsilon), fraction(delta)
    if total <= 0 or not 0 <= least < 1:
        raise ValueError("a budget needs epsilon > 0 and 0 <= delta < 1")
    return total, least


@dataclass(frozen=True)
class _Found:
    """The best value that fits, if any, and how fast ln(spent) changes with ln(value), without its sign."""

    value: Fraction | None
    rate: float


def _search(
    spent: Callable[[Fraction], float],
    total: float,
    start: float,
    rounded: Callable[..., Fraction],
    slope: float,
    close: float = _CLOSE,
) -> _Found:
    """A value with total·(1 − close) ≤ spent(value) ≤ total: secants between logarithms, kept inside what is
    known.

    `slope` has the sign of the dependence, and is the first guess of it.
    """
    total = math.nextafter(total, 0.0)  # it was rounded to nearest
    best: Fraction | None = None
    inside, outside = -math.inf, math.inf  # ln of values that fit and that do not, turned so that spent rises
    sign = math.copysign(1.0, slope)
    place, last = sign * math.log(start), None
    rate = abs(slope)
    for _ in range(_ROUNDS):
        value = rounded(Fraction(math.exp(sign * place)), _DIGITS)
        cost = spent(value)
        if cost <= total:
            inside, best = place, value
            if cost >= total * (1 - close):
                break
        else:
            outside = place
        if math.isinf(cost) or cost == 0:
            place += math.log(2) if cost == 0 else -math.log(2)
            if not inside < place < outside:
                place = (inside + outside) / 2
            continue
        height = math.log(cost / total)
        if last is not None and last[0] != place and last[1] != height:
            rate = min(40.0, max(0.25, (height - last[1]) / (place - last[0])))
        last = (place, height)
        place -= (height + close / 2) / rate
        if not inside < place < outside:
            place = (inside + outside) / 2
        if not math.isfinite(place):
            break
    return _Found(best, rate)
