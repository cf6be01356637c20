"""Error bounds of published counts, each at a stated confidence, valid after adaptive selection.

Let D_r be the table's counts on a clique r with n cells, and a the published ones, in rows.

**By their distance.** For a given a one person with R rows moves ‖D_r − a‖₁ by at most R. So at the end the distances
of all marginals of the workload are measured, as one vector, with Gaussian noise of deviation σ rounded to whole
rows: ‖D_r − a‖₁ is at most what came out, or 0 where that is less, plus z·σ + 1/2, but for probability 1 − Φ(z). The
published rows are fixed before this noise is drawn, so nothing adaptive is left. Of other answers a′ it says
‖D_r − a′‖₁ ≤ ‖D_r − a‖₁ + ‖a − a′‖₁.

**By measurements of the cells**, as in Theorem 3 of McKenna, Mullins, Sheldon & Miklau (2022), with constants that
hold for adaptive choices. Measurement t of a clique with k cells for each of r's gives, summed, D_r + √v_t·ξ_t +
rounding, with v_t = k·σ_t² and ξ_t standard normal in n dimensions. What was measured before may decide which clique
is measured at t and whether it holds r. Let ξ_t be fresh noise where it does not: then, given everything before, ξ_t
is standard normal at every t, so ξ_1, ξ_2, … are independent. Hence for a *fixed* set of times and fixed v_t the
average with weights 1/v_t has normal noise of variance V = 1/Σ 1/v_t in each cell. Its ℓ1 norm, a function of a
standard normal vector with mean √(2/π)·n·√V and Lipschitz constant √(n·V), is above √V·(√(2/π)·n + √(2n·ln(1/β)))
with probability at most β (Boucheron, Lugosi & Massart 2013, Theorem 5.6). The set that is used is not fixed. So each
possible one gets a part of β: half goes to all measurements that were certain from the start; the other half to those
together with j others, 2^−j of it for each j, shared equally by all C(T, j) sets of times and all K^j ways in which k
may come out. By the union bound all hold at once, and the best is taken. Rounding moves each measured cell by at most
1/2, independently and with mean 0, as the noise is symmetric: by McDiarmid's inequality a share β of the probability
adds n·s/2 + s·√(n·ln(1/β)/2), with s² = Σ k_t·(V/v_t)². Then ‖D_r − a‖₁ ≤ ‖average − a‖₁ + noise. This counts noise
that the model has removed, and that twice: it is loose by a factor of 2 or more, but also bounds every cell.

Where both say less, the trivial ‖a‖₁ + rows stands, rows being bounded by measurements too. The three share the
probability of error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.markov import Clique, Domain, MarginalMeasurement

Floats = NDArray[np.float64]
DISTANCE, MEASURED, ROWS = 0.7, 0.25, 0.05
"""The parts of the probability of error that go to the two bounds and to the number of rows."""
ROUNDING = 0.1
_MOST = 8


@dataclass(frozen=True)
class Bound:
    """Bounds at the stated confidence: the ℓ1 distance is at most `l1` rows, and the error of each cell at most `cell`
    rows.

    `source` is "distance", "measured" or "trivial": which of the bounds says most of the ℓ1 distance.
    """

    l1: float
    cell: float
    source: str


@dataclass(frozen=True, eq=False)
class Distance:
    """The noisy distance, in rows, of the table's counts from an answer."""

    answer: NDArray[np.int64]
    rows: int
    sigma: Fraction


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data from which bounds are computed. The first `certain` measurements would have been made whatever came out;
    `rounds` is how many more the schedule had, and `shapes` the marginals that they might have been of."""

    domain: Domain
    measurements: tuple[MarginalMeasurement, ...]
    certain: int
    rounds: int
    shapes: tuple[Clique, ...]
    distances: Mapping[Clique, Distance]
    _rows: dict[float, float] = field(default_factory=dict, init=False, repr=False)

    def bound(self, clique: Clique, answer: Floats, confidence: float = 0.95) -> Bound:
        """The bounds of one marginal's answer, each with that confidence."""
        miss = 1 - confidence
        norm_bound, cell = self.measured(clique, answer, MEASURED * miss)
        found = {
            "distance": self.distance(clique, answer, DISTANCE * miss),
            "measured": norm_bound,
            "trivial": self.rows(ROWS * miss) + float(np.abs(answer).sum()),
        }
        source = min(found, key=found.__getitem__)
        return Bound(found[source], min(cell, found[source]), source)

    def distance(self, clique: Clique, answer: Floats, miss: float) -> float:
        """A bound from the measured distance; infinite where there is none. No distance is below 0: where noise made it
        so, the bound is that of the noise, which is larger, and says what could be known."""
        if clique not in self.distances:
            return math.inf
        known = self.distances[clique]
        noise = NormalDist().inv_cdf(1 - miss) * float(known.sigma) + 0.5
        return max(0, known.rows) + noise + float(np.abs(answer - known.answer).sum())

    def rows(self, miss: float) -> float:
        """A bound of the number of rows, the same for every clique."""
        if miss not in self._rows:
            self._rows[miss], _ = self.measured((), np.zeros(()), miss)
        return self._rows[miss]

    def measured(self, clique: Clique, answer: Floats, miss: float) -> tuple[float, float]:
        """Bounds of the ℓ1 distance and of the largest cell's; infinite where no measurement holds the clique."""
        cells = max(1, self.domain.cells(clique))
        sure, more = self._holding(clique)
        kinds = len(self._kinds.get(clique, ())) or 1
        best, best_cell = math.inf, math.inf
        used, least = [*sure, *more[:_MOST]], max(1, len(sure))
        averages = self._averages(used, least, clique, cells)
        for count, (average, variance, rounding) in enumerate(averages, least - len(sure)):
            ways = math.log(2) if count == 0 else (1 + count) * math.log(2) + count * math.log(kinds)
            ways += _log_sets(max(self.rounds, len(more)), count)
            share = miss * math.exp(-ways)
            away = np.abs(average - answer)
            best = min(best, float(away.sum()) + norm(cells, variance, rounding, share))
            best_cell = min(best_cell, float(away.max()) + largest(cells, variance, rounding, share))
        return best, best_cell

    def _holding(self, clique: Clique) -> tuple[list[MarginalMeasurement], list[MarginalMeasurement]]:
        """The measurements that count each cell of the clique separately: those certain from the start, and the others,
        those of least noise first."""
        every = set(range(len(self._ordered)))
        places = sorted(every.intersection(*(self._apart.get(name, ()) for name in clique)))
        sure = [self._ordered[place] for place in places if place < self.certain]
        return sure, [self._ordered[place] for place in places[len(sure) :]]

    @cached_property
    def _ordered(self) -> Sequence[MarginalMeasurement]:
        """The certain measurements, then the others by their variance in each cell of whatever clique they hold."""
        more = sorted(self.measurements[self.certain :], key=lambda one: one.values.size * float(one.sigma) ** 2)
        return [*self.measurements[: self.certain], *more]

    @cached_property
    def _apart(self) -> Mapping[str, set[int]]:
        """For each column the places in that order of the measurements that count its cells separately."""
        found: dict[str, set[int]] = {}
        for place, one in enumerate(self._ordered):
            for name, merged in zip(one.clique, one.merged or (None,) * len(one.clique), strict=True):
                if merged is None:
                    found.setdefault(name, set()).add(place)
        return found

    @cached_property
    def _kinds(self) -> Mapping[Clique, set[int]]:
        """For each part of the marginals that might have been measured, how many cells those may have had."""
        found: dict[Clique, set[int]] = {}
        for shape in self.shapes:
            cells = self.domain.cells(shape)
            for size in range(len(shape) + 1):
                for part in itertools.combinations(shape, size):
                    found.setdefault(part, set()).add(cells)
        return found

    def _averages(
        self, used: Sequence[MarginalMeasurement], least: int, clique: Clique, cells: int
    ) -> Iterator[tuple[Floats, float, float]]:
        """Of the first `least` measurements, of one more, and so on up to all: the weighted average on the clique, its
        variance in each cell, and s of its rounding.

        With w_t = 1/v_t these are Σ w_t·x_t / Σ w_t, 1 / Σ w_t and √(Σ k_t·w_t²) / Σ w_t: three running sums. That of
        squares is kept as its root, so that no square is too small or too large for a float.
        """
        counts, weights, root = np.zeros(self.domain.shape(clique)), 0.0, 0.0
        for place, one in enumerate(used, 1):
            repeats = one.values.size / cells
            weight = 1 / (repeats * float(one.sigma) ** 2)
            counts += _onto(one, clique) * weight
            weights += weight
            root = math.hypot(root, math.sqrt(repeats) * weight)
            if place >= least:
                yield counts / weights, 1 / weights, root / weights


