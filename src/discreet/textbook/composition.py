"""The epsilon of each of many releases, by the book's composition theorems; rounded down.

All of them hold for releases chosen adaptively, each with an ε fixed beforehand, and bound the privacy loss itself: but
for outcomes of probability δ the logarithm of the probability ratio of all releases together is at most ε. Then they
are (ε, δ)-DP, and `accounting.Approximate(ε, δ)` is the loss: every (ε, δ)-DP pair of distributions is made by
post-processing from the pair that shows everything with probability δ and is randomised response with ε elsewhere
(Kairouz, Oh & Viswanath 2015, Theorem 2.5).

Where releases of two kinds alternate, each kind's steps satisfy its bound conditional on whatever came before, so the
same proof bounds each kind's part of the loss; the two bounds fail with probability at most δ₁ + δ₂ together, and
elsewhere the parts add up to at most ε₁ + ε₂: (ε₁ + ε₂, δ₁ + δ₂)-DP. (Interactive mechanisms side by side compose as
single releases of the same loss do: Lyu 2022; Vadhan & Zhang 2023.)
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from discreet.trusted.ring_a.exact import exp_bounds, floor, log_bounds, sqrt_ceiling
from discreet.trusted.ring_a.loss import Approximate, Pure

_DIGITS = 12


@lru_cache(maxsize=256)
def each(epsilon: Fraction, delta: Fraction, count: int) -> Fraction:
    """An ε₀ such that `count` releases, each ε₀-DP, are (ε, δ)-DP together.

    The largest of ε/count (Dwork & Roth 2014, Theorem 3.14) and, if δ > 0, Corollary 3.21 where ε < 1, ε₀ = ε/(2√(2k
    ln(1/δ))), or the solution of Theorem 3.20, √(2k ln(1/δ))·ε₀ + k·ε₀·(e^ε₀ − 1) ≤ ε, where ε is larger. Whichever it
    is has been held against Theorem 3.20 in rational numbers: the corollary fails for δ near 1.
    """
    basic = epsilon / count
    if delta == 0:
        return basic
    root = sqrt_ceiling(2 * count * log_bounds(1 / delta)[1])
    corollary = floor(epsilon / (2 * root), _DIGITS)
    if epsilon < 1 and _fits(corollary, epsilon, root, count):
        return max(basic, corollary)
    return max(basic, _solved(epsilon, root, count))


def _fits(each_epsilon: Fraction, epsilon: Fraction, root: Fraction, count: int) -> bool:
    if each_epsilon > 600:  # e^ε₀ alone is more than any ε that is written down
        return False
    return each_epsilon * (root + count * (exp_bounds(each_epsilon, 100)[1] - 1)) <= epsilon


def _solved(epsilon: Fraction, root: Fraction, count: int) -> Fraction:
    """A little less than the solution of Theorem 3.20: floating point guesses, rationals check."""
    low, high = 0.0, min(600.0, float(epsilon / root))
    for _ in range(100):
        middle = (low + high) / 2
        spent = middle * (float(root) + count * math.expm1(middle))
        low, high = (middle, high) if spent <= float(epsilon) else (low, middle)
    for exponent in (12, 9, 6, 3, 1):
        found = floor(Fraction(low) * (1 - Fraction(1, 10**exponent)), _DIGITS)
        if _fits(found, epsilon, root, count):
            return found
    return Fraction(0)


def together(epsilon: Fraction, delta: Fraction, added: Fraction) -> Pure | Approximate:
    """The loss of releases that are (ε, δ)-DP together; without the δ where their ε `added` are not above ε."""
    return Pure(epsilon) if added <= epsilon else Approximate(epsilon, delta)


def root_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """√ρ, rounded down, for the largest ρ whose ρ-zCDP implies (ε, δ)-DP by ε = ρ + 2√(ρ ln(1/δ)) (Bun & Steinke 2016,
    Proposition 1.3, which bounds the probability that the privacy loss is above ε): √ρ = √(ln(1/δ) + ε) − √ln(1/δ).
    """
    log = log_bounds(1 / delta)[1]
    return floor(epsilon / (sqrt_ceiling(log + epsilon) + sqrt_ceiling(log)))
