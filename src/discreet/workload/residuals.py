"""Marginals with Gaussian noise: the least variance, in closed form (ResidualPlanner, Xiao et al. 2023).

A residual of the columns A with precision s_A costs s_A·p_A of μ², p_A = ∏(1 − 1/n). The weighted sum of the answers'
variances is Σ v_A/s_A with v_A = Σ weight·‖f_A‖², so by Cauchy and Schwarz the least sum at Σ s_A·p_A = 1 is
(Σ √(v_A·p_A))², where s_A·p_A ∝ √(v_A·p_A). No other measurement with Gaussian noise gives marginals a smaller one: a
workload of marginals looks the same when the values of a column are renamed, and then so does the best one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from discreet.workload.items import Clique, Intervals, Item, Marginal, component, subsets

Shares = dict[Clique, float]
"""What each measurement of cells takes of the price."""


def weighted(items: Sequence[tuple[Item, float]], sizes: Sequence[int]) -> dict[Clique, float]:
    """v_A: for each set of columns the sum over weighted items of the mean ‖f_A‖² of their queries."""
    found: dict[Clique, float] = {}
    for item, weight in items:
        for kept in subsets(item.columns):
            if all(sizes[column] > 1 for column in kept):
                found[kept] = found.get(kept, 0.0) + weight * _mean_square(item, kept, sizes)
    return found


def _mean_square(item: Item, kept: Clique, sizes: Sequence[int]) -> float:
    if isinstance(item, Marginal):
        inside = math.prod(1 - 1 / sizes[column] for column in kept)
        return inside / math.prod(sizes[column] ** 2 for column in item.columns if column not in kept)
    if isinstance(item, Intervals):
        gram, cells = item.gram(), item.shape[0]
        whole = float(gram.sum()) / cells
        return (float(np.trace(gram)) - whole if kept else whole / cells) / item.queries
    part = component(item.matrix().astype(float).reshape(1, *item.shape), item.columns, kept)
    return float((part * part).sum())


def cost(columns: Clique, sizes: Sequence[int]) -> float:
    """p_A."""
    return math.prod(1 - 1 / sizes[column] for column in columns)


def least(items: Sequence[tuple[Item, float]], sizes: Sequence[int]) -> tuple[float, Shares]:
    """The least weighted sum of mean variances at μ = 1, and the shares of μ² that give it."""
    roots = {kept: math.sqrt(own * cost(kept, sizes)) for kept, own in weighted(items, sizes).items()}
    total = sum(roots.values())
    return total**2, {kept: root / total for kept, root in roots.items() if root > 0}


def means(items: Sequence[Item], precision: Mapping[Clique, float], sizes: Sequence[int]) -> list[float]:
    """The mean variance of each item's answers, when components are known so precisely."""
    return [
        sum(square / precision[kept] for kept, square in weighted([(item, 1.0)], sizes).items() if square > 0)
        for item in items
    ]


def of_histograms(shares: Mapping[Clique, float], sizes: Sequence[int]) -> Shares:
    """Residuals that together tell what histograms with these shares tell, at the same price."""
    found: Shares = {}
    for columns, share in shares.items():
        for kept in subsets(columns):
            if all(sizes[column] > 1 for column in kept):
                over = math.prod(sizes[column] for column in columns if column not in kept)
                found[kept] = found.get(kept, 0.0) + share * cost(kept, sizes) / over
    return found
