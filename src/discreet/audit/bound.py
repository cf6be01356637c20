"""Confidence bounds of a mechanism's privacy loss from counts of two samples, wrong with at most a stated probability.

Clopper & Pearson (1934): if an event was seen `hits` times in `draws` independent draws, its probability is at least
the p at which so many or more hits have the chance `miss`, a quantile of a beta distribution. No approximation by a
normal distribution, which would be wrong where it matters, at chances of 1e-8. The beta functions are scipy's, whose
relative error lies far below `_SLACK`; every bound is moved by that much to the side on which it claims less.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from scipy import special

_SLACK = 1e-9
_NORMAL = NormalDist()


def at_least(hits: int, draws: int, chance: float) -> float:
    """P(Bin(draws, chance) ≥ hits), rounded up; 1 where `hits` is at most the mean, which no test here asks for."""
    if hits <= draws * chance:
        return 1.0
    if hits > draws or chance <= 0:
        return 0.0
    return min(1.0, float(special.betainc(hits, draws - hits + 1, chance)) * (1 + _SLACK))


def either_side(hits: int, draws: int, chance: float) -> float:
    """The p-value of so many hits if their true chance is `chance`: twice the tail on the side where they lie."""
    if hits > draws * chance:
        return min(1.0, 2 * at_least(hits, draws, chance))
    return min(1.0, 2 * at_least(draws - hits, draws, 1 - chance))


def lower(hits: int, draws: int, miss: float) -> float:
    """Lower Clopper-Pearson confidence bound of a probability (one-sided, error probability `miss`)."""
    return float(special.betaincinv(hits, draws - hits + 1, miss)) * (1 - _SLACK) if hits else 0.0


def upper(hits: int, draws: int, miss: float) -> float:
    """Upper Clopper-Pearson confidence bound of a probability (one-sided, error probability `miss`)."""
    return min(1.0, float(special.betainccinv(hits + 1, draws - hits, miss)) * (1 + _SLACK)) if hits < draws else 1.0


def epsilon_bound(likely: int, rare: int, draws: int, delta: float, miss: float) -> float:
    """An ε below which no (ε, delta)-DP mechanism gives these counts of one event on two neighbours, `draws` each.

    (ε, δ)-DP says P₁ ≤ e^ε·P₀ + δ. −∞ where the counts say nothing.
    """
    low, high = lower(likely, draws, miss / 2), upper(rare, draws, miss / 2)
    return math.log((low - delta) / high) if low > delta else -math.inf


def mu_bound(likely: int, rare: int, draws: int, delta: float, miss: float) -> float:
    """The same for μ: of two normal distributions a distance μ apart, no event has P₁ > Φ(Φ⁻¹(P₀) + μ).

    With the errors of a test, 1 − P₁ and P₀: μ ≥ Φ⁻¹(1 − P₀) − Φ⁻¹(1 − P₁) (Dong, Roth & Su 2019).
    """
    low, high = lower(likely, draws, miss / 2) - delta, upper(rare, draws, miss / 2)
    if low <= 0:
        return -math.inf
    return _NORMAL.inv_cdf(min(low, 1 - 1e-16)) - _NORMAL.inv_cdf(min(high, 1 - 1e-16))


def wilson(hits: int, draws: int, score: float) -> tuple[float, float]:
    """About the same interval in closed form (Wilson 1927): good enough to choose an event by, proves nothing."""
    square = score * score
    centre = (hits + square / 2) / (draws + square)
    spread = score / (draws + square) * math.sqrt(hits * (draws - hits) / draws + square / 4)
    return max(0.0, centre - spread), min(1.0, centre + spread)
