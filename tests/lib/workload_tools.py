"""Dense linear algebra that workloads are held against, and small random workloads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from discreet.mechanisms import variance as noise_variance
from discreet.trusted.ring_c.linear_queries import Linear
from discreet.workload.items import PREFIXES, RANGES, Count, Intervals, Item, Marginal
from discreet.workload.plan import GAUSSIAN, LAPLACE, NoiseBudget


def spread(matrix: Any, columns: Sequence[int], sizes: Sequence[int]) -> Any:
    """Weights on the cells of some columns as weights on the whole domain, rows × all cells."""
    own = np.asarray(matrix, float).reshape(
        len(matrix), *(sizes[column] if column in columns else 1 for column in range(len(sizes)))
    )
    return np.broadcast_to(own, (len(matrix), *sizes)).reshape(len(matrix), -1)


def asked(items: Sequence[Item], sizes: Sequence[int]) -> list[Any]:
    """Each item's queries on the whole domain."""
    return [spread(item.matrix(), item.columns, sizes) for item in items]


def measured(one: Linear, sizes: Sequence[int]) -> tuple[Any, Any]:
    """A measurement as weights on the whole domain, and the covariance of its noise (singular for residuals)."""
    cells = math.prod(one.shape)
    variance = noise_variance(one.mechanism)
    if one.rows is not None:
        weights = np.where(one.atoms >= 0, one.rows[:, one.atoms], 0)
        return spread(weights, one.columns, sizes), np.eye(len(weights)) * variance
    if not one.residual:
        return spread(np.eye(cells), one.columns, sizes), np.eye(cells) * variance
    taken = np.ones((1, 1))
    for size in one.shape:  # subtraction of the first cell of each axis
        subtraction = np.eye(size)
        subtraction[:, 0] -= 1
        taken = np.kron(taken, subtraction)
    weights = spread(taken * one.residual, one.columns, sizes)
    return weights, taken @ taken.T * variance


def best_estimator(measurements: Sequence[Linear], sizes: Sequence[int]) -> tuple[Any, Any]:
    """Generalised least squares over the whole domain: (XᵀC⁺X)⁺ and that times XᵀC⁺, for the stacked measurements."""
    precision, right = 0.0, []
    for one in measurements:
        weights, covariance = measured(one, sizes)
        inverse = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
        precision = precision + weights.T @ inverse @ weights
        right.append(weights.T @ inverse)
    scale = float(np.abs(precision).max())
    inverse = np.linalg.pinv(precision / scale, rcond=1e-9, hermitian=True) / scale
    return inverse, inverse @ np.hstack(right)


@st.composite
def workloads(draw: st.DrawFn, most: int = 5) -> tuple[list[Item], tuple[int, ...]]:
    """A few items over up to three columns of up to five cells."""
    sizes = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    items: dict[Item, None] = {}
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["marginal", RANGES, PREFIXES, "count"]))
        if kind in (RANGES, PREFIXES):
            column = draw(st.integers(0, len(sizes) - 1))
            ordered = draw(st.integers(max(1, sizes[column] - 1), sizes[column]))
            items[Intervals((column,), (sizes[column],), ordered, kind)] = None
            continue
        columns = tuple(sorted(draw(st.sets(st.integers(0, len(sizes) - 1), max_size=len(sizes)))))
        shape = tuple(sizes[column] for column in columns)
        if kind == "marginal":
            items[Marginal(columns, shape)] = None
            continue
        masks = []
        for size in shape:
            chosen = draw(st.sets(st.integers(0, size - 1), min_size=1))
            masks.append(tuple(place in chosen for place in range(size)))
        items[Count(columns, shape, tuple(masks))] = None
    return list(items), sizes


NOISES = (
    NoiseBudget(GAUSSIAN, Fraction(1, 3), 1),
    NoiseBudget(LAPLACE, Fraction(1, 2), 1),
    NoiseBudget(GAUSSIAN, Fraction(2), 4),
    NoiseBudget(LAPLACE, Fraction(1), 3),
)
