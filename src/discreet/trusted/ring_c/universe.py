"""Explicit universes, databases as histograms over them, and classes of queries (Dwork & Roth 2014, section 2.1).

One row is one person. Neighbours throughout this room: two databases that differ by one row added or removed, that is
histograms with ‖x − y‖₁ = 1; the number of rows is itself private. (The book mostly lets n be public and replaces a
row, which is one removed and one added here.)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import comb

import numpy as np
from numpy.typing import NDArray

from discreet.errors import refused
from discreet.trusted.ring_a.exact import Number, fraction

refuse = partial(refused, "construction")

MOST_ROWS = 1 << 50
"""More rows than there are people. Counts below it are exact in floating point, which only sees what was released."""

MOST_CELLS = 5_000_000
"""A matrix of queries has at most so many cells."""

FARTHEST = 1 << 62
"""Answers of synthetic databases beyond this are as good as this."""

Integers = NDArray[np.int64]
Histogram = Sequence[int]


def whole(name: str, value: object, least: int, most: int) -> int:
    """The argument as an integer. Raises QuestionError."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise refuse(f"{name} must be a whole number from {least:,} to {most:,}", name, f"write {name}={least}")
    return value


def number(name: str, value: Number, low: int, high: int | None = None, *, zero: bool = False) -> Fraction:
    """The argument as a fraction above `low` (or equal to it, with `zero`) and below `high`. Raises QuestionError."""
    try:
        found = fraction(value)
    except (TypeError, ValueError):
        found = Fraction(low - 1)
    if found < low or (found == low and not zero) or (high is not None and found >= high):
        words = f"{'from' if zero else 'above'} {low}" + (f" and below {high}" if high is not None else "")
        raise refuse(f"{name} must be a number {words}", name, f"write {name}={'0.1' if high else 1}")
    return found


def price(value: Number) -> Fraction:
    """An epsilon, in a range in which noise can be drawn and bounds computed. Raises QuestionError."""
    found = number("epsilon", value, 0)
    if not Fraction(1, 10**9) <= found <= 10**6:
        raise refuse("epsilon must lie between 10^-9 and 10^6", "epsilon", "write epsilon=1")
    return found


@dataclass(frozen=True, init=False)
class Universe:
    """The finitely many kinds of row, in the order that a search looks at them."""

    elements: tuple[Hashable, ...]

    def __init__(self, elements: Iterable[Hashable]) -> None:
        object.__setattr__(self, "elements", tuple(elements))
        if not all(isinstance(element, Hashable) for element in self.elements):
            raise refuse("elements must be hashable", "elements", "name elements by texts, numbers or tuples of them")
        if not self.elements:
            raise refuse("a universe needs at least one element", "elements", 'write Universe(["no", "yes"])')
        if len(set(self.elements)) < len(self.elements):
            raise refuse("an element is listed twice in the universe", "elements", "name each element once")

    @property
    def size(self) -> int:
        """|X|, how many elements there are."""
        return len(self.elements)

    def __repr__(self) -> str:
        return f"<a universe of {self.size:,} elements>"


@dataclass(frozen=True, init=False, repr=False)
class Database:
    """How many rows there are of each element of a universe. Private or released: that is for its holder to know.

    Its representation shows no count.
    """

    universe: Universe
    counts: tuple[int, ...]

    def __init__(self, universe: Universe, counts: Iterable[int]) -> None:
        found = list(counts)
        if len(found) != universe.size:
            raise refuse("a database has one count for each element", "counts", f"give {universe.size} counts")
        if any(isinstance(count, (bool, np.bool_)) or not isinstance(count, (int, np.integer)) for count in found):
            raise refuse("counts must be whole numbers", "counts", "give the number of rows of each element")
        if any(count < 0 for count in found) or sum(map(int, found)) > MOST_ROWS:
            message = "counts must not be negative, nor add up to more than 2^50"
            raise refuse(message, "counts", "give the number of rows of each element")
        object.__setattr__(self, "universe", universe)
        object.__setattr__(self, "counts", tuple(map(int, found)))

    @classmethod
    def of(cls, universe: Universe, rows: Iterable[Hashable]) -> Database:
        """The database with these rows. Raises QuestionError on a row that is no element of the universe."""
        try:
            found = Counter(rows)
        except TypeError:
            found = Counter([universe])  # what is no element
        if not found.keys() <= set(universe.elements):
            raise refuse("some row is not in the universe", "rows", "name every kind of row in the universe")
        return cls(universe, (found[element] for element in universe.elements))

    @property
    def rows(self) -> int:
        """n, how many rows there are; as private as the counts."""
        return sum(self.counts)

    def __repr__(self) -> str:
        return f"<a database over {self.universe.size:,} elements>"


