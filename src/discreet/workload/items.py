"""The items of a workload as linear queries on marginals of discretised columns.

A column is its place in a coding; its cells are numbered from 0. `sizes` says how many cells each column has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AnyIntegers = NDArray[Any]
Clique = tuple[int, ...]

RANGES, PREFIXES = "ranges", "prefixes"


@dataclass(frozen=True)
class Marginal:
    """The number of rows in each cell of some columns; without columns, the number of rows."""

    columns: Clique
    shape: tuple[int, ...]

    @property
    def queries(self) -> int:
        """The number of answers (cells) of the marginal."""
        return math.prod(self.shape)

    @property
    def questions(self) -> int:
        """How many questions it is, asked one by one: its cells are disjoint, and one question."""
        return 1

    @property
    def cells_summed(self) -> float:
        """How many cells of the columns' histogram an answer adds up, in the mean: what is asked is the histogram."""
        return 1.0

    @property
    def weight(self) -> float:
        """What its mean variance counts in the error that is made small: as many cells as it asks about, each held
        against the histogram."""
        return float(self.queries)

    def matrix(self) -> AnyIntegers:
        """The answers as rows of weights on the cells of its columns."""
        return np.eye(self.queries, dtype=np.int64)


@dataclass(frozen=True)
class Intervals:
    """All ranges, or all prefixes, of the first `ordered` cells of one column: from cell low to cell high, both in."""

    columns: Clique
    shape: tuple[int, ...]
    ordered: int
    kind: str

    @property
    def queries(self) -> int:
        """n(n + 1)/2 ranges, or n prefixes, of n ordered cells."""
        return self.ordered * (self.ordered + 1) // 2 if self.kind == RANGES else self.ordered

    @property
    def questions(self) -> int:
        """Each interval is a question: they overlap."""
        return self.queries

    @property
    def cells_summed(self) -> float:
        """The mean length of an interval in cells: (n + 2)/3 of ranges, (n + 1)/2 of prefixes."""
        return (self.ordered + 2) / 3 if self.kind == RANGES else (self.ordered + 1) / 2

    @property
    def weight(self) -> float:
        """n over the mean length of an interval."""
        return self.ordered / self.cells_summed

    @property
    def ends(self) -> tuple[AnyIntegers, AnyIntegers]:
        """The first and the last cell of each query: by the first, then by the last."""
        if self.kind == PREFIXES:
            return np.zeros(self.ordered, np.int64), np.arange(self.ordered)
        low, high = np.triu_indices(self.ordered)
        return low, high

    def gram(self) -> Floats:
        """Wᵀ·W of the queries, on the ordered cells."""
        place = np.arange(self.ordered, dtype=float)
        later = self.ordered - np.maximum.outer(place, place)
        found: Floats = later * (np.minimum.outer(place, place) + 1) if self.kind == RANGES else later
        return found

    def matrix(self) -> AnyIntegers:
        """1 for the cells of each interval, else 0: queries × cells, in the order of `ends`."""
        low, high = self.ends
        cells = np.arange(self.shape[0])
        return ((cells >= low[:, None]) & (cells <= high[:, None])).astype(np.int64)


@dataclass(frozen=True)
class Count:
    """The rows whose cell is among some in every one of its columns."""

    columns: Clique
    shape: tuple[int, ...]
    masks: tuple[tuple[bool, ...], ...]
    queries = 1
    questions = 1
    cells_summed = 1.0
    weight = 1.0

    def matrix(self) -> AnyIntegers:
        """1 for the cells that count, else 0, in one row: 1 × cells of all columns."""
        found = np.ones((), np.int64)
        for mask in self.masks:
            found = np.multiply.outer(found, np.array(mask, np.int64))
        return found.reshape(1, -1)


Item = Marginal | Intervals | Count


def subsets(columns: Clique) -> Iterator[Clique]:
    """All subsets of the columns, the empty one first."""
    for size in range(len(columns) + 1):
        yield from combinations(columns, size)


def component(values: Floats, columns: Clique, kept: Clique) -> Floats:
    """Of weights on the cells of `columns` (behind a first axis of any length) what the marginal of `kept` tells and no
    smaller one does: the mean over the other axes, less its own means along each axis.

    The weights f are the sum of their components, each repeated along the axes it lacks; f·x is the sum over A of
    f_A·x_A, x_A the marginal of A (Xiao et al. 2023, section 3; the analysis of variance).
    """
    others = tuple(place + 1 for place, column in enumerate(columns) if column not in kept)
    found: Floats = values.mean(axis=others) if others else values
    return centred(found)


def centred(values: Floats) -> Floats:
    """Less the mean along every axis but the first."""
    for axis in range(1, values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def spread(values: Floats, columns: Clique, kept: Clique) -> Floats:
    """Values on the cells of `kept`, behind a first axis, with an axis of length 1 for each further column."""
    shape = iter(values.shape[1:])
    return values.reshape(values.shape[0], *(next(shape) if column in kept else 1 for column in columns))
