"""The Gaussian trade-off curve: conversions between (ε, δ), pure ε and μ, each certified on the safe side.

μ-Gaussian differential privacy (Dong, Roth & Su 2019): telling two neighbours apart is at least as hard as telling
N(0, 1) from N(μ, 1). Floating point only guesses; what is returned has passed an inequality in rationals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from discreet.trusted.ring_a.exact import exp_bounds, floor, log_bounds, normal_cdf_bounds, sqrt_ceiling

_LARGE = 600  # beyond this ε, closed-form bounds replace the search
_EXPONENTS = (12, 11, 10, 9, 8, 6, 4, 3, 2, 1)  # a guess is moved by 10^−exponent of itself until it is proved


def delta_bounds(epsilon: Fraction, mu: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle & Wang 2018, Theorem 8)."""
    bits = 160 + int(epsilon * 3 / 2)
    first_low, first_high = normal_cdf_bounds(mu / 2 - epsilon / mu, bits)
    second_low, second_high = normal_cdf_bounds(-mu / 2 - epsilon / mu, bits)
    exp_low, exp_high = exp_bounds(epsilon, 160)
    return first_low - exp_high * second_high, first_high - exp_low * second_low


@lru_cache(maxsize=1024)
def mu_of_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A μ whose μ-GDP implies (ε, δ)-DP: within 10^−9 of the largest (above ε 600, 10^−4), never above it. 0 when
    δ = 0."""
    if delta <= 0:
        return Fraction(0)
    delta = min(delta, Fraction(1, 2))
    if epsilon > _LARGE:
        z = _quantile_beyond(epsilon, delta)
        square = z * z + 2 * epsilon
        return floor(square / sqrt_ceiling(square) - z, 30)
    guess = _bisect(lambda mu: guessed_delta(float(epsilon), mu), float(delta))
    for exponent in _EXPONENTS:
        candidate = Fraction(guess) * (1 - Fraction(1, 10**exponent))
        if delta_bounds(epsilon, candidate)[1] <= delta:
            return candidate
    return Fraction(0)


def _quantile_beyond(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A z ≥ 0 such that δ(ε) ≤ δ for μ = √(z² + 2ε) − z, whatever the size of e^ε.

    With z = ε/μ − μ/2 and b = ε/μ + μ/2 = √(z² + 2ε), δ(ε) = Φ(−z) − e^ε·Φ(−b) and e^ε·φ(b) = φ(z), φ the density.
    From Φ(−b) ≥ φ(b)·b/(1 + b²) (Gordon 1941) and φ(z) ≥ Φ(−z)·(3z + √(z² + 8))/4 (Sampford 1953):
    δ(ε) ≤ Φ(−z)·(1 − (3z + √(z² + 8))/4 · b/(1 + b²)). It falls with z, as μ does. b/(1 + b²) falls with b > 1.
    """

    def guessed(z: float) -> float:
        beyond = math.sqrt(z * z + 2 * float(epsilon))
        return math.erfc(z / math.sqrt(2)) / 2 * (1 - (3 * z + math.sqrt(z * z + 8)) / 4 * beyond / (1 + beyond**2))

    simple = sqrt_ceiling(2 * max(Fraction(0), log_bounds(1 / (2 * delta))[1]))  # Φ(−z) ≤ e^(−z²/2)/2
    low, high = 0.0, float(simple)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if guessed(middle) > float(delta) else (low, middle)
    bits = 64 + delta.denominator.bit_length() - delta.numerator.bit_length()
    for exponent in _EXPONENTS:
        z = Fraction(high) + max(Fraction(1), Fraction(high)) / Fraction(10**exponent)
        beyond = sqrt_ceiling(z * z + 2 * epsilon)
        square = z * z + 8
        hazard = (3 * z + square / sqrt_ceiling(square)) / 4  # by a root that is rounded down
        if z < simple and normal_cdf_bounds(-z, bits)[1] * (1 - hazard * beyond / (1 + beyond**2)) <= delta:
            return z
    return simple


