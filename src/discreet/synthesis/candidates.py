"""Candidate marginals: which fit into the model, their predicted counts and their weights. Reads no private data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.markov import Clique, Domain, MarkovRandomField
from discreet.markov.tree import Graph, members

Integers = NDArray[np.int64]

ROWS = 20_000
PENALTY = 0.5
"""The part of a measurement's noise that is counted against it: the fit removes the rest. By trial on public tables."""
MEAN_SIZE = math.sqrt(2 / math.pi)
"""E|Z| of a standard normal Z."""


def weights(domain: Domain, candidates: Sequence[Clique], workload: Sequence[Clique]) -> list[int]:
    """Σ_s |r ∩ s| over the workload's s, for each candidate r, as in AIM (McKenna et al. 2022)."""
    often = dict.fromkeys(domain.names, 0)
    for clique in workload:
        for name in clique:
            often[name] += 1
    return [max(1, sum(often[name] for name in candidate)) for candidate in candidates]


def expected_noise(cells: int, sigma: float) -> float:
    """E‖noise‖₁ of a marginal, in rows."""
    return MEAN_SIZE * sigma * cells


@dataclass
class Room:
    """How many cells the junction tree would need with one more clique."""

    domain: Domain
    graph: Graph
    needed: dict[Clique, int] = field(default_factory=dict)

    def add(self, clique: Clique) -> None:
        """Takes a clique into the graph: what others need is counted beside it from now on."""
        self.graph = self.graph.joined(clique)

    def apart(self, pairs: Sequence[Clique]) -> list[int]:
        """The places of the pairs of columns between which there is no path."""
        group = list(range(len(self.graph.near)))
        for mask in self.graph.near:
            joined = {group[place] for place in members(mask)}
            group = [min(joined) if one in joined else one for one in group]
        places = [[self.domain.place[name] for name in pair] for pair in pairs]
        return [place for place, (one, other) in enumerate(places) if group[one] != group[other]]

    def admitted(self, candidates: Sequence[Clique], limit: float) -> list[int]:
        """The places of the candidates with which the tree stays within the limit.

        What a candidate needed before is taken as the least that it needs now, and those inside the tree need nothing.
        """
        graph = self.graph
        present = graph.by_cells()
        now = graph.cells(present)
        seen: dict[tuple[int, ...], int] = {}
        found = []
        for place, clique in enumerate(candidates):
            mask = graph.mask(clique)
            if any(mask & ~other == 0 for other in present):
                found.append(place)
            elif max(now, self.needed.get(clique, 0), graph.size(mask)) <= limit:
                joined = graph.joined(clique)
                if joined.near not in seen:
                    seen[joined.near] = joined.cells(joined.by_cells())
                self.needed[clique] = seen[joined.near]
                if self.needed[clique] <= limit:
                    found.append(place)
        return found


def predictions(model: MarkovRandomField, candidates: Sequence[Clique]) -> list[Integers]:
    """The counts that the model expects, in whole rows, from one table drawn from it.

    Any numbers are allowed here, as they do not depend on private data but through the model; a table gives those of
    hundreds of marginals at once.
    """
    counts = scaled_counts(model.sample(ROWS), model.domain, candidates, float(round(model.total)))
    return [np.rint(one).astype(np.int64) for one in counts]


def scaled_counts(
    rows: Integers, domain: Domain, cliques: Sequence[Clique], total: float
) -> Iterator[NDArray[np.float64]]:
    """The counts of each clique's cells, were there `total` rows in all. Of every row no more is kept than the codes of
    the columns with which the clique begins: cliques that begin alike stand beside one another."""
    table, scale = np.asfortranarray(rows), total / max(1, len(rows))
    codes: dict[Clique, Integers] = {}

    def code(clique: Clique) -> Integers:
        last = table[:, domain.place[clique[-1]]]
        if len(clique) == 1:
            return last
        if clique[:-1] not in codes:
            codes[clique[:-1]] = code(clique[:-1])
        return codes[clique[:-1]] * domain.size(clique[-1]) + last

    for clique in cliques:
        for other in [one for one in codes if clique[: len(one)] != one]:
            del codes[other]
        counts = np.bincount(code(clique), minlength=domain.cells(clique))
        yield np.asarray(scale * counts, float).reshape(domain.shape(clique))
