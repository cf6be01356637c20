"""Best linear unbiased estimates of all answers from noisy measurements; the answers are consistent with each other.

Everything rests on components (`items.component`). The component of a set A of columns is known from a residual of A,
and from the marginals of every C ⊇ A: x_A with independent noise of one variance, 1/`precision[A]`, on each cell, less
the means. Different A are independent. So far this is ResidualPlanner (Xiao et al. 2023): an answer f·x is Σ_A f_A·x_A,
its variance Σ_A ‖f_A‖²/precision[A].

Rows of weights measure besides y = d + noise, d_j = Σ_A F_A[j]·x_A. Their noise is independent, of variance 1 once
each row is divided by its deviation. Before them d is known with covariance S = Σ F_A·F_Aᵀ/precision[A] over the known
A, and not at all along D = Σ F_A·F_Aᵀ over the others. With N a basis of the null space of D the generalised least
squares estimates are, by the limit of the matrix inversion lemma,

    d̂ = y − M·(y − d₀),  Cov d̂ = 1 − M,  x̂_A = x_A⁰ + F_Aᵀ·M·(y − d₀)/precision[A],  M = N·(Nᵀ(1 + S)N)⁻¹·Nᵀ.

They minimise the variance of every answer at once (Gauss, Markov, Aitken), so they are never worse than one measurement
alone; and being linear in one estimate of the table, answers agree: cells add up to totals, prefixes differ by ranges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.mechanisms import variance
from discreet.trusted.ring_c.linear_queries import Linear
from discreet.workload.items import (
    AnyIntegers,
    Clique,
    Count,
    Floats,
    Intervals,
    Item,
    Marginal,
    centred,
    component,
    spread,
    subsets,
)
from discreet.workload.optimum import inverse

NO_NOISE = 1e-15
"""A smaller deviation, at prices that buy exact answers, counts as this one."""

_NULL = 1e-10
"""A singular value is zero if it is this much smaller than the largest one, or than the rows are long."""


@dataclass(frozen=True)
class MeasuredRows:
    """Measured rows of weights, each divided by the deviation of its noise, and their place among all such rows."""

    start: int
    stop: int
    rows: Floats
    columns: Clique
    atoms: AnyIntegers

    @cached_property
    def inverse(self) -> Floats:
        """From rows to atoms: rows⁺."""
        return inverse(self.rows)

    def on_cells(self) -> Floats:
        """The weights of each row on each cell."""
        found: Floats = np.where(self.atoms >= 0, self.rows[:, self.atoms], 0.0)
        return found


@dataclass(frozen=True)
class WorkloadEstimates:
    """What is known from all measurements: the components, and the rows' own values."""

    components: dict[Clique, Floats]
    rows: Floats