@dataclass(frozen=True, init=False, repr=False)
class LinearQueries:
    """Counting queries: how many rows are of one of these elements. `matrix[q][i]` is 1 where query q counts element i.

    Unit: persons. Adding or removing one row moves each answer by 0 or 1, all the same way: sensitivity 1. The book's
    fractional queries divide by n, which is private here; they are divided by the noisy n afterwards.
    """

    universe: Universe
    matrix: tuple[tuple[int, ...], ...]

    def __init__(self, universe: Universe, matrix: Iterable[Iterable[int]]) -> None:
        try:
            found = tuple(tuple(row) for row in matrix)
        except TypeError:
            found = ()
        if not found or any(len(row) != universe.size for row in found):
            fix = f"give rows of {universe.size} zeros and ones"
            raise refuse("a class needs at least one query, each with one cell for each element", "matrix", fix)
        if any(cell not in (0, 1) for row in found for cell in row):
            raise refuse("a counting query has only zeros and ones", "matrix", "write zeros and ones")
        if len(found) * universe.size > MOST_CELLS:
            message = f"{len(found):,} queries over {universe.size:,} elements are {len(found) * universe.size:,} cells"
            raise refuse(message, "matrix", f"at most {MOST_CELLS:,} fit")
        object.__setattr__(self, "universe", universe)
        object.__setattr__(self, "matrix", tuple(tuple(map(int, row)) for row in found))

    @classmethod
    def where(cls, universe: Universe, predicates: Iterable[Callable[[Hashable], object]]) -> LinearQueries:
        """One query for each predicate of an element."""
        return cls(universe, ([1 if holds(element) else 0 for element in universe.elements] for holds in predicates))

    step = Fraction(1)
    rho = Fraction(1)
    sensitivity = 1

    @property
    def size(self) -> int:
        """|Q|, how many queries there are."""
        return len(self.matrix)

    @cached_property
    def array(self) -> Integers:
        """The matrix as an array, of shape (queries, elements)."""
        return np.array(self.matrix, np.int64)

    def answers(self, counts: Histogram) -> list[int]:
        """The counts of all queries."""
        found: list[int] = (self.array @ np.asarray(counts, np.int64)).tolist()
        return found

    def table(self, histograms: Integers) -> Integers:
        """The counts of all queries (columns) on each of the histograms (rows)."""
        found: Integers = histograms @ self.array.T
        return found

    def widest(self, rows: int) -> int:
        """How far apart the answers on two databases of at most so many rows can be."""
        return rows

    def __repr__(self) -> str:
        return f"<{self.size:,} counting queries over {self.universe.size:,} elements>"


