"""Bit strings played to a sampler one by one, a seeded source, and exact probabilities to compare with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

import mpmath
import numpy as np
from scipy import stats

DIGITS = 80


class Branch(Exception):
    """The tape ended where so many more bits were wanted."""


class Tape:
    """Plays the integers of one tape to draws of size 1."""

    def __init__(self, tape: tuple[int, ...]) -> None:
        self.tape, self.place = tape, 0

    def big(self, bits: int) -> int:
        if bits == 0:
            return 0
        if self.place == len(self.tape):
            raise Branch(bits)
        self.place += 1
        return self.tape[self.place - 1]

    def integers(self, bits: int, size: int) -> np.ndarray:
        assert size <= 1
        return np.array([self.big(bits) for _ in range(size)], np.uint16 if bits <= 16 else np.uint64)


def every_outcome(run: Callable[[Tape], Hashable]) -> dict[Hashable, Fraction]:
    """The exact distribution of `run` over all bit strings it can ask for."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    open_tapes: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while open_tapes:
        tape, length = open_tapes.pop()
        try:
            outcome = run(Tape(tape))
        except Branch as branch:
            (bits,) = branch.args
            open_tapes += [((*tape, value), length + bits) for value in range(1 << bits)]
        else:
            found[outcome] += Fraction(1, 1 << length)
    assert sum(found.values()) == 1
    return dict(found)


class SeededWords:
    """The same words every time."""

    def __init__(self, seed: int) -> None:
        self.source = np.random.Generator(np.random.PCG64(seed))

    def integers(self, bits: int, size: int) -> np.ndarray:
        kind = np.uint16 if bits <= 16 else np.uint64
        return self.source.integers(0, 1 << bits, size, dtype=kind) if bits else np.zeros(size, kind)

    def big(self, bits: int) -> int:
        return int.from_bytes(self.source.bytes((bits + 7) // 8), "little") >> (-bits % 8)


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