def norm(cells: int, variance: float, rounding: float, miss: float) -> float:
    """An upper bound of the noise's ℓ1 norm, exceeded with at most the given probability."""
    smooth, rough = (1 - ROUNDING) * miss, ROUNDING * miss
    gaussian = math.sqrt(2 / math.pi) * cells + math.sqrt(2 * cells * math.log(1 / smooth))
    return math.sqrt(variance) * gaussian + rounding * (cells / 2 + math.sqrt(cells * math.log(1 / rough) / 2))


def largest(cells: int, variance: float, rounding: float, miss: float) -> float:
    """An upper bound of the noise of every cell at once: a union bound, and Hoeffding's inequality for the rounding."""
    smooth, rough = (1 - ROUNDING) * miss / cells, ROUNDING * miss / cells
    return -NormalDist().inv_cdf(smooth / 2) * math.sqrt(variance) + rounding * math.sqrt(math.log(2 / rough) / 2)


def _log_sets(times: int, count: int) -> float:
    return math.lgamma(times + 1) - math.lgamma(count + 1) - math.lgamma(times - count + 1)


def _onto(one: MarginalMeasurement, clique: Clique) -> Floats:
    axes = tuple(axis for axis, name in enumerate(one.clique) if name not in clique)
    return np.asarray(one.values.sum(axis=axes), float)
