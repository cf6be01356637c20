"""A Markov random field with its cliques' probabilities: any marginal, and rows that follow it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import QuestionError
from discreet.markov.calibrate import Floats, aligned, summed
from discreet.markov.domain import Clique, Domain
from discreet.markov.measurement import Key
from discreet.markov.rows import draw
from discreet.markov.tree import JunctionTree

LARGEST = 1 << 24


@dataclass(frozen=True, eq=False)
class MarkovRandomField:
    """A distribution over rows that is a product of factors, and how many rows there are.

    `beliefs` are the probabilities of the tree's cliques, consistent where these overlap. `potentials` are the factors'
    logarithms by what was measured: where a later fit may start.
    """

    tree: JunctionTree
    beliefs: tuple[Floats, ...]
    total: float
    potentials: Mapping[Key, Floats] = field(repr=False)

    @property
    def domain(self) -> Domain:
        return self.tree.domain

    def marginal(self, clique: Iterable[str]) -> Floats:
        """The expected counts of the clique's cells, in rows; axes in the order of the domain.

        Columns of several cliques of the tree are joined along it; QuestionError where an array on the way
        would have more than 2^24 cells.
        """
        wanted = self.domain.clique(clique)
        holder = self.tree.holder(wanted)
        if holder is not None:
            return self.total * summed(self.beliefs[holder], self.tree.cliques[holder], wanted)
        return self.total * self._joined(wanted)

    def marginals(self, cliques: Sequence[Clique]) -> list[Floats]:
        """The marginals of many cliques: arrays of expected counts in rows, each of its clique's shape."""
        return [self.marginal(clique) for clique in cliques]

    def sample(self, rows: int) -> NDArray[np.int64]:
        """So many rows that follow the distribution, a column each for the domain's columns (see `rows.draw`)."""
        return draw(self.tree, self.beliefs, rows, np.random.default_rng())

    def _joined(self, wanted: Clique) -> Floats:
        """Messages along the tree that keep the wanted columns beside the separators."""
        tree, needed = self.tree, self._needed(wanted)
        waiting: dict[int, list[tuple[Floats, Clique]]] = {place: [] for place in needed}
        for place in reversed(needed):
            clique = tree.cliques[place]
            parent = tree.parents[place]
            top = place == needed[0]
            separator = () if top else tree.separators[place]
            names = [*clique, *(n for _, other in waiting[place] for n in other if n not in clique)]
            kept = tuple(name for name in dict.fromkeys(names) if name in wanted or name in separator)
            values = self.beliefs[place] if top else self.conditional(place)
            message = _product([(values, clique), *waiting[place]], kept, self.domain)
            if top:
                return summed(message, kept, wanted)
            waiting[parent].append((message, kept))
        raise AssertionError("the tree holds every column")

    def _needed(self, wanted: Clique) -> list[int]:
        """The smallest part of the tree that holds the wanted columns, in its order."""
        tree = self.tree
        inside = set(range(len(tree.cliques)))
        links = {place: {tree.parents[place]} - {-1} for place in inside}
        for place in range(1, len(tree.cliques)):
            links[tree.parents[place]].add(place)
        shrinking = True
        while shrinking:
            shrinking = False
            for place in sorted(inside, reverse=True):
                near = links[place] & inside
                if len(near) > 1 or len(inside) == 1:
                    continue
                only = set(tree.cliques[place]) & set(wanted)
                if not near or only <= set(tree.cliques[next(iter(near))]):
                    if not near and only:
                        continue
                    inside.remove(place)
                    shrinking = True
        return sorted(inside)

    def conditional(self, place: int) -> Floats:
        """A clique's probabilities given what it shares with its parent; 0 where that is impossible."""
        return self._conditionals[place]

    @cached_property
    def _conditionals(self) -> list[Floats]:
        found = []
        for belief, clique, separator in zip(self.beliefs, self.tree.cliques, self.tree.separators, strict=True):
            below = aligned(summed(belief, clique, separator), separator, clique)
            found.append(np.divide(belief, below, out=np.zeros_like(belief), where=below > 0))
        return found


def _product(parts: Sequence[tuple[Floats, Clique]], kept: Clique, domain: Domain) -> Floats:
    """The product of arrays on cliques, summed over what is not kept, one array after the other."""
    values, names = parts[0]
    rest = list(parts[1:])
    while rest:
        other, other_names = rest.pop(0)
        later = {name for _, clique in rest for name in clique}
        result = tuple(n for n in dict.fromkeys([*names, *other_names]) if n in kept or n in later)
        if domain.cells(result) > LARGEST:
            raise QuestionError(
                "marginal",
                f"an intermediate array of {domain.cells(result):,} cells is too large",
                fix="ask for fewer columns",
            )
        letters = {name: chr(97 + place) for place, name in enumerate(dict.fromkeys([*names, *other_names]))}
        one, two, out = ("".join(letters[name] for name in axes) for axes in (names, other_names, result))
        values = np.einsum(f"{one},{two}->{out}", values, other, optimize=True)
        names = result
    return summed(values, names, kept)
