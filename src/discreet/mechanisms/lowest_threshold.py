"""The lowest threshold at a price. No promise rests on it: one that is too low is refused when it is made
(`trusted.ring_a.threshold`), and a higher one shows fewer groups."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.exact import sqrt_ceiling
from discreet.trusted.ring_a.threshold import Threshold, tail


def laplace_threshold(epsilon: Fraction, delta: Fraction, cells: int) -> Threshold:
    """The lowest threshold that is (epsilon, delta)-DP when a person touches at most `cells` groups.

    delta/cells is compared with an upper bound of q^j/(1 + q) in rationals, so the threshold is never too low.
    """
    if not 0 < delta < 1:
        raise ValueError("a threshold needs 0 < delta < 1")
    return _lowest(Laplace(cells / epsilon), delta, cells)


def gaussian_threshold(mu_squared: Fraction, delta: Fraction, cells: int) -> Threshold:
    """The lowest threshold that is μ-GDP but for a probability of delta, when a person touches at most `cells` groups.

    delta/cells is compared with an upper bound of Φ(−(j − 1/2)/sigma) in rationals; threshold = j + 1.
    """
    if not 0 < delta < 1 or mu_squared <= 0:
        raise ValueError("a threshold needs 0 < delta < 1 and mu > 0")
    return _lowest(Gaussian(sqrt_ceiling(cells / mu_squared)), delta, cells)


def _lowest(noise: Laplace | Gaussian, delta: Fraction, cells: int) -> Threshold:
    share = delta / cells
    return Threshold(noise, _least(lambda j: tail(noise, j, share) <= share) + 1, cells, delta)


def _least(safe: Callable[[int], bool]) -> int:
    """The least j ≥ 1 that is safe: what is bounded falls as j grows."""
    low, high = 0, 1  # the least safe j lies in (low, high]
    while not safe(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if safe(middle) else (middle, high)
    return high
