"""Linear measurements of many marginals at once, declared together, for workloads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.exact import sqrt_ceiling
from discreet.trusted.ring_a.loss import Batch, Loss
from discreet.trusted.ring_a.loss import GaussianLoss as GaussianLoss
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_c.coding import Coding, rows_of_person
from discreet.trusted.ring_c.engine import CodedEngine

AnyIntegers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Linear:
    """One measurement of a marginal x: integers, one for each cell of some columns of a coding.

    * `rows` are weights, whole numbers: rows·x′ + noise is released, where x′ sums the cells of equal `atoms`, and
      those of atom −1 are left out. Without `rows` the cells themselves are measured.
    * With `residual` = N, a multiple of the number of cells, only how N·x + noise differs along every axis from that
      axis' first cell is released: H(N·x + z), H the tensor product of subtraction matrices (ResidualPlanner: Xiao, He,
      Zhang & Kifer 2023).

    Unit: one row of the table, added or removed, moves one cell by 1. A person moves up to R rows, and by the triangle
    inequality the released vector by at most R times as far as the farthest row.

    Sensitivity of `rows`: a row in atom a moves rows·x′ by the column a: its ℓ1 norm, its squared ℓ2 norm, are sums of
    whole numbers.

    Sensitivity of `residual`: let e be the unit vector of a row's cell and P the orthogonal projection onto the
    row space of H, P = ⊗(I − J/n), J all ones. N·e = N·Pe + N·(e − Pe). As every entry of Pe is a product of numbers
    −1/n and 1 − 1/n over the axes, N·Pe is a vector of whole numbers, and so is the rest, which H takes to 0. So
    H(N(x + e) + z) = H(N·x + N·Pe + z): what is released is a function of N·x + z alone in one world and of
    N·x + N·Pe + z in the other, whole numbers plus rounded Gaussian noise whose distance is ‖N·Pe‖. Its square is
    N²·∏(1 − 1/n), a whole number. Nothing but H(N·x + z) may leave: N·x + z itself would cost N².
    """

    columns: tuple[int, ...]
    shape: tuple[int, ...]
    mechanism: Gaussian | Laplace
    rows: AnyIntegers | None = field(default=None, repr=False)
    atoms: AnyIntegers | None = field(default=None, repr=False)
    residual: int = 0

    def __post_init__(self) -> None:
        cells = math.prod(self.shape)
        if self.residual and (self.rows is not None or self.residual % cells or isinstance(self.mechanism, Laplace)):
            raise ValueError("a residual is of all cells, on a lattice that they divide, with Gaussian noise")
        for name in ("rows", "atoms"):  # what is priced is what is measured: nobody changes it in between
            known = getattr(self, name)
            if known is not None:
                if known.dtype.kind not in "iu" or known.dtype.itemsize > 8:
                    raise ValueError("weights and atoms are whole numbers")
                whole = np.ascontiguousarray(known, np.int64)
                object.__setattr__(self, name, np.frombuffer(whole.tobytes(), np.int64).reshape(whole.shape))
        if self.rows is not None and (self.atoms is None or self.atoms.shape != (cells,)):
            raise ValueError("each cell has an atom")

    @cached_property
    def sensitivity(self) -> int:
        """ℓ1 for Laplace noise, squared ℓ2 for Gaussian noise, of one row, in steps."""
        if self.residual:
            square = self.residual**2 * Fraction(math.prod(size - 1 for size in self.shape), math.prod(self.shape))
            assert square.denominator == 1
            return square.numerator
        if self.rows is None:
            return 1
        columns: list[list[int]] = self.rows.T.tolist()
        if isinstance(self.mechanism, Laplace):
            return max((sum(abs(entry) for entry in column) for column in columns), default=0)
        return max((sum(entry * entry for entry in column) for column in columns), default=0)

    def release(self, exact: AnyIntegers) -> AnyIntegers:
        """The measurement of the exact marginal."""
        cells: list[int] = exact.reshape(-1).tolist()
        if self.residual:
            noisy = self.mechanism.release([self.residual * value for value in cells])
            return differences(np.array(noisy, object).reshape(self.shape))
        if self.rows is None:
            return np.array(self.mechanism.release(cells), object).reshape(self.shape)
        assert self.atoms is not None
        inside = self.atoms >= 0
        summed = np.zeros(self.rows.shape[1], np.int64)
        np.add.at(summed, self.atoms[inside], exact.reshape(-1)[inside])
        totals = self.rows.astype(object) @ summed.astype(object)
        return np.array(self.mechanism.release(totals.tolist()), object)


def differences(values: AnyIntegers) -> AnyIntegers:
    """Along every axis, how each but the first differs from the first: a cell of any first place becomes 0."""
    for axis in range(values.ndim):
        values = values - np.take(values, [0], axis)
    return values


@dataclass(frozen=True, eq=False)
class LinearQueriesMeasurement:
    """Measurements of marginals of one table, all fixed before the first is made.

    Unit: a person, with at most R rows that count (`rows_of_person`); the engine leaves out all others, and every row
    is in one cell of each marginal or left out of all (`ring_c.coding`). Neighbours: one person added or
    removed.

    Loss. With Gaussian noise the measurements, each divided by its sigma, are one Gaussian vector with post-processing,
    which a person moves by at most R·√(Σ sensitivity/sigma²): one `GaussianLoss` event (Dong, Roth & Su 2019, Theorem
    2.7, Corollary 3.3). With Laplace noise each is pure ε with ε = R·sensitivity/scale; the events are declared
    together (Dwork & Roth 2014, Theorem 3.16). One kind of noise only.
    """

    table: Table
    coding: Coding
    measurements: tuple[Linear, ...]

    def __post_init__(self) -> None:
        if type(self.measurements) is not tuple:
            raise ValueError("measurements must be fixed before the first is made")

    @cached_property
    def loss(self) -> Loss:
        """Of all measurements together. Raises ValueError where the table has no limit on a person's rows, and where
        both kinds of noise are among them."""
        return loss_of(self.measurements, rows_of_person(self.table))

    def draw(self, engine: CodedEngine) -> list[AnyIntegers]:
        """What each measurement releases."""
        names = self.coding.names
        cliques = list(dict.fromkeys(one.columns for one in self.measurements))
        rows = engine.code(self.coding, self.table)
        try:
            found = engine.marginals(rows, [[names[column] for column in clique] for clique in cliques])
        finally:
            engine.uncode(rows)
        exact = dict(zip(cliques, found, strict=True))
        return [one.release(exact[one.columns]) for one in self.measurements]


def loss_of(measurements: Sequence[Linear], rows_per_person: int) -> Loss:
    """The loss of the measurements together, as `Marginals` proves it."""
    square, parts = Fraction(0), []
    for one in measurements:
        if isinstance(one.mechanism, Gaussian):
            square += one.sensitivity * rows_per_person**2 / one.mechanism.sigma**2
        else:
            parts.append(one.mechanism.loss(one.sensitivity * rows_per_person))
    if square and parts:
        raise ValueError("all measurements need the same kind of noise")
    return Batch(tuple(parts)) if parts else GaussianLoss(sqrt_ceiling(square))
