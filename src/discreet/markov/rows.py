"""Draws rows from a Markov random field, with less variance than independent draws.

Columns are drawn clique by clique down the tree. The rows that agree in what a clique shares with its parent are a
group; the g rows of a group get the values at (k + U)/g of the distribution that the model gives it, k = 0, …, g − 1
and U uniform: so each count is its expectation rounded up or down, nearly (systematic sampling; Madow & Madow 1944).

Which row gets which k is what makes columns depend on each other, or not: given the group, the new values must not
depend on the other columns. The rows of a group are sorted by those, and row i gets the rank of (i·φ + V) mod 1, φ the
golden ratio: any run of neighbours, which is where other columns agree, then gets values spread evenly over the
distribution (Niederreiter 1992, Theorem 3.3). So pairs of columns that no clique holds together scatter less too. To
take k in the order of the rows would tie columns together that the model holds independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.markov.tree import JunctionTree

GOLDEN = (5**0.5 - 1) / 2
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def draw(tree: JunctionTree, beliefs: Sequence[Floats], rows: int, generator: np.random.Generator) -> Integers:
    """`rows` rows, one column of the result for each column of the domain."""
    domain = tree.domain
    table = np.zeros((rows, len(domain.names)), np.int64, order="F")
    if not rows:
        return table
    sorting = np.zeros(rows)
    for clique, separator, belief in zip(tree.cliques, tree.separators, beliefs, strict=True):
        new = tuple(name for name in clique if name not in separator)
        axes = [clique.index(name) for name in (*separator, *new)]
        given = belief.transpose(axes).reshape(domain.cells(separator), domain.cells(new))
        groups = np.zeros(rows, np.int64)
        for name in separator:
            groups = groups * domain.size(name) + table[:, domain.place[name]]
        drawn = _drawn(given, groups, np.argsort(groups + sorting), generator)
        for name, column in zip(new, np.unravel_index(drawn, domain.shape(new)), strict=True):
            table[:, domain.place[name]] = column
        sorting = _mixed(sorting, drawn, given.shape[1], generator)
    order = generator.permutation(rows)
    for column in table.T:
        column[:] = column[order]
    return table


def _mixed(sorting: Floats, drawn: Integers, cells: int, generator: np.random.Generator) -> Floats:
    """A key from 0 to 1 for sorting rows in which the columns drawn last come first, and those before break ties.

    The values take a random order, since near values of one column are no reason to stand together.
    """
    keys = generator.permutation(cells)[drawn] + 0.999 * sorting
    return keys / cells


def _drawn(given: Floats, groups: Integers, order: Integers, generator: np.random.Generator) -> Integers:
    """A cell for each row from its group's line of `given`; `order` sorts the rows by group."""
    present, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(present)), sizes)
    place = np.arange(len(groups)) - starts[group]
    spread = (place * GOLDEN + generator.random(len(present))[group]) % 1.0
    rank = np.empty(len(groups), np.int64)
    rank[np.argsort(group + spread)] = place
    points = (rank + generator.random(len(present))[group]) / sizes[group]
    sums = given[present].cumsum(1)
    sums /= sums[:, -1:]
    found = np.searchsorted((sums + np.arange(len(present))[:, None]).ravel(), points + group, side="right")
    drawn = np.empty(len(groups), np.int64)
    drawn[order] = np.minimum(found - group * given.shape[1], given.shape[1] - 1)
    return drawn
