"""What the next measurement of a synthesis may gain: one more of a single column, or of columns together.

Reads no private data: it follows from noisy counts, their noise, and the model of them. All rounds have the same noise,
so each may be of a column again, where columns alone are hidden in noise, or of several columns, where these tell more.

Gains are in pairs of columns: by how much a step lowers the ℓ1 distances of shares, added up over pairs. A column
stands in a pair with each of its partners, and a count of k rows with noise of deviation σ is taken to be off by at
most k, since counts are not negative: min(√(2/π)·σ, k). Of several columns, measured with that noise in c cells, let S
be the sum of the squared distances from what the model expected. S − c·σ² estimates what it were without noise, and
√(c·(S − c·σ²)) then is an upper bound of their ℓ1 distance (Cauchy and Schwarz). What the noise of the columns alone
explains of it is taken off before: a column's counts off by e_i move a marginal, where the columns are independent, by
Σ_i e_i²·‖shares of the others‖² in square, and e_i is at most the noise or the count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.markov import Clique, MarkovRandomField
from discreet.synthesis.candidates import MEAN_SIZE

# By trial on Adult and two made-up tables, of independent and of strongly dependent columns (docs/publishing.md).
SILENT = 3
"""After so many choices in a row that showed nothing, columns together are measured no more."""
HEARD = 2
"""How many deviations of the noise count as something."""
REACH = 2
"""A dependence that is measured improves pairs beside its own: so many in all, for each of its own."""


@dataclass(frozen=True)
class Heard:
    """What a measurement showed that the model did not expect: `clear` if it is more than noise, and its `gain`."""

    clear: bool
    gain: float


def heard(
    values: NDArray[np.int64], expected: NDArray[np.int64], sigma: float, total: float, alone: Sequence[float] = ()
) -> Heard:
    """What a marginal's noisy counts show beside the expected ones, of `total` rows; `alone` is the noise with which
    each of its columns is known, and what that explains of the distance is no news."""
    cells, columns = values.size, values.ndim
    over = float(((values - expected).astype(float) ** 2).sum()) - cells * sigma**2
    for axis, noise in enumerate(alone):
        counts = expected.sum(axis=tuple(other for other in range(columns) if other != axis)).astype(float)
        others = expected.sum(axis=axis) / max(1.0, total)
        over -= float(np.minimum(noise, counts).clip(0) @ np.minimum(noise, counts).clip(0) * (others**2).sum())
    pairs = max(1, math.comb(columns, 2))
    gain = REACH * pairs * math.sqrt(cells * max(0.0, over)) / max(1.0, total)
    return Heard(over > HEARD * sigma**2 * math.sqrt(2 * cells), gain)


def partners(workload: Sequence[Clique], names: Sequence[str]) -> dict[str, int]:
    """How many other columns each of these stands beside in the workload; at least 1 where it stands there."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for clique in workload:
        for name in found.keys() & set(clique):
            found[name].update(clique)
    return {name: max(1, len(beside) - 1) if beside else 0 for name, beside in found.items()}


def single_gains(
    model: MarkovRandomField, precisions: Mapping[str, float], more: float, often: Mapping[str, int]
) -> dict[str, float]:
    """For each column what one more measurement of it gains: `precisions` are 1/σ² of its counts so far, `more` that of
    the measurement, `often` its partners."""
    found = {}
    for name, known in precisions.items():
        counts = model.marginal((name,))
        before, after = (
            float(np.minimum(MEAN_SIZE / math.sqrt(precision), counts).sum()) for precision in (known, known + more)
        )
        found[name] = often[name] * (before - after) / max(1.0, model.total)
    return found
