"""Drawn rows, of which as few as need be get other values, so that their counts have given margins exactly.

The model fits the margins nearly and rows are drawn with little variance, so few have to change. What the counts of
the margins' tree become is the nearest table of whole numbers (`margins`). Then clique by clique down that tree: among
rows that agree in what a clique shares with its parent, which is right by then, some with a value that too many have
get one that too few have. Which rows is drawn by the model: by the odds of the row as it would be to the row as it is.

Reads no private data: the model, the rows drawn from it, and the margins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.markov.calibrate import Floats, summed
from discreet.markov.domain import Clique
from discreet.markov.field import MarkovRandomField
from discreet.markov.margins import Integers, Margins

_LOOKED_AT, _EACH = 1_000, 20
"""So many rows, and so many for each that changes, are looked at: the best of all would always be the same ones."""
_ALL = slice(None)
_NEVER = -1e6  # the logarithm of no probability, so that differences of two of them are numbers


def moved(
    model: MarkovRandomField,
    rows: Integers,
    margins: Margins,
    otherwise: Sequence[Integers],
    generator: np.random.Generator,
) -> Integers:
    """The rows, some with other values in the columns of the margins, which their counts have then. `otherwise` are
    counts of the margins' tree that meet them, for where the nearest ones are not found."""
    table, domain = rows.copy(), margins.domain
    change = _Change(model, table, margins, generator)
    drawn = [change.counts(clique) for clique in margins.tree.cliques]
    wanted = margins.tables(drawn) or tuple(otherwise)
    for clique, separator, counts in zip(margins.tree.cliques, margins.tree.separators, wanted, strict=True):
        new = tuple(name for name in clique if name not in separator)
        axes = [clique.index(name) for name in (*separator, *new)]
        shape = domain.cells(separator), domain.cells(new)
        right = counts.transpose(axes).reshape(shape)
        codes = change.codes((*separator, *new))
        over = np.bincount(codes, minlength=right.size).reshape(shape) - right
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(right.size + 1))
        for group in np.flatnonzero(over.any(1)).tolist():
            many = np.repeat(np.arange(shape[1]), np.maximum(over[group], 0))
            few = np.repeat(np.arange(shape[1]), np.maximum(-over[group], 0))
            pairs = Counter(zip(generator.permutation(many).tolist(), few.tolist(), strict=True))
            for (old, value), count in pairs.items():
                cell = group * shape[1] + old
                among = order[starts[cell] : starts[cell + 1]]
                now = change.codes((*separator, *new), among)  # some may have changed already
                change.some(among[now == cell], new, value, count)
    return table


@dataclass
class _Change:
    model: MarkovRandomField
    table: Integers
    margins: Margins
    generator: np.random.Generator
    logarithms: dict[tuple[int, bool], Floats] = field(default_factory=dict)
    inside: dict[str, Floats] = field(default_factory=dict)

    def codes(self, names: Clique, among: Integers | slice = _ALL) -> Integers:
        """Of each of these rows, in which cell it is of these columns' classes."""
        rows = self.table[among]
        found = np.zeros(len(rows), np.int64)
        for name in names:
            column = rows[:, self.model.domain.place[name]]
            found = found * self.margins.domain.size(name) + self.margins.classes[name][column]
        return found

    def counts(self, names: Clique) -> Integers:
        domain = self.margins.domain
        return np.bincount(self.codes(names), minlength=domain.cells(names)).reshape(domain.shape(names))

    def some(self, among: Integers, names: Clique, value: int, count: int) -> None:
        """Gives so many of these rows the value, a cell of the classes of these columns."""
        if len(among) > max(_LOOKED_AT, _EACH * count):
            among = self.generator.choice(among, max(_LOOKED_AT, _EACH * count), replace=False)
        before = self.table[among]
        after = before.copy()
        for name, one in zip(names, np.unravel_index(value, self.margins.domain.shape(names)), strict=True):
            place = self.model.domain.place[name]
            other = self.margins.classes[name][before[:, place]] != one
            after[other, place] = self.drawn(name, int(one), int(other.sum()))
        odds = self.logarithm(after, names) - self.logarithm(before, names)
        chosen = np.argsort(-(odds + self.generator.gumbel(size=len(among))))[:count]
        self.table[among[chosen]] = after[chosen]

    def drawn(self, name: str, value: int, count: int) -> Integers:
        """Values of a class, as the model has them."""
        if name not in self.inside:
            self.inside[name] = np.maximum(self.model.marginal((name,)), 0.0)
        shares = np.where(self.margins.classes[name] == value, self.inside[name], 0.0)
        if not shares.sum():
            shares = (self.margins.classes[name] == value).astype(float)
        return self.generator.choice(len(shares), size=count, p=shares / shares.sum())

    def logarithm(self, rows: Integers, names: Clique) -> Floats:
        """The logarithm of each row's probability, but for what does not depend on these columns."""
        tree = self.model.tree
        found = np.zeros(len(rows))
        for place, (clique, separator) in enumerate(zip(tree.cliques, tree.separators, strict=True)):
            for held, below in ((clique, False), (separator, True)):
                if set(held) & set(names):
                    one = self._logarithms(place, below)[tuple(rows[:, self.model.domain.place[n]] for n in held)]
                    found += -one if below else one
        return found

    def _logarithms(self, place: int, below: bool) -> Floats:
        if (place, below) not in self.logarithms:
            tree, belief = self.model.tree, self.model.beliefs[place]
            shares = summed(belief, tree.cliques[place], tree.separators[place]) if below else belief
            with np.errstate(divide="ignore"):
                self.logarithms[place, below] = np.maximum(np.log(shares), _NEVER)
        return self.logarithms[place, below]
