"""How many rows are made below each row: as the model has it, as many in all as public totals say, and of no person
more than may count.

What totals need of one another is decided before the price, by declarations alone. With at most R rows a person in a
table, N rows there need at least ⌈N / R⌉ persons who have some, also in each table between it and the persons; there
are made at least so many, and where totals say that there are fewer, the call is refused. Then numbers are found
whatever was measured: those that the model has are scaled, in whole numbers, to as many as there must be.

All follows from declarations and from what was released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import refused
from discreet.synthesis.adaptive import MOST_ROWS
from discreet.synthesis.publication import rows_that_fit
from discreet.synthesis.related import RelatedTable
from discreet.synthesis.totals import FixedTotals
from discreet.trusted.ring_c.coding import rows_of_person

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RowsBelow:
    """How many rows there must be in a table: as many as `total` says, if that is known, else at most `fit`; at most
    `most` of one person, and some of `persons` persons at least."""

    total: int | None
    most: int
    persons: int
    fit: int = MOST_ROWS

    def settled(self, numbers: Codes, whose: Codes, generator: np.random.Generator) -> Codes:
        """The numbers of rows below each row, changed in proportion where they are not such. Rows of one person, by
        `whose`, are neighbours."""
        if not len(numbers):
            return numbers
        person = np.cumsum(np.diff(whose, prepend=whose[0]) != 0)
        held = np.bincount(person, numbers).astype(np.int64)
        wanted = np.minimum(held, self.most)
        total = min(int(wanted.sum()), self.fit) if self.total is None else self.total
        if wanted.sum() != total:
            wanted = _scaled(held, total, self.most, generator)
        wanted = _of_enough(wanted, held, self.persons, generator)
        return _within(numbers, person, held, wanted, generator)


def rows_below(
    tables: Sequence[RelatedTable], totals: Mapping[str, FixedTotals], memory_gib: int
) -> dict[str, RowsBelow]:
    """What must hold of the numbers of rows in each table, the persons' first, where so much memory is for them. Raises
    QuestionError where totals leave no such tables."""
    needed: dict[str, tuple[int, str]] = {}
    for one in reversed(tables):
        name, most = one.table.name, rows_of_person(one.table)
        known, persons = totals.get(name), needed.get(name, (0, ""))
        if known is not None and known.rows < persons[0]:
            words = f"{name} has {known.rows:,} rows by its totals, and {persons[1]} needs {persons[0]:,} persons there"
            fix = f"correct these totals, or raise rows_per_person of {persons[1]}"
            raise refused("totals", words, f"tables.{name}.totals", fix)
        if known is not None:
            persons = max(persons, (-(-known.rows // most), name))
        if one.parent is not None:
            needed[one.parent] = max(needed.get(one.parent, (0, "")), persons)
    return {
        one.table.name: RowsBelow(
            totals[one.table.name].rows if one.table.name in totals else None,
            rows_of_person(one.table),
            needed.get(one.table.name, (0, ""))[0],
            rows_that_fit(len(one.columns) + len(one.counts) + len(one.sums), memory_gib),
        )
        for one in tables
    }


def _scaled(weights: Codes, total: int, most: int, generator: np.random.Generator) -> Codes:
    """Whole numbers in proportion to weights, so many in all and none above `most`, of which there is room for all:
    where there are too few with a weight, others have their part too."""
    if total >= most * int((weights > 0).sum()):
        wanted = np.where(weights > 0, most, 0)
        others, rest = np.flatnonzero(weights == 0), total - int(wanted.sum())
        if rest:
            wanted[others] = _rounded(np.full(len(others), rest / len(others)), rest, most, generator)
        return wanted
    shares = np.zeros(len(weights))
    free: NDArray[np.bool_] = weights > 0
    while free.any():  # each time some more have all they can, and the others share what is left
        factor = (total - most * int(((weights > 0) & ~free).sum())) / float(weights[free].sum())
        full = free & (weights * factor >= most)
        shares[free] = weights[free] * factor
        if not full.any():
            break
        shares[full] = most
        free &= ~full
    wanted = np.full(len(weights), most)
    open_ = shares < most
    wanted[open_] = _rounded(shares[open_], total - most * int((~open_).sum()), most, generator)
    return wanted


def _rounded(shares: Floats, total: int, most: int, generator: np.random.Generator) -> Codes:
    """Each rounded up or down, so that they add up to the total: which of them are rounded up is drawn, each with its
    fraction as its chance (systematic sampling). None is above `most`."""
    found = np.floor(shares).astype(np.int64)
    order = generator.permutation(len(shares))
    steps = np.floor(np.cumsum((shares - found)[order]) + generator.random()).astype(np.int64)
    found[order[1:]] += steps[1:] - steps[:-1]
    found[order[:1]] += steps[:1]
    found = np.minimum(found, most)
    while missing := total - int(found.sum()):  # sums of fractions are rounded, and may be one too many or too few
        some = np.flatnonzero(found < most if missing > 0 else found > 0)
        change = 1 if missing > 0 else -1
        found[generator.choice(some, min(abs(missing), len(some)), replace=False)] += change
    return found


def _of_enough(wanted: Codes, held: Codes, persons: int, generator: np.random.Generator) -> Codes:
    """The same with so many persons who have some: others give what these get, of what they have beyond one."""
    lack = persons - int((wanted > 0).sum())
    if lack <= 0:
        return wanted
    none = np.flatnonzero(wanted == 0)
    order = np.lexsort([generator.random(len(none)), held[none] == 0])
    beyond = np.maximum(wanted - 1, 0)
    given = min(lack, int(beyond.sum()))  # where no total is declared there may be more rows instead
    found = wanted - _rounded(beyond * (given / max(1, int(beyond.sum()))), given, int(beyond.max()), generator)
    found[none[order[:lack]]] = 1
    return found


def _within(numbers: Codes, person: Codes, held: Codes, wanted: Codes, generator: np.random.Generator) -> Codes:
    """The numbers of each person's rows in proportion, so that they add up to what is wanted; evenly where all were
    none. Of parts of one line, each is as long as what lies in it of the points that divide it evenly."""
    weights = np.where((held == 0)[person], 1, numbers)
    whole = np.bincount(person, weights).astype(np.int64)
    before = (np.cumsum(whole) - whole)[person]
    ends = np.cumsum(weights) - before
    shift = generator.integers(0, np.maximum(whole, 1))[person]
    length, many = np.maximum(whole, 1)[person], wanted[person]
    found: Codes = (ends * many + shift) // length - ((ends - weights) * many + shift) // length
    return np.where((held == wanted)[person], numbers, found)
