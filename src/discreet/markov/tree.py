"""Junction trees: cliques that contain every factor, with the running intersection property."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from discreet.markov.domain import Clique, Domain


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each stands after its parent; −1 is the parent of the first.

    Columns of a clique stand from the fewest cells to the most: inner loops are long then. A clique and its parent may
    share nothing; then they are independent.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    @cached_property
    def cells(self) -> int:
        """How many numbers calibration holds."""
        return sum(map(self.domain.cells, self.cliques))

    @property
    def largest(self) -> Clique:
        """The clique with the most cells."""
        return max(self.cliques, key=lambda clique: self.domain.cells(clique))

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """What each clique shares with its parent, in the clique's order."""
        return tuple(
            tuple(name for name in clique if parent >= 0 and name in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    def holder(self, clique: Iterable[str]) -> int | None:
        """The smallest clique of the tree with all these columns."""
        wanted = set(clique)
        holders = [place for place, other in enumerate(self.cliques) if wanted.issubset(other)]
        return min(holders, key=lambda place: self.domain.cells(self.cliques[place]), default=None)


def junction_tree(domain: Domain, cliques: Iterable[Clique]) -> JunctionTree:
    """A tree with a clique around each of these and around each column.

    The maximal cliques of a triangulation, which `eliminate` finds, joined by a spanning tree with the most columns
    shared, which has the running intersection property (Jensen & Jensen 1994, Theorem 1).
    """
    graph = Graph.of(domain, cliques)
    found = [
        tuple(sorted((domain.names[place] for place in members(mask)), key=lambda name: (domain.size(name), name)))
        for mask in graph.triangulated()
    ]
    found.sort(key=domain.cells, reverse=True)
    order, parents = [found[0]], [-1]
    best = {clique: (len(set(clique) & set(found[0])), 0) for clique in found[1:]}
    while best:
        nearest = max(best, key=lambda clique: best[clique][0])
        parents.append(best.pop(nearest)[1])
        order.append(nearest)
        for clique, (shared, _) in best.items():
            common = len(set(clique) & set(nearest))
            if common > shared:
                best[clique] = common, len(order) - 1
    return JunctionTree(domain, tuple(order), tuple(parents))


@dataclass(frozen=True)
class Graph:
    """Which columns stand in a clique together: for each a mask of its neighbours and itself.

    `sizes` keeps the number of cells of every set of columns that was looked at, for this graph and those made of it:
    many thousands of graphs are tried, and they look at the same sets.
    """

    domain: Domain
    near: tuple[int, ...]
    sizes: dict[int, int] = field(compare=False, repr=False)

    @staticmethod
    def of(domain: Domain, cliques: Iterable[Clique]) -> Graph:
        """The graph in which the columns of each of these cliques stand together."""
        graph = Graph(domain, tuple(1 << place for place in range(len(domain.names))), {})
        for clique in cliques:
            graph = graph.joined(clique)
        return graph

    def mask(self, clique: Clique) -> int:
        """The columns as bits, by their places in the domain."""
        return sum(1 << self.domain.place[name] for name in clique)

    def joined(self, clique: Clique) -> Graph:
        """This graph with these columns in one clique."""
        mask, near = self.mask(clique), list(self.near)
        for name in clique:
            near[self.domain.place[name]] |= mask
        return Graph(self.domain, tuple(near), self.sizes)

    def size(self, mask: int) -> int:
        """The number of cells of a set of columns."""
        found = self.sizes.get(mask)
        if found is None:
            found = self.sizes[mask] = math.prod(self.domain.sizes[place] for place in members(mask))
        return found

    def cells(self, masks: Iterable[int]) -> int:
        """How many cells several sets of columns have, added up."""
        return sum(map(self.size, masks))

    def triangulated(self) -> list[int]:
        """The maximal cliques of the better of two greedy eliminations: by cells, and by edges added and then cells."""
        return min(self.by_cells(), self.by_fill(), key=self.cells)

    def by_cells(self) -> list[int]:
        """The maximal cliques when the column whose neighbourhood has the fewest cells is eliminated next."""
        size, known = self.size, self.sizes
        return maximal(self._eliminate(lambda near, place: known.get(near[place]) or size(near[place])))

    def by_fill(self) -> list[int]:
        """The maximal cliques when the column that adds the fewest edges, and then cells, is eliminated next."""

        def cost(near: Sequence[int], place: int) -> tuple[int, int]:
            mask = near[place]
            return sum((mask & ~near[other]).bit_count() for other in members(mask)), self.size(mask)

        return maximal(self._eliminate(cost))

    def _eliminate(self, cost: Callable[[Sequence[int], int], Any]) -> list[int]:
        near, left = list(self.near), (1 << len(self.near)) - 1
        found = []
        costs = {place: (cost(near, place), place) for place in range(len(near))}
        while left:
            _, place = min(costs.values())
            mask = near[place]
            found.append(mask)
            left &= ~(1 << place)
            del costs[place]
            around = members(mask & left)
            for other in around:
                near[other] = (near[other] | mask) & left
            touched = 0
            for other in around:
                touched |= near[other]
            for other in members(touched):
                costs[other] = (cost(near, other), other)
        return found


def members(mask: int) -> list[int]:
    """The places of the bits that are set, in ascending order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def maximal(masks: Iterable[int]) -> list[int]:
    """The masks that are contained in no other. A superset contains the lowest bit: only those that do are compared."""
    found: list[int] = []
    holding: dict[int, list[int]] = {}
    for mask in sorted(set(masks), key=int.bit_count, reverse=True):
        if not any(mask & ~other == 0 for other in holding.get((mask & -mask).bit_length() - 1, ())):
            found.append(mask)
            for place in members(mask):
                holding.setdefault(place, []).append(mask)
    return found