class Reconstruction:
    """How answers follow from measurements, whatever those release: weights and variances."""

    def __init__(self, sizes: Sequence[int], measurements: Sequence[Linear]) -> None:
        self.sizes = tuple(sizes)
        self.measurements = tuple(measurements)
        self.precision: dict[Clique, float] = {}
        self.parts: dict[int, MeasuredRows] = {}
        start = 0
        for place, one in enumerate(measurements):
            if one.rows is None:
                for kept, precision in self._known(one):
                    self.precision[kept] = self.precision.get(kept, 0.0) + precision
                continue
            assert one.atoms is not None
            stop = start + len(one.rows)
            rows = one.rows / _deviation(one)
            self.parts[place] = MeasuredRows(start, stop, rows, one.columns, one.atoms)
            start = stop
        self._rows = start

    def _known(self, one: Linear) -> list[tuple[Clique, float]]:
        """The components that a measurement of cells tells, and how precisely."""
        variance = _deviation(one) ** 2
        if one.residual:
            return [(one.columns, float(one.residual) ** 2 / variance)]
        return [(kept, self._cells(kept) / self._cells(one.columns) / variance) for kept in subsets(one.columns)]

    def _cells(self, columns: Clique) -> int:
        return math.prod(self.sizes[column] for column in columns)

    @cached_property
    def _weights(self) -> dict[Clique, Floats]:
        """F_A for each A that some rows are about: rows × the cells of A, flat."""
        found: dict[Clique, Floats] = {}
        for part in self.parts.values():
            cells = part.on_cells().reshape(-1, *(self.sizes[column] for column in part.columns))
            for kept in subsets(part.columns):
                if any(self.sizes[column] == 1 for column in kept):
                    continue
                if kept not in found:
                    found[kept] = np.zeros((self._rows, self._cells(kept)))
                weights = component(cells, part.columns, kept)
                found[kept][part.start : part.stop] = weights.reshape(len(cells), -1)
        return found

    @cached_property
    def _update(self) -> Floats:
        """The matrix M."""
        known = np.zeros((self._rows, self._rows))
        unknown = [np.zeros((self._rows, 0))]
        for kept, weights in self._weights.items():
            if kept in self.precision:
                known += weights @ weights.T / self.precision[kept]
            else:
                unknown.append(weights)
        largest = max((float(np.linalg.norm(weights)) for weights in self._weights.values()), default=0.0)
        null = _null_space(np.concatenate(unknown, axis=1), _NULL * largest)
        values, vectors = np.linalg.eigh(null.T @ known @ null)
        turned = null @ vectors
        found: Floats = (turned / (1 + np.maximum(values, 0.0))) @ turned.T
        return found

    def estimates(self, released: Sequence[AnyIntegers]) -> WorkloadEstimates:
        """The best estimates from what the measurements released."""
        found = {kept: np.zeros([self.sizes[column] for column in kept]) for kept in self.precision}
        values = np.zeros(self._rows)
        for place, (one, noisy) in enumerate(zip(self.measurements, released, strict=True)):
            numbers = noisy.astype(np.float64)
            if one.rows is not None:
                part = self.parts[place]
                values[part.start : part.stop] = numbers / _deviation(one)
            elif one.residual:
                share = (one.residual / _deviation(one)) ** 2 / self.precision[one.columns]
                found[one.columns] += share * centred(numbers[None])[0] / one.residual
            else:
                for kept, precision in self._known(one):
                    others = tuple(place for place, column in enumerate(one.columns) if column not in kept)
                    summed = numbers.sum(axis=others) if others else numbers
                    found[kept] += precision / self.precision[kept] * centred(summed[None])[0]
        if not self._rows:
            return WorkloadEstimates(found, values)
        known = np.zeros(self._rows)
        for kept, weights in self._weights.items():
            if kept in found:
                known += weights @ found[kept].reshape(-1)
        change = self._update @ (values - known)
        for kept, weights in self._weights.items():
            if kept in found:
                found[kept] = found[kept] + (weights.T @ change / self.precision[kept]).reshape(found[kept].shape)
        return WorkloadEstimates(found, values - change)

    # variances

    def variances(self, item: Item, where: int | None) -> Floats:
        """The variance of each answer, in rows², from the rows of a measurement, or from components."""
        if isinstance(item, Marginal):
            return self._of_cells(item.columns) if where is None else np.diag(self._from_rows(item, where)).copy()
        if isinstance(item, Intervals):
            covariance = self._histogram(item) if where is None else self._from_rows(item, where)
            return _interval_variances(covariance[: item.ordered, : item.ordered], item)
        if where is not None:
            return self._from_rows(item, where).reshape(1)
        weights = item.matrix().astype(float).reshape(1, *item.shape)
        own, moved = 0.0, np.zeros(self._rows)
        for kept in subsets(item.columns):
            if kept in self.precision:
                part = component(weights, item.columns, kept).reshape(-1)
                own += float(part @ part) / self.precision[kept]
                if kept in self._weights:
                    moved += self._weights[kept] @ part / self.precision[kept]
        return np.array([own - moved @ self._update @ moved])

    def _of_cells(self, columns: Clique) -> Floats:
        """The variance of each cell of a marginal, flat."""
        shape = [self.sizes[column] for column in columns]
        own = 0.0
        for kept in subsets(columns):
            if kept in self.precision:
                inside = math.prod(1 - 1 / self.sizes[column] for column in kept)
                own += inside * (self._cells(kept) / math.prod(shape)) ** 2 / self.precision[kept]
        moved = self._moved(columns)
        if moved is None:
            return np.full(math.prod(shape), own)
        found: Floats = own - ((self._update @ moved) * moved).sum(axis=0)
        return found

    def _moved(self, columns: Clique) -> Floats | None:
        """The covariance of the rows and each cell of a marginal as cells alone tell it; None where all is zero."""
        if not any(kept in self.precision for kept in subsets(columns) if kept in self._weights):
            return None
        shape = [self.sizes[column] for column in columns]
        moved = np.zeros([self._rows, *shape])
        for kept in subsets(columns):
            if kept in self._weights and kept in self.precision:
                part = self._weights[kept].reshape(self._rows, *(self.sizes[column] for column in kept))
                scale = self._cells(kept) / math.prod(shape) / self.precision[kept]
                moved += spread(part, columns, kept) * scale
        return moved.reshape(self._rows, -1)

    def _histogram(self, item: Intervals) -> Floats:
        """The covariance of the cells of one column."""
        (cells,) = item.shape
        covariance = np.full((cells, cells), 1 / cells**2 / self.precision[()])
        if cells > 1:
            covariance += (np.eye(cells) - 1 / cells) / self.precision[item.columns]
        moved = self._moved(item.columns)
        return covariance if moved is None else covariance - moved.T @ self._update @ moved

    def _from_rows(self, item: Item, where: int) -> Floats:
        """The covariance of what `_combinations` tells."""
        part = self.parts[where]
        combined = self._combinations(item, part)
        own = np.eye(part.stop - part.start) - self._update[part.start : part.stop, part.start : part.stop]
        return combined @ own @ combined.T

    def _combinations(self, item: Item, part: MeasuredRows) -> Floats:
        """Weights on a part's rows: of a count, of each cell of a marginal, of each ordered cell of a histogram."""
        if isinstance(item, Intervals) and part.columns == item.columns:
            found: Floats = part.inverse[part.atoms[: item.ordered]]
            return found
        if isinstance(item, Intervals):
            item = Marginal(item.columns, item.shape)
        return on_atoms(item, part.columns, [self.sizes[i] for i in part.columns], part.atoms) @ part.inverse

    # values

    def values(self, item: Item, where: int | None, estimates: WorkloadEstimates) -> Floats:
        """The answers, in the order of the item's queries."""
        if where is not None:
            part = self.parts[where]
            found = self._combinations(item, part) @ estimates.rows[part.start : part.stop]
        elif isinstance(item, Count):
            weights = item.matrix().astype(float).reshape(1, *item.shape)
            total = 0.0
            for kept in subsets(item.columns):
                if kept in estimates.components:
                    part_of = component(weights, item.columns, kept).reshape(-1)
                    total += float(part_of @ estimates.components[kept].reshape(-1))
            return np.array([total])
        else:
            cells = np.zeros([1, *item.shape])
            for kept in subsets(item.columns):
                if kept in estimates.components:
                    scale = self._cells(kept) / math.prod(item.shape)
                    cells = cells + spread(estimates.components[kept][None], item.columns, kept) * scale
            found = cells.reshape(-1)
        if isinstance(item, Intervals):
            low, high = item.ends
            ahead = np.concatenate([[0.0], np.cumsum(found[: item.ordered])])
            found = ahead[high + 1] - ahead[low]
        return found


