"""From the releases of a stream to running totals, windows and counts of periods, each with the deviation of its noise.

Released is w = C·x + Z in whole steps, C lower triangular and Toeplitz (`ring_c.factorisation`). With c(z) the series
of its column, c(z)·x(z) is known but for the noise: so counts are w/c, running totals w/((1 − z)·c), and windows of n
periods w·(1 − z^n)/((1 − z)·c). Each is a sum of the releases so far with fixed weights, so the deviation of its noise
is sigma·√(Σ weights²), and no later release changes it. In floating point: all of it follows from what was released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StreamEstimates:
    """Of a stream with this column of C, in steps, and noise of this deviation, in steps."""

    column: tuple[int, ...]
    sigma: float

    @cached_property
    def inverse(self) -> Floats:
        """The coefficients of 1/c(z), per step."""
        column = np.array(self.column, float)
        found = np.zeros(len(column))
        found[0] = 1 / column[0]
        for k in range(1, len(column)):
            found[k] = -(column[1 : k + 1] @ found[k - 1 :: -1][:k]) / column[0]
        return found

    def weights(self, periods: int | None) -> Floats:
        """What a release adds to the count of the last so many periods, by how long ago it was; None for all."""
        total = np.cumsum(self.inverse)
        if periods is not None:
            total[periods:] -= total[:-periods].copy()
        return total

    def values(self, released: Sequence[Sequence[int]], periods: int | None) -> Floats:
        """The estimates at each period so far (rows), by group (columns)."""
        measured, weights = np.array(released, float), self.weights(periods)
        return np.stack([weights[t::-1] @ measured[: t + 1] for t in range(len(measured))])

    def deviations(self, count: int, periods: int | None) -> Floats:
        """The deviation of an estimate's noise at each of the first `count` periods, in rows."""
        found: Floats = self.sigma * np.sqrt(np.cumsum(self.weights(periods)[:count] ** 2))
        return found
