"""Marginals with Laplace noise: which of them to measure as histograms, and how the price is shared.

A histogram of the columns C with ε_C has a variance of about 2/ε_C² in each cell, and tells the component of every
A ⊆ C with precision ε_C²/2·|cells of A|/|cells of C|. Residuals would cost as much as whole histograms here: in ℓ1 the
unit vector of a row's cell is as short as any that differs from it by what the subtraction takes away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from discreet.workload.items import Clique, Floats, Item, Marginal, subsets
from discreet.workload.residuals import Shares, weighted

_ROUNDS = 200


def least(items: Sequence[tuple[Item, float]], sizes: Sequence[int]) -> tuple[float, Shares]:
    """A small weighted sum of mean variances at ε = 1, and the shares of ε that give it.

    Started from equal shares of all marginals that are asked, and of those that no other contains. A round multiplies
    each share by a power of how much the sum falls with it: where it stands still, all fall alike. What a round makes
    worse is not taken.
    """
    wanted = weighted(items, sizes)
    asked = tuple(dict.fromkeys(item.columns for item, _ in items if isinstance(item, Marginal)))
    if not asked:
        return 0.0, {}
    largest = _largest(asked)
    kept = tuple(columns for columns, own in wanted.items() if own > 0)
    own = np.array([wanted[columns] for columns in kept])
    best: tuple[float, Shares] = math.inf, {}
    for cliques in (asked, largest) if len(largest) < len(asked) else (asked,):
        part = _parts(kept, cliques, tuple(sizes))
        shares = np.full(len(cliques), 1 / len(cliques))
        error, step = _error(own, part, shares), 0.5
        for _ in range(_ROUNDS):
            precision = part @ shares**2
            falls = part.T @ (own / precision**2) * shares
            new = shares * (falls / float(falls.mean())) ** step
            new = np.maximum(new / new.sum(), 1e-9)
            new /= new.sum()
            changed = _error(own, part, new)
            if changed >= error * (1 - 1e-6):
                if step < 0.1:
                    break
                step /= 2
                continue
            shares, error = new, changed
        if error < best[0]:
            best = error, dict(zip(cliques, shares.tolist(), strict=True))
    return best


def precision(shares: Shares, sizes: Sequence[int]) -> dict[Clique, float]:
    """How precisely histograms with these shares of ε = 1 tell each component."""
    kept = tuple(dict.fromkeys(columns for clique in shares for columns in subsets(clique)))
    found = _parts(kept, tuple(shares), tuple(sizes)) @ np.array(list(shares.values())) ** 2
    return dict(zip(kept, found.tolist(), strict=True))


@lru_cache(maxsize=16)
def _largest(cliques: tuple[Clique, ...]) -> tuple[Clique, ...]:
    """Those that no other contains."""
    return tuple(one for one in cliques if not any(set(one) < set(other) for other in cliques))


@lru_cache(maxsize=32)
def _parts(kept: tuple[Clique, ...], cliques: tuple[Clique, ...], sizes: tuple[int, ...]) -> Floats:
    """How precisely each histogram tells each component at ε = 1."""
    found = np.zeros((len(kept), len(cliques)))
    for row, columns in enumerate(kept):
        for place, clique in enumerate(cliques):
            if set(columns) <= set(clique):
                found[row, place] = 0.5 / math.prod(sizes[column] for column in clique if column not in columns)
    return found


def _error(own: Floats, part: Floats, shares: Floats) -> float:
    return float((own / (part @ shares**2)).sum())
