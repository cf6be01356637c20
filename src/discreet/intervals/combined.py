"""Intervals of weighted sums of independent noises of different mechanisms.

A number that was measured several times is told most precisely by a weighted mean; its error is the weighted sum of the
measurements' noises. What is said of it is a quantile of that sum's law, not of a variance: the laws are put on a grid,
convolved, and added up from outside. Everything that is left out or rounded makes the interval wider:

* a noise is moved to the next point of the grid, by at most half a step: half a step for each noise is added;
* what lies beyond the grid counts as missed: of each noise, what its law has there; of the sum, at most
  2·E[exp(θZ)]·exp(−θR) for the end R of the grid (Chernoff's bound), computed from the masses themselves;
* places in a ball are put together in classes, each with its largest.

Where so few may be missed that what is left out would be more, each noise has its part of the misses for itself, and
its own bound (the union bound).

Laws of single numbers are those that `noise` and `joint` have: exact on the integers for one discrete Laplace or
rounded Gaussian number; that of a point of a ball taken as continuous, its steps being small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.intervals import joint
from discreet.intervals.sums import Summed
from discreet.mechanisms import Ball, Gaussian, Laplace, variance

Floats = NDArray[np.float64]
Single = Laplace | Gaussian | Ball
Term = tuple[Single | Summed, tuple[Fraction, ...]]
"""A mechanism, and the weights of its numbers in the sum."""

POINTS = 4096
"""Of the grid."""

MOST_CELLS = 16
"""No more cells are added up for one term: each moves the end by half a step, and tells little."""

_CLASSES = 64
_TINY = 1e-9

_FEWEST = 100 * _TINY
"""With fewer misses nothing is told from a grid."""


@dataclass(frozen=True)
class Combined:
    """The noise of a weighted sum of independent noisy numbers. Nothing draws it: it says how numbers that were drawn
    are spread once they are put together."""

    terms: tuple[Term, ...]

    def describe(self) -> str:
        kinds = [noise.describe() for noise, _ in self.terms]
        return f"weighted mean of {len(kinds)} measurements: {'; '.join(kinds)}"


def half_width(noise: Combined, miss: float) -> float:
    """An h with P(|Σ terms| > h) ≤ miss."""
    return _quantile(noise.terms, miss)


@dataclass(frozen=True)
class _Noise:
    """`cells` independent noises of one law, each with the same weights."""

    of: Single
    weights: tuple[float, ...]
    cells: int


def _noises(terms: tuple[Term, ...]) -> list[tuple[Single, tuple[float, ...], int]]:
    """The independent noises of a sum: of a ball one point, of the others one number each."""
    found: list[tuple[Single, tuple[float, ...], int]] = []
    for noise, weights in terms:
        of, cells = (noise.of, noise.cells) if isinstance(noise, Summed) else (noise, 1)
        used = tuple(float(weight) for weight in weights)
        if isinstance(of, Ball):
            found += [(of, used, cells)] if any(used) else []
        else:
            found += [(of, (abs(weight),), cells) for weight in used if weight]
    return found


def _variance(noise: _Noise) -> float:
    if isinstance(noise.of, Ball):
        size, chance, largest = joint.places_in_ball(noise.of, noise.weights)
        power = noise.of.coordinates + 1
        spread = (float(noise.of.scale) * largest) ** 2
        return noise.cells * spread * power * (power + 1) * float(chance @ size**2 / chance.sum())
    return noise.cells * float(noise.weights[0]) ** 2 * variance(noise.of)


@lru_cache(maxsize=4096)
def _quantile(terms: tuple[Term, ...], miss: float) -> float:
    noises = [_Noise(*one) for one in _noises(terms)]
    spread = math.sqrt(sum(_variance(one) for one in noises))
    if not spread:
        return 0.0
    if miss < _FEWEST:
        return sum(one.cells * _alone(one, miss / sum(each.cells for each in noises)) for one in noises)
    reach = spread * (4 + 1.5 * math.log(1 / miss))
    while True:
        found = _on_grid(noises, reach, spread, miss)
        if found is not None:
            return found
        reach *= 2


def _alone(noise: _Noise, miss: float) -> float:
    """An h with P(|weighted noise| > h) ≤ miss of one cell."""
    tail, reach = _tail(noise), math.sqrt(_variance(replace(noise, cells=1)))
    while float(tail(np.asarray([reach]))[0]) > miss:
        reach *= 1.05
    return reach


def _on_grid(noises: list[_Noise], reach: float, spread: float, miss: float) -> float | None:
    """The quantile from a grid that ends at ±`reach`; None where too much lies beyond."""
    step = 2 * reach / POINTS
    edges: Floats = np.asarray((np.arange(POINTS // 2) + 0.5) * step, dtype=np.float64)
    places = np.arange(-POINTS // 2, POINTS // 2) * step
    transform = np.ones(POINTS // 2 + 1, dtype=complex)
    beyond, moved = 0.0, 0.0
    exponents = np.array([0.5, 1.0, 1.3, 2.0]) / spread
    logarithm = np.zeros_like(exponents)
    for one in noises:
        tails = _tail(one)(edges)
        side = np.concatenate([[1 - tails[0]], (tails[:-1] - tails[1:]) / 2])  # at 0, and at each point above
        masses = np.concatenate([[0.0], side[:0:-1], side])
        transform *= np.fft.rfft(np.fft.ifftshift(masses)) ** one.cells
        logarithm += one.cells * np.log(np.exp(np.minimum(exponents[:, None] * places, 600)) @ masses)
        beyond += one.cells * float(tails[-1])
        moved += one.cells * step / 2
    wrapped = float(np.exp(np.minimum(logarithm - exponents * reach, 0)).min()) * 2
    lost = beyond + wrapped + _TINY
    if lost > miss / 50:
        return None
    law = np.fft.fftshift(np.fft.irfft(transform, POINTS)).clip(0)
    both = law[POINTS // 2 :].copy()
    both[1:] *= 2
    outside = np.concatenate([np.cumsum(both[::-1])[::-1][1:], [0.0]])  # what lies above each point, on both sides
    return float(np.argmax(outside + lost <= miss)) * step + moved


def _tail(noise: _Noise) -> Callable[[Floats], Floats]:
    """x → P(|weighted noise| > x) of one cell, for x > 0."""
    of = noise.of
    if isinstance(of, Ball):
        return _tail_of_ball(of, noise.weights)
    weight = float(noise.weights[0])
    if isinstance(of, Gaussian):
        sigma = float(of.sigma) * math.sqrt(2)
        from scipy.special import erfc

        return lambda x: np.asarray(erfc((np.floor(x / weight) + 0.5) / sigma) if sigma else 0 * x)
    rate = float(1 / of.scale)
    if rate > 700:
        return lambda x: 0 * x
    return lambda x: 2 * np.exp(-rate * (np.floor(x / weight) + 1)) / (1 + math.exp(-rate))


def _tail_of_ball(ball: Ball, weights: tuple[float, ...]) -> Callable[[Floats], Floats]:
    """Given Y, the place in the ball, P(M·|Y| > x) = e^(−u)·Σ_{k ≤ d} u^k/k! at u = x/|Y|."""
    size, chance, largest = joint.places_in_ball(ball, weights)
    ends = np.linspace(0, float(size.max()), _CLASSES + 1)[1:]
    of = np.minimum(np.searchsorted(ends, size), _CLASSES - 1)
    shares = np.bincount(of, chance / chance.sum(), _CLASSES)
    unit = float(ball.scale) * largest

    def tail(x: Floats) -> Floats:
        u = np.asarray(x)[:, None] / (unit * ends[None, :])
        term = np.exp(-u)
        total = term.copy()
        for k in range(1, ball.coordinates + 1):
            term = term * u / k
            total += term
        return np.asarray(total @ shares)

    return tail
