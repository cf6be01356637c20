"""Discretisation of columns into public cells, over which marginals are counted.

A coding is made of declarations and of what was released before, never of rows. It puts every row of a table into one
cell of each column, or leaves the row out of all of them: which, follows from that row alone.

Unit: a person, with at most R rows that count. So over any set of columns, the marginal (how many rows have which
combination of cells) of two tables that differ by one person differs by at most R in ℓ1, and, as all of the person's
rows may share a cell, by at most R in ℓ2; no cell goes down when the person is added.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.trusted.ring_a.table import Column, Table, Type, Value

MOST_CELLS = 1 << 25
"""One marginal holds at most so many cells."""


@dataclass(frozen=True)
class ListedCells:
    """A cell for each of these values; of texts one for each of these `prefixes`, with the other values that begin with
    it and with no longer one; then one for all `other` values if there is one, then one for NULL if there is one.
    Without `other`, a value that has no cell counts as NULL."""

    column: Column
    values: tuple[Value, ...]
    other: bool = False
    null: bool = True
    prefixes: tuple[str, ...] = field(default=(), repr=False)
    """They are found in a run; what is declared has none, and keys of stored answers are made of its repr."""

    def __post_init__(self) -> None:
        if self.prefixes and self.column.type is not Type.TEXT:
            raise ValueError("only texts have prefixes")
        if {*map(type, (self.prefixes, *self.prefixes))} - {tuple, str}:
            raise ValueError("prefixes are a tuple of texts")
        if len(set(self.prefixes)) != len(self.prefixes) or "" in self.prefixes:
            raise ValueError("prefixes are different texts of one character or more")

    @property
    def size(self) -> int:
        """How many cells there are, with those for other values and for NULL."""
        return len(self.values) + len(self.prefixes) + self.other + self.null

    @property
    def listed(self) -> tuple[Value, ...]:
        """What stands for the cells in rows, but for other values and NULL: `C34*` for the rest of a prefix, with as
        many stars as no value has there."""
        mark = "*"
        while not {one + mark for one in self.prefixes}.isdisjoint(self.values):
            mark += "*"
        return (*self.values, *(one + mark for one in self.prefixes))

    @property
    def names(self) -> tuple[str, ...]:
        """The cells in words."""
        return (*map(str, self.listed), *("(other)",) * self.other, *("(none)",) * self.null)


@dataclass(frozen=True)
class Binned:
    """A cell for the values below the first cut, one from each cut up to the next, one from the last cut on; then one
    for NULL if there is one. Cuts rise, and are of the column's type."""

    column: Column
    cuts: tuple[Value, ...]
    null: bool = True

    def __post_init__(self) -> None:
        if any(not low < high for low, high in itertools.pairwise(self.cuts)):  # type: ignore[operator]
            raise ValueError("cuts must be in ascending order")

    @property
    def size(self) -> int:
        """How many cells there are, with that for NULL."""
        return len(self.cuts) + 1 + self.null

    @property
    def names(self) -> tuple[str, ...]:
        """The cells in words: from one cut to the next, open at both ends, `(none)` for NULL."""
        ends = ["", *(_word(cut) for cut in self.cuts), ""]
        bins = [f"{low} to {high}".strip() for low, high in itertools.pairwise(ends)]
        return (*bins, *("(none)",) * self.null)

    def cell(self, value: Value) -> int:
        """The cell that holds a value of the column's type."""
        return bisect.bisect_right(self.cuts, value)


@dataclass(frozen=True)
class Coding:
    """The coded columns of a table, in order."""

    columns: tuple[ListedCells | Binned, ...]

    def __post_init__(self) -> None:
        names = [one.column.name for one in self.columns]
        if len(set(names)) != len(names):
            raise ValueError("a column is coded twice")
        if not all(one.size for one in self.columns):
            raise ValueError("a coded column has at least one cell")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(one.column.name for one in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has, in order."""
        return tuple(one.size for one in self.columns)

    def shape(self, clique: Sequence[str]) -> tuple[int, ...]:
        """The sizes of a marginal's axes, in the order in which its columns are named."""
        known = dict(zip(self.names, self.sizes, strict=True))
        shape = tuple(known[name] for name in clique)
        if len(set(clique)) != len(clique) or math.prod(shape) > MOST_CELLS:
            raise ValueError(f"a marginal names each column once and has at most {MOST_CELLS:,} cells")
        return shape


def rows_of_person(table: Table) -> int:
    """How many rows of one person count at most. Raises ValueError where the declaration does not say, or nothing tells
    whose rows they are."""
    if table.one_row_per_person:
        return 1
    if table.rows_per_person is None or table.person is None:
        raise ValueError("the table has no declared limit on the rows of a person")
    return table.rows_per_person


def _word(value: Value) -> str:
    return f"{float(value):g}" if isinstance(value, int | Fraction) else str(value)