@dataclass(frozen=True, init=False, repr=False)
class ArbitraryQueries:
    """Any functions of a histogram that one row added or removed moves by at most `rho`, as their owner states.

    Each function gets the tuple of counts and gives an integer or a fraction, for every histogram there is. Answers are
    counted in multiples of `step`, rounded down. With s = ⌈rho/step⌉: |f(x) − f(y)| ≤ s·step, and ⌊v + s⌋ = ⌊v⌋ + s, so
    the rounded answers of neighbours differ by at most s steps: `sensitivity`.
    """

    universe: Universe
    functions: tuple[Callable[[tuple[int, ...]], int | Fraction], ...]
    rho: Fraction
    step: Fraction

    def __init__(
        self,
        universe: Universe,
        functions: Iterable[Callable[[tuple[int, ...]], int | Fraction]],
        rho: Number,
        step: Number = 1,
    ) -> None:
        object.__setattr__(self, "universe", universe)
        object.__setattr__(self, "functions", tuple(functions))
        object.__setattr__(self, "rho", number("rho", rho, 0))
        object.__setattr__(self, "step", number("step", step, 0))
        if not self.functions or not all(callable(function) for function in self.functions):
            raise refuse("a class has at least one query", "functions", "give functions of a tuple of counts")

    @property
    def sensitivity(self) -> int:
        """In steps."""
        return -((-self.rho) // self.step)

    @property
    def size(self) -> int:
        """|Q|, how many queries there are."""
        return len(self.functions)

    def answers(self, counts: Histogram) -> list[int]:
        """The answers of all queries, in steps. Raises QuestionError where a function gives no number; like all that
        functions do beside their answers, that is not covered by any promise."""
        return [self._answer(function, tuple(counts)) for function in self.functions]

    def table(self, histograms: Integers) -> Integers:
        """The answers of all queries (columns) on each of the histograms (rows), in steps."""
        found = [[min(max(answer, -FARTHEST), FARTHEST) for answer in self.answers(one)] for one in histograms.tolist()]
        return np.array(found, np.int64).reshape(-1, self.size)

    def widest(self, rows: int) -> int:
        """How far apart, in steps, the answers on two databases of at most so many rows can be."""
        return 2 * rows * self.sensitivity

    def _answer(self, function: Callable[[tuple[int, ...]], int | Fraction], counts: tuple[int, ...]) -> int:
        value = function(counts)
        if isinstance(value, (bool, float)) or not isinstance(value, (int, np.integer, Fraction)):
            fix = "give a function that returns an integer or a fraction"
            raise refuse("a query must give a whole number or a fraction", "functions", fix) from None
        exact = value if isinstance(value, Fraction) else Fraction(int(value))
        return exact // self.step

    def __repr__(self) -> str:
        return f"<{self.size:,} queries over {self.universe.size:,} elements>"


Queries = LinearQueries | ArbitraryQueries


def multisets(elements: int, rows: int) -> int:
    """How many databases of so many rows there are over so many elements: C(rows + elements − 1, rows)."""
    return comb(rows + elements - 1, rows)


def log_multisets(elements: int, rows: int) -> float:
    """Its logarithm, and a hair more."""
    exact = math.lgamma(rows + elements) - math.lgamma(rows + 1) - math.lgamma(elements)
    return max(0.0, exact + 1e-9 * (rows + elements))


def histograms(elements: int, rows: int, block: int = 1 << 14) -> Iterator[Integers]:
    """All databases of so many rows, in blocks, in the lexicographic order of their sorted rows.

    Of two sorted sequences of rows, let the first place where they differ hold v in the one and more than v in the
    other. Both have the same numbers of all elements below v, and the first has more rows v. So sorted sequences in
    lexicographic order are histograms in falling lexicographic order.
    """
    found: list[list[int]] = []
    for counts in _falling(elements, rows):
        found.append(counts)
        if len(found) == block:
            yield np.array(found, np.int64)
            found = []
    if found:
        yield np.array(found, np.int64)


def _falling(elements: int, rows: int) -> Iterator[list[int]]:
    """Histograms in falling lexicographic order, each made from the one before."""
    counts = [rows] + [0] * (elements - 1)
    while True:
        yield counts.copy()
        last = counts[-1]
        place = next((i for i in range(elements - 2, -1, -1) if counts[i]), None)
        if place is None:
            return
        counts[-1] = 0
        counts[place] -= 1
        counts[place + 1] = last + 1