@lru_cache(maxsize=4096)
def mu_beside_pure(epsilon: Fraction, pure: Fraction, delta: Fraction) -> Fraction:
    """A μ such that what is `pure`-DP and what is μ-GDP are together (ε, δ)-DP, pure < ε: certified, rounded down.

    Randomised response, the worst of the former, has the loss e = `pure` with probability p = e^e/(1 + e^e), else −e.
    So the least δ is p·δ_μ(ε − e) + (1 − p)·δ_μ(ε + e), δ_μ that of μ alone. It rises with p, since δ_μ falls. For ε
    above 300, where it is less than δ_μ(ε − e) by the factor p and hardly more, that serves.
    """
    if pure == 0 or epsilon > _LARGE // 2:
        return mu_of_budget(epsilon - pure, delta)
    odds = exp_bounds(pure, 160)[1]
    heads = odds / (1 + odds)

    def least_delta(mu: Fraction) -> Fraction:
        return heads * delta_bounds(epsilon - pure, mu)[1] + (1 - heads) * delta_bounds(epsilon + pure, mu)[1]

    guess = _bisect(lambda mu: _beside(float(epsilon), float(pure), mu), float(delta))
    for exponent in _EXPONENTS:
        candidate = Fraction(guess) * (1 - Fraction(1, 10**exponent))
        if least_delta(candidate) <= delta:
            return candidate
    return Fraction(0)


def _beside(epsilon: float, pure: float, mu: float) -> float:
    heads = 1 / (1 + math.exp(-pure))
    return heads * guessed_delta(epsilon - pure, mu) + (1 - heads) * guessed_delta(epsilon + pure, mu)


def guessed_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of μ in floating point. It proves nothing."""
    first = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
    place = (epsilon / mu + mu / 2) / math.sqrt(2)
    if epsilon > _LARGE:  # e^ε is no float; erfc(x) ≈ e^(−x²)/(x·√π)
        return first - math.exp(min(0.0, epsilon - place * place)) / (2 * place * math.sqrt(math.pi))
    return first - math.exp(epsilon) * math.erfc(place) / 2


def _bisect(delta_of: Callable[[float], float], delta: float) -> float:
    """The μ at which δ comes up to this one, in floating point."""
    low, high = 1e-12, 1.0
    while delta_of(high) < delta:
        high *= 2
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle) < delta else (low, middle)
    return low


@lru_cache(maxsize=4096)
def mu_of_pure(epsilon: Fraction) -> Fraction:
    """A μ such that every ε-DP mechanism is μ-GDP: within 10^−9 of 2·Φ⁻¹(e^ε/(1+e^ε)), never below it.

    Randomised response dominates every ε-DP mechanism; its trade-off curve has one kink, at (1/(1+e^ε), 1/(1+e^ε)).
    The Gaussian curve with Φ(−μ/2) ≤ 1/(1+e^ε) passes at or below the kink; it meets the response's curve at (0, 1)
    and (1, 0), and is convex, so it lies below the two straight pieces everywhere (Dong, Roth & Su 2019, section 2.3).

    For ε above 600: Φ(−t) ≤ e^(−t²/2)/2 at t = √(2ε) is at most e^(−ε)/2 ≤ 1/(1+e^ε), so μ = 2√(2ε) will do.
    """
    if epsilon == 0:
        return Fraction(0)
    if epsilon > _LARGE:
        return 2 * sqrt_ceiling(2 * epsilon)
    bits = 200 + int(epsilon * 3 / 2) + max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    target = 1 / (1 + exp_bounds(epsilon, bits)[1])
    if epsilon < Fraction(1, 10**6):
        guess = float(epsilon) * math.sqrt(math.pi / 2)  # the slope at 0, and an upper bound up to O(ε³)
    else:
        guess = -2 * NormalDist().inv_cdf(1 / (1 + math.exp(float(epsilon))))
    for exponent in _EXPONENTS:
        candidate = Fraction(guess) * (1 + Fraction(1, 10**exponent))
        if normal_cdf_bounds(-candidate / 2, bits)[1] <= target:
            return candidate
    return 2 * sqrt_ceiling(2 * epsilon)
