"""Tables of whole numbers that have given margins, with no row where none can be.

Which value a row has matters only as far as margins and impossible cells tell values apart: the others are one class.
Over the classes stands a junction tree around each margin and each set of columns with impossible cells. Counts of its
cliques that are whole and not negative, and agree where cliques overlap, are those of a table of rows: rows are put
together clique by clique, each beside rows that agree with it in what the cliques share. So whether there is a table is
an integer program over the tree's cells, and not over all combinations of values. HiGHS solves it (Huangfu & Hall
2018), and what it gives is held against the conditions in whole numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.markov.domain import Clique, Domain
from discreet.markov.tree import JunctionTree, junction_tree

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_CELLS = 50_000
"""The tree has at most so many cells."""
_STEPS, _NODES, _SEARCHED = 10_000, 100, 12_500
"""Of the simplex method, of the search tree, and how many numbers the conditions may have for a search to begin: before
its first node it can do most of its work. No limit is in seconds: whether a declaration is taken must not depend on how
busy the machine is."""
_TIES = 1e-3  # which of equally near tables it is, is left to chance


@dataclass(frozen=True, eq=False)
class Margins:
    """What counts must be: `counts` of cliques, all of as many rows, and `zeros`, cells that no row is in.

    Both are over classes of values: `classes` says of each value of a column of the `domain` in which one it is.
    """

    domain: Domain
    counts: Mapping[Clique, Integers]
    zeros: Mapping[Clique, Flags]
    classes: Mapping[str, Integers]

    @staticmethod
    def of(domain: Domain, counts: Mapping[Clique, Integers], zeros: Mapping[Clique, Flags]) -> Margins:
        """The margins over classes, with those of the zeros that bear upon them: of columns with a margin, and of
        columns beside these in other zeros. Without any margin there is nothing to meet."""
        known = {name for clique in counts for name in clique}
        some = {clique: cells for clique, cells in zeros.items() if cells.any()}
        bound, before = set(known), -1
        while len(bound) > before:
            before = len(bound)
            bound |= {name for clique in some if bound & set(clique) for name in clique}
        about = {clique: cells for clique, cells in some.items() if bound & set(clique)}
        names = tuple(name for name in domain.names if name in bound)
        classes = {
            name: np.arange(domain.size(name)) if name in known else _classes(name, domain.size(name), about)
            for name in names
        }
        firsts = {name: np.unique(one, return_index=True)[1] for name, one in classes.items()}
        coarse = {clique: cells[np.ix_(*(firsts[name] for name in clique))] for clique, cells in about.items()}
        sizes = {name: len(one) for name, one in firsts.items()}
        return Margins(Domain.of(sizes), dict(counts), coarse, classes)

    @property
    def rows(self) -> int:
        """How many rows such a table has."""
        return int(next(iter(self.counts.values())).sum())

    @cached_property
    def tree(self) -> JunctionTree:
        """A junction tree that holds every margin and all zeros, over classes."""
        return junction_tree(self.domain, [*self.counts, *self.zeros])

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        both = (self.counts, self.zeros)
        parts = tuple(tuple((clique, one.tobytes()) for clique, one in known.items()) for known in both)
        return self.domain.names, self.domain.sizes, *parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Margins) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def tables(self, near: Sequence[Integers] | None = None) -> tuple[Integers, ...] | None:
        """Counts of each clique of the tree, of a table that has these margins: of those that differ from `near` by the
        fewest rows. None where there is no such table, or none is found within the limits. Without `near` what is found
        follows from the margins alone, and is looked for once: a declaration is held against the same totals at each
        call."""
        return _any_table(self) if near is None else self._found(near)

    def _found(self, near: Sequence[Integers] | None) -> tuple[Integers, ...] | None:
        tree = self.tree
        if tree.cells > MOST_CELLS:
            return None
        shapes = [self.domain.shape(clique) for clique in tree.cliques]
        start = [np.zeros(shape, np.int64) for shape in shapes] if near is None else list(near)
        generator = np.random.default_rng(0 if near is None else None)
        found = self._solved(np.concatenate([one.ravel() for one in start]), generator)
        if found is None:
            return None
        parts = np.split(found, np.cumsum([one.size for one in start])[:-1])
        return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))

    def _solved(self, start: Integers, generator: np.random.Generator) -> Integers | None:
        """The integer program, in what is added to and taken from each cell, which are small numbers where `start` is
        near: no count is so large that rounding could hide one row. Without its being whole it is solved first, which
        often is all, and else bounds the work: a search is begun only where that takes few steps, of few conditions."""
        from scipy.optimize import Bounds, LinearConstraint, linprog, milp  # loaded where something is declared alone
        from scipy.sparse import csr_array, hstack

        matrix, wanted = self._conditions
        empty = self._empty
        lack = wanted - matrix @ start
        if not lack.any() and not start[empty].any():
            return start
        cells = len(start)
        most = np.where(empty, 0, max(self.rows, int(start.max(initial=0))))
        least = np.where(empty, start, 0)
        both = csr_array(hstack([matrix, -matrix]))
        costs = 1 + _TIES * generator.random(2 * cells)
        low, high = np.concatenate([np.zeros(cells), least]), np.concatenate([most, start])

        def right(changes: Any) -> Integers | None:
            if changes is None:
                return None
            moved = np.rint(changes).astype(np.int64)
            found: Integers = start + moved[:cells] - moved[cells:]
            held = (matrix @ found == wanted).all() and (found >= 0).all() and not found[empty].any()
            return found if held else None

        pairs, steps = np.stack([low, high], axis=1), {"maxiter": _STEPS}
        relaxed = linprog(costs, A_eq=both, b_eq=lack, bounds=pairs, method="highs-ds", options=steps)
        if relaxed.status != 0:
            return None
        if (found := right(relaxed.x)) is not None:
            return found
        if matrix.nnz > _SEARCHED:
            return None
        result = milp(
            costs,
            integrality=np.ones(2 * cells),
            bounds=Bounds(low, high),
            constraints=LinearConstraint(both, lack, lack),
            options={"node_limit": _NODES, "mip_rel_gap": 1e-2},
        )
        return right(result.x)

    @cached_property
    def _conditions(self) -> tuple[Any, Integers]:
        """The sums of cells that are known, as a sparse matrix of whole numbers, and what they are: each margin's, in
        the smallest clique that holds it; and that a clique and its parent agree in what they share."""
        from scipy.sparse import csr_array

        tree, domain = self.tree, self.domain
        starts = np.concatenate([[0], np.cumsum([domain.cells(clique) for clique in tree.cliques])])
        lines: list[Integers] = []
        cells: list[Integers] = []
        signs: list[Integers] = []
        wanted: list[Integers] = []
        count = 0

        def summed(place: int, kept: Clique, sign: int) -> None:
            lines.append(count + _onto(domain, tree.cliques[place], kept))
            cells.append(np.arange(starts[place], starts[place + 1]))
            signs.append(np.full(len(cells[-1]), sign))

        for clique, known in self.counts.items():
            holder = tree.holder(clique)
            assert holder is not None
            summed(holder, clique, 1)
            wanted.append(np.ravel(known))
            count += domain.cells(clique)
        for place, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            if parent >= 0:
                summed(place, separator, 1)
                summed(parent, separator, -1)
                wanted.append(np.zeros(domain.cells(separator), np.int64))
                count += domain.cells(separator)
        table = (np.concatenate(signs), (np.concatenate(lines), np.concatenate(cells)))
        return csr_array(table, shape=(count, int(starts[-1]))), np.concatenate(wanted)

    @cached_property
    def _empty(self) -> Flags:
        """Of the tree's cells, those that no row is in."""
        found = []
        for clique in self.tree.cliques:
            empty = np.zeros(self.domain.shape(clique), bool)
            for other, cells in (*self.zeros.items(), *((one, known == 0) for one, known in self.counts.items())):
                if set(other) <= set(clique):
                    empty |= _aligned(cells, other, clique)
            found.append(empty.ravel())
        return np.concatenate(found)


