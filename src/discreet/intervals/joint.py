"""How far what is made of a joint release may lie from the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms import Ball, Gaussian
from discreet.trusted.ring_a.nodes import Axis, Part
from discreet.trusted.ring_b import jointly

Floats = NDArray[np.float64]

POINTS = 20
"""Points of the quadrature for each uniform variable."""

PLACES = 33
"""Positions of a mean at which its quantile is computed; between them it is interpolated."""


def half_width(mechanism: Ball | Gaussian, weights: Sequence[Fraction], miss: float) -> float:
    """The least h with P(|Σ wᵢ·noiseᵢ| > h) ≤ miss, nearly: the noise is taken as continuous, its steps being small."""
    return _quantile(mechanism, tuple(float(weight) for weight in weights), miss)


def spread(mechanism: Ball | Gaussian, part: Part, axis: Axis, miss: float) -> Callable[[Floats], Floats]:
    """For positions t of a mean, the quantile of |(1 − t)·X − t·Y|, X and Y the noise of Σ(x − low) and Σ(high − x)."""
    above, below = jointly.ends_of(part, axis)
    places = np.linspace(0.0, 1.0, PLACES)
    values = [
        _quantile(mechanism, tuple(float(a) * (1 - t) - float(b) * t for a, b in zip(above, below, strict=True)), miss)
        for t in places.tolist()
    ]
    return lambda t: np.interp(t, places, values)


def widest(mechanism: Ball | Gaussian, part: Part, axis: Axis, miss: float) -> float:
    """That quantile at the worst position, in steps."""
    return float(spread(mechanism, part, axis, miss)(np.linspace(0.0, 1.0, PLACES)).max())


def _quantile(mechanism: Ball | Gaussian, weights: tuple[float, ...], miss: float) -> float:
    largest = max((abs(weight) for weight in weights), default=0.0)
    if not largest:
        return 0.0
    if isinstance(mechanism, Gaussian):
        norm = math.sqrt(sum((weight / largest) ** 2 for weight in weights)) * largest
        return -NormalDist().inv_cdf(miss / 2) * float(mechanism.sigma) * norm
    used = _uniform(mechanism, weights, largest)
    return float(mechanism.scale) * largest * _ball_quantile(used, mechanism.coordinates, miss)


def _uniform(mechanism: Ball, weights: Sequence[float], largest: float) -> tuple[float, ...]:
    """The weights of independent uniform variables that a combination of a point of the ball is made of."""
    relative, place = [], 0
    for block in mechanism.blocks:  # of a diamond's point (a, s), a + s and a − s are independent and uniform
        first = weights[place] / largest
        other = weights[place + 1] / largest if block == 2 else 0.0
        relative += [first] if block == 1 else [(first + other) / 2, (first - other) / 2]
        place += block
    return tuple(sorted(round(abs(weight), 12) for weight in relative if round(abs(weight), 12)))


def places_in_ball(mechanism: Ball, weights: Sequence[float]) -> tuple[Floats, Floats, float]:
    """Where a combination of a point of the ball lies, as values with their quadrature weights, in units of the largest
    weight; and that."""
    largest = max(abs(weight) for weight in weights)
    return *_sizes(_uniform(mechanism, weights, largest)), largest


@lru_cache(maxsize=4096)
def _ball_quantile(weights: tuple[float, ...], coordinates: int, miss: float) -> float:
    """h with P(M·|Σ wᵢUᵢ| > h) = miss, M a Gamma variable of shape coordinates + 1, Uᵢ uniform on [−1, 1].

    Given Y = |Σ wᵢUᵢ| the chance is Q(x) = e^(−x)·Σ_{k ≤ d} x^k/k! at x = h/Y, smooth in the Uᵢ also where Y is 0, so
    Gauss's quadrature finds its mean. Newton's method on its logarithm, which is nearly straight in h.
    """
    size, chance = _sizes(weights)
    high = float(size.max())
    found = high * (coordinates / 2 + 1)
    for _ in range(60):
        x = found / size
        term = np.exp(-x)
        tail = term.copy()
        for k in range(1, coordinates + 1):
            term = term * x / k
            tail += term
        total = float(chance @ tail)
        slope = float(chance @ (term / size))
        move = math.log(total / miss) * total / slope
        found = max(found + min(move, 4 * high), found / 4)
        if abs(move) < 1e-10 * found:
            break
    return found


def _sizes(weights: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Values of |Σ wᵢUᵢ| and their quadrature weights; by symmetry the first variable is taken from [0, 1]."""
    nodes, masses = np.polynomial.legendre.leggauss(POINTS)
    value, chance = weights[0] * (nodes + 1) / 2, masses / 2
    for weight in weights[1:]:
        value = (value[:, None] + weight * nodes[None, :]).ravel()
        chance = (chance[:, None] * masses[None, :] / 2).ravel()
    size = np.abs(value)
    keep = size > 1e-9
    return size[keep], chance[keep]
