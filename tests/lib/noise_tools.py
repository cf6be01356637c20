"""Exact probabilities to compare a sampler with."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
from scipy import stats

DIGITS = 80


def real(value: Fraction | int) -> mpmath.mpf:
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def laplace_pmf(x: int, scale: Fraction) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        q = mpmath.exp(-1 / real(scale))
        return (1 - q) / (1 + q) * q ** abs(x)


def gaussian_pmf(k: int, sigma: Fraction) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        root = real(sigma) * mpmath.sqrt(2)
        near, far = (abs(k) - mpmath.mpf(1) / 2) / root, (abs(k) + mpmath.mpf(1) / 2) / root
        return (mpmath.erfc(near) - mpmath.erfc(far)) / 2


def laplace_cdf(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    """P(X ≤ x) of the discrete Laplace distribution at integers."""
    both = 1 + np.exp(-1 / scale)

    def cdf(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, np.exp(-np.abs(x) / scale), both - np.exp(-(np.abs(x) + 1) / scale)) / both

    return cdf


def gaussian_cdf(sigma: float) -> Callable[[np.ndarray], np.ndarray]:
    """P(X ≤ x) of the rounded Gaussian distribution at integers."""
    return lambda x: stats.norm.cdf((x + 0.5) / sigma)


def fit(values: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray], width: float) -> float:
    """The p-value of a chi-square test: classes of width/5, and a hundred values expected in either tail."""
    edges = np.arange(-40, 41) * float(max(1, int(width / 5)))
    below = cdf(edges)
    edges = edges[np.minimum(below, 1 - below) * len(values) >= 100]
    expected = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]])) * len(values)
    observed = np.bincount(np.searchsorted(edges, values.astype(float), side="left"), minlength=len(edges) + 1)
    assert expected.min() > 10
    return float(stats.chisquare(observed, expected * len(values) / expected.sum()).pvalue)