@functools.lru_cache(maxsize=64)
def _any_table(margins: Margins) -> tuple[Integers, ...] | None:
    found = margins._found(None)
    for one in found or ():
        one.setflags(write=False)
    return found


def _classes(name: str, size: int, zeros: Mapping[Clique, Flags]) -> Integers:
    """The classes of a column's values, by where zeros tell them apart, in the order in which they first appear."""
    views = [
        np.moveaxis(cells, clique.index(name), 0).reshape(size, -1) for clique, cells in zeros.items() if name in clique
    ]
    known: dict[bytes, int] = {}
    whole = np.concatenate(views, axis=1)
    return np.array([known.setdefault(line.tobytes(), len(known)) for line in whole], np.int64)


def _onto(domain: Domain, clique: Clique, kept: Clique) -> Integers:
    """For each cell of a clique, in C order, which cell of some of its columns it is in."""
    place = np.zeros((1,) * len(clique), np.int64)
    for name in kept:
        size, axis = domain.size(name), clique.index(name)
        along = np.arange(size).reshape([size if one == axis else 1 for one in range(len(clique))])
        place = place * size + along
    return np.broadcast_to(place, domain.shape(clique)).ravel()


def _aligned(cells: Flags, clique: Clique, onto: Clique) -> Flags:
    order = [clique.index(name) for name in onto if name in clique]
    moved = cells.transpose(order)
    return moved.reshape([cells.shape[clique.index(name)] if name in clique else 1 for name in onto])
