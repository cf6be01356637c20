"""Noisy marginals, and their averages where several measure the same clique."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import QuestionError
from discreet.markov.domain import Clique, Domain

Floats = NDArray[np.float64]
Merged = tuple[tuple[int, ...] | None, ...]
Key = tuple[Clique, Merged]


@dataclass(frozen=True, eq=False)
class MarginalMeasurement:
    """Counts of rows on a clique, each with independent noise of deviation `sigma` (in rows).

    `merged` is empty, or says for each column of the clique which coarser cell each of its cells went into before
    counting; None leaves a column as it is. `values` has the shape of what was counted.
    """

    clique: Clique
    values: NDArray[np.int64]
    sigma: Fraction
    merged: Merged = ()

    def check(self, domain: Domain) -> None:
        """Raises QuestionError where the shapes do not fit, or the noise is no deviation."""
        where = ", ".join(self.clique)
        shape = domain.shape(domain.clique(self.clique))
        if domain.clique(self.clique) != self.clique:
            raise QuestionError("measurement", "columns must be in the order of the domain", where=where)
        if self.merged:
            if len(self.merged) != len(shape):
                raise QuestionError("measurement", "merged needs one mapping, or None, for each column", where=where)
            for size, places in zip(shape, self.merged, strict=True):
                if places is not None and (len(places) != size or set(places) != set(range(max(places) + 1))):
                    raise QuestionError("measurement", "each cell goes into one of the coarser cells", where=where)
            shape = tuple(
                size if places is None else max(places) + 1 for size, places in zip(shape, self.merged, strict=True)
            )
        if np.shape(self.values) != shape or self.sigma <= 0:
            raise QuestionError("measurement", "noisy counts need one entry for each cell and a deviation", where=where)

    @cached_property
    def key(self) -> Key:
        """What was counted: measurements with one key are repetitions."""
        return self.clique, self.merged if any(places is not None for places in self.merged) else ()

    @cached_property
    def _sums(self) -> tuple[NDArray[np.float64] | None, ...]:
        """For each merged column a matrix that sums its cells."""
        return tuple(
            None if places is None else np.equal.outer(np.arange(max(places) + 1), places).astype(float)
            for places in self.merged
        )

    def coarse(self, fine: Floats) -> Floats:
        """The counts of the coarser cells from those of the clique's cells."""
        for axis, matrix in enumerate(self._sums):
            if matrix is not None:
                fine = np.moveaxis(np.tensordot(matrix, fine, (1, axis)), 0, axis)
        return fine

    def spread(self, coarse: Floats) -> Floats:
        """Each cell gets the number of its coarser cell: the transpose of `coarse`."""
        for axis, places in enumerate(self.merged):
            if places is not None:
                coarse = np.take(coarse, places, axis)
        return coarse


@dataclass(frozen=True, eq=False)
class Average:
    """The repetitions of one measurement, weighted by 1/σ²: the least variance among unbiased averages."""

    like: MarginalMeasurement
    values: Floats
    sigma: float

    @staticmethod
    def of(repetitions: Sequence[MarginalMeasurement]) -> Average:
        """The average of measurements of one clique, in counts of the first one's shape; its σ is 1/√Σ 1/σ²."""
        precisions = [1 / float(one.sigma) ** 2 for one in repetitions]
        total = sum(precisions)
        values = sum(
            (np.asarray(one.values, float) * weight for one, weight in zip(repetitions, precisions, strict=True)),
            np.zeros(np.shape(repetitions[0].values)),
        )
        return Average(repetitions[0], values / total, 1 / math.sqrt(total))


def averages(measurements: Sequence[MarginalMeasurement]) -> list[Average]:
    """One for each thing that was measured."""
    groups: dict[Key, list[MarginalMeasurement]] = {}
    for one in measurements:
        groups.setdefault(one.key, []).append(one)
    return [Average.of(group) for group in groups.values()]


def total_rows(measurements: Sequence[MarginalMeasurement]) -> float:
    """How many rows there are: the sums of all measurements, weighted by 1/(cells·σ²); never negative."""
    if not measurements:
        return 0.0
    precisions = np.array([1 / (np.size(one.values) * float(one.sigma) ** 2) for one in measurements])
    sums = np.array([float(np.sum(one.values, dtype=float)) for one in measurements])
    return max(0.0, float(precisions @ sums / precisions.sum()))
