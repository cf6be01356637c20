"""Truths to compare with, at sixty digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath

mpmath.mp.dps = 60


def real(value: Fraction | int | str) -> mpmath.mpf:
    exact = Fraction(value)
    return mpmath.mpf(exact.numerator) / exact.denominator


def delta_of(epsilon: Fraction | str, mu: mpmath.mpf) -> mpmath.mpf:
    """The δ at which μ-GDP implies (ε, δ)."""
    first, second = mu / 2 - real(epsilon) / mu, -mu / 2 - real(epsilon) / mu
    return mpmath.ncdf(first) - mpmath.exp(real(epsilon)) * mpmath.ncdf(second)


def best_mu(epsilon: Fraction | str, delta: Fraction | str) -> mpmath.mpf:
    """The largest μ that implies (ε, δ), by halving."""
    low, high = mpmath.mpf("1e-30"), mpmath.mpf(1)
    while delta_of(epsilon, high) < real(delta):
        high *= 2
    for _ in range(230):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(epsilon, middle) < real(delta) else (low, middle)
    return low


def pure_mu(epsilon: Fraction | str) -> mpmath.mpf:
    """2·Φ⁻¹(e^ε/(1 + e^ε)), by halving."""
    target = 1 / (1 + mpmath.exp(real(epsilon)))
    low, high = mpmath.mpf(0), mpmath.mpf(100)
    for _ in range(230):
        middle = (low + high) / 2
        low, high = (middle, high) if mpmath.ncdf(-middle / 2) > target else (low, middle)
    return high
