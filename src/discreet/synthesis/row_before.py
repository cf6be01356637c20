"""Rows that follow one another: what stands beside a row of the one before it, and what is known of that beforehand.

Of a table whose rows are in time (`Declaration.times`) the view has each of its own columns twice: as the row has it,
and as the row before has it (`ring_b.relations.RowBefore`). So what is measured of both is a marginal of the view as
any other: at its price, with its bounds. Two things are known of the columns of the row before without any price:

* about how often they have which value. They are the columns of all rows but the last of each group, and those of the
  first rows say that there is none. How many first rows there are is taken from the rows that will be made. What last
  rows hold is not known, and counts as a drift that is spread evenly over the cells;
* the time of a row is not before that of the row before, so cells in which it would be are empty. NULL comes first.

No bound rests on the former; the latter holds in each table whatever its rows are, since its order is made so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.markov import Clique, Domain, MarginalMeasurement
from discreet.markov.measurement import averages
from discreet.synthesis.prior import Expected
from discreet.synthesis.schedule import HEARD
from discreet.trusted.ring_c.coding import Binned, ListedCells

Codes = NDArray[np.int64]


def called(name: str) -> str:
    """What a column of the row before is called."""
    return f"{name} before"


def cells_before(one: ListedCells | Binned) -> ListedCells | Binned:
    """The cells of a column of the row before: those of the column, and NULL where there is no such row."""
    return replace(one, column=replace(one.column, name=called(one.column.name), nulls=True), null=True)


@dataclass(frozen=True, eq=False)
class RowSequences:
    """Rows that follow one another in groups, which stand one after another: the `group` of each, the name `before` of
    each column that the row before has, and the column of the `time`."""

    domain: Domain
    before: Mapping[str, str]
    time: str
    group: Codes

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """The rows that no row is before."""
        return np.diff(self.group, prepend=-1).astype(bool)

    @property
    def place(self) -> Codes:
        """How many rows of its group are before each row."""
        starts = np.flatnonzero(self.first)
        return np.arange(len(self.group)) - np.repeat(starts, np.diff(starts, append=len(self.group)))

    def turns(self) -> list[Codes]:
        """The first rows of all groups, the second ones, and so on."""
        place = self.place
        order = np.argsort(place, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(place[order])) + 1)

    def behind(self, table: Mapping[str, Codes], rows: Codes | None = None) -> dict[str, Codes]:
        """What the row before has, of each row of a table or of some."""
        rows = np.arange(len(self.group)) if rows is None else rows
        first = self.first[rows]
        return {name: np.where(first, self.none(name), table[own][rows - 1]) for own, name in self.before.items()}

    def some(self, rows: int, generator: np.random.Generator) -> Codes:
        """Rows of whole groups, drawn, about so many; all, where there are no more."""
        if len(self.group) <= rows:
            return np.arange(len(self.group))
        number = np.cumsum(self.first) - 1
        chosen = generator.random(number[-1] + 1) < rows / len(self.group)
        chosen[generator.integers(len(chosen))] = True
        return np.flatnonzero(chosen[number])

    def only(self, rows: Codes) -> RowSequences:
        """The same of these rows alone."""
        return replace(self, group=self.group[rows])

    def none(self, name: str) -> int:
        """The cell that says that there is no row before."""
        return self.domain.size(name) - 1

    def sorted(self, table: Mapping[str, Codes]) -> dict[str, Codes]:
        """The rows of each group in the order of their times' cells."""
        order = np.lexsort([self.rank(table[self.time]), self.group])
        return {name: codes[order] for name, codes in table.items()}

    def rank(self, codes: Codes) -> Codes:
        """The cells of the time as they follow one another: NULL first."""
        return np.where(codes == self.domain.size(called(self.time)) - 1, -1, codes)

    def rising(self, codes: Codes, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the time, those of rows of one group in one cell put in order."""
        return values[np.lexsort([values, self.rank(codes), self.group])]

    def lowered(self, codes: Codes, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the time, none larger than one that follows in its group and its cell: where another column
        of the row (`orders`) has moved one of them. It stays in its cell and gets no larger, so orders hold on."""
        known, ranks = np.unique(values, return_inverse=True)
        cells = np.diff(self.group, prepend=-1).astype(bool) | np.diff(self.rank(codes), prepend=-2).astype(bool)
        blocks = np.cumsum(cells) * len(known)  # those of a block are above all of the one before, so minima end there
        lowest: NDArray[Any] = known[np.minimum.accumulate((ranks + blocks)[::-1])[::-1] - blocks]
        return lowest

    @property
    def zeros(self) -> dict[Clique, NDArray[np.bool_]]:
        """The cells of the time and the time before in which no row can be; none of so many cells that they are never
        measured: then the model, whose size rules of the owner may have cut, need not hold them."""
        name = called(self.time)
        if self.domain.size(self.time) * self.domain.size(name) > HEARD:
            return {}
        ranks, ranks_before = (self.rank(np.arange(self.domain.size(one))) for one in (self.time, name))
        empty = np.less.outer(ranks, ranks_before)
        clique = self.domain.clique((self.time, name))
        return {clique: empty if clique[0] == self.time else empty.T}


@dataclass(frozen=True, eq=False)
class ExpectedBefore:
    """What is expected of the columns of the row before, from counts of the columns themselves: `first` is the share of
    first rows in what rows weigh."""

    rows: RowSequences
    first: float

    def today(
        self, measured: Sequence[MarginalMeasurement], _rows: int | None = None
    ) -> tuple[MarginalMeasurement, ...]:
        """What is expected, given what was measured until now."""
        known = {one.like.clique: one for one in averages(measured)}
        found = []
        for own, name in self.rows.before.items():
            if (own,) not in known:
                continue
            counts, sigma = known[(own,)].values.clip(0), known[(own,)].sigma
            away = self.first * float(counts.sum())
            values = np.zeros(self.rows.domain.size(name))
            values[: len(counts)] = (1 - self.first) * counts
            values[-1] += away
            found.append(Expected((name,), values, sigma**2 + away**2 / len(values)).measurement)
        return tuple(found)
