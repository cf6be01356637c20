"""Junction trees: cliques that hold every factor, joined so that what two of them share lies on the path between."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

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
    """Which columns stand in a clique together: for each a mask of its neighbours and itself."""

    weights: tuple[float, ...]
    near: tuple[int, ...]

    @staticmethod
    def of(domain: Domain, cliques: Iterable[Clique]) -> Graph:
        near = [1 << place for place in range(len(domain.names))]
        graph = Graph(tuple(math.log(size) for size in domain.sizes), tuple(near))
        for clique in cliques:
            graph = graph.joined([domain.place[name] for name in clique])
        return graph

    def joined(self, places: Sequence[int]) -> Graph:
        """This graph with these columns in one clique."""
        mask = sum(1 << place for place in places)
        near = list(self.near)
        for place in places:
            near[place] |= mask
        return Graph(self.weights, tuple(near))

    def cells(self) -> int:
        """How many cells the tree would have: cliques inside others are not counted."""
        return sum(round(math.exp(self.weight(mask))) for mask in self.triangulated())

    def weight(self, mask: int) -> float:
        return sum(self.weights[place] for place in members(mask))

    def triangulated(self) -> list[int]:
        """The maximal cliques of the better of two greedy eliminations: by cells, and by edges added and then cells."""
        return min(
            (maximal(self._eliminate(by_fill)) for by_fill in (False, True)),
            key=lambda masks: sum(math.exp(self.weight(mask)) for mask in masks),
        )

    def _eliminate(self, by_fill: bool) -> list[int]:
        near, left = list(self.near), set(range(len(self.near)))
        found = []
        costs = {place: self._cost(near, place, by_fill) for place in left}
        while left:
            place = min(left, key=lambda candidate: (costs[candidate], candidate))
            mask = near[place]
            found.append(mask)
            left.remove(place)
            touched = 0
            for other in members(mask & ~(1 << place)):
                near[other] = (near[other] | mask) & ~(1 << place)
                touched |= near[other]
            for other in members(touched):
                costs[other] = self._cost(near, other, by_fill)
        return found

    def _cost(self, near: Sequence[int], place: int, by_fill: bool) -> tuple[float, float]:
        mask = near[place]
        missing = sum((mask & ~near[other]).bit_count() for other in members(mask)) if by_fill else 0
        return missing, self.weight(mask)


def members(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def maximal(masks: Iterable[int]) -> list[int]:
    found: list[int] = []
    for mask in sorted(set(masks), key=int.bit_count, reverse=True):
        if not any(mask & ~other == 0 for other in found):
            found.append(mask)
    return found