def _deviation(one: Linear) -> float:
    return max(math.sqrt(variance(one.mechanism)), NO_NOISE)


def _null_space(weights: Floats, small: float) -> Floats:
    """An orthonormal basis of the combinations of rows that are zero, where `small` is as good as zero."""
    if weights.shape[1] > len(weights):
        _, triangle = np.linalg.qr(weights.T)
        weights = triangle.T
    if len(weights) == weights.shape[1] > 0:
        with suppress(np.linalg.LinAlgError):  # far from singular, as a rule: then elimination shows it
            pivots = np.diag(np.linalg.cholesky(weights @ weights.T))
            if float(pivots.min()) > 1e5 * small:
                return weights[:, :0]
    left, values, _ = np.linalg.svd(weights)
    found: Floats = left[:, int((values > small).sum()) :]
    return found


def _interval_variances(covariance: Floats, item: Intervals) -> Floats:
    low, high = item.ends
    ahead = np.zeros((item.ordered + 1, item.ordered + 1))
    ahead[1:, 1:] = covariance.cumsum(axis=0).cumsum(axis=1)
    found: Floats = ahead[high + 1, high + 1] - ahead[low, high + 1] - ahead[high + 1, low] + ahead[low, low]
    return found


def on_cells(item: Item, columns: Clique, shape: Sequence[int]) -> AnyIntegers:
    """An item's queries as weights on the cells of more columns."""
    weights = item.matrix().reshape(-1, *item.shape)
    full = np.broadcast_to(spread(weights, columns, item.columns), (len(weights), *shape))
    return full.reshape(len(weights), -1)


def on_atoms(item: Item, columns: Clique, shape: Sequence[int], atoms: AnyIntegers) -> AnyIntegers:
    """An item's queries as weights on atoms, which it does not divide."""
    places = np.zeros(int(atoms.max(initial=-1)) + 1, np.int64)
    places[atoms[atoms >= 0]] = np.flatnonzero(atoms >= 0)
    found: AnyIntegers = on_cells(item, columns, shape)[:, places]
    return found
