"""What an earlier release says of today's marginals, weighted by how far today's noisy counts are from it.

Let x be the earlier counts of a clique with c cells, each with noise of variance v, scaled to today's number of rows,
and y today's, with noise of variance s. ‖y − x‖² is c·(s + v) + ‖drift‖² in expectation. So what is left of it above
c·(s + v) estimates the drift, and x is taken as a measurement of today's counts with variance p = v + drift²/c in each
cell: the average of both has weight p/(p + s) on y. That is the estimator of James and Stein (Efron & Morris 1973,
section 2) with x in place of the common mean, and never sure of x beyond its own noise: for three cells or more its
squared error, added up, is in expectation at most about that of y alone, however wrong x is, and near v·s/(v + s) where
nothing changed.

Cliques that are not measured today get the drift of those that are: the weighted mean of their estimates, by the
inverses of their variances, and one deviation more, as it is better to hold too little of the earlier release than too
much. Samples of independent persons differ by about the same ‖drift‖² in every marginal. A marginal of several columns
is left out where the drift is more than what it says beside independent columns.

Privacy: reads no private data. What it takes is the earlier release, which is public or made up by whoever names it,
and noisy counts that were paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.markov import Clique, Domain, MarginalMeasurement
from discreet.markov.measurement import averages
from discreet.markov.tree import Graph
from discreet.synthesis.candidates import Room

Floats = NDArray[np.float64]
CLEAR = 1
"""So many deviations a clique's own drift is above 0 where it counts for it, and so many are added to that of all."""
MOST, LEAST = 1e12, 1e-6
"""Counts and deviations of what is expected are not larger, and deviations not smaller."""


@dataclass(frozen=True, eq=False)
class Expected:
    """What is expected of a marginal: a count for each cell, and the variance of each."""

    clique: Clique
    values: Floats
    variance: float

    @property
    def measurement(self) -> MarginalMeasurement:
        """The same as if it were measured."""
        sigma = Fraction(min(MOST, max(LEAST, math.sqrt(self.variance)))).limit_denominator(10**6)
        values = np.rint(np.clip(self.values, -MOST, MOST)).astype(np.int64)
        return MarginalMeasurement(self.clique, values, sigma)

    @property
    def dependence(self) -> float:
        """The squared distance of its counts from those of independent columns, added up, beyond its noise."""
        axes = range(self.values.ndim)
        total = max(1.0, float(self.values.sum()))
        product = np.full((), total)
        for axis in axes:
            own = np.maximum(0.0, self.values.sum(axis=tuple(other for other in axes if other != axis)))
            product = np.multiply.outer(product, own / max(1.0, float(own.sum())))
        return max(0.0, float(((self.values - product) ** 2).sum()) - self.values.size * self.variance)


@dataclass(frozen=True, eq=False)
class Prior:
    """What an earlier release knows of marginals, in its own number of rows."""

    marginals: tuple[Expected, ...]

    @staticmethod
    def of(domain: Domain, marginals: Sequence[Expected], limit: int, certain: Sequence[Clique] = ()) -> Prior:
        """Of as many marginals as a model with so many cells holds beside what is `certain` to be in it: columns alone,
        then those that say most."""
        room, kept = Room(domain, Graph.of(domain, certain)), []
        for one in sorted(marginals, key=lambda one: (len(one.clique) > 1, -one.dependence)):
            if room.admitted([one.clique], limit):
                room.add(one.clique)
                kept.append(one)
        return Prior(tuple(kept))

    def today(
        self, measured: Sequence[MarginalMeasurement], rows: int | None = None
    ) -> tuple[MarginalMeasurement, ...]:
        """What is expected today, given what was measured until now; `rows` is how many there are, if that is known."""
        found = {one.like.clique: Expected(one.like.clique, one.values, one.sigma**2) for one in averages(measured)}
        if not self.marginals or (not found and rows is None):
            return tuple(one.measurement for one in self.marginals)
        ratio = self._ratio(list(found.values()), rows)
        scaled = [Expected(one.clique, ratio * one.values, ratio**2 * one.variance) for one in self.marginals]
        drifts = {one.clique: _drift(one, found[one.clique]) for one in scaled if one.clique in found}
        common = _common(drifts)
        kept = []
        for one in scaled:
            own, deviation = drifts.get(one.clique, (0.0, math.inf))
            drift = max(common, own if own > CLEAR * deviation else 0.0)
            if len(one.clique) == 1 or drift <= one.dependence:
                kept.append(Expected(one.clique, one.values, one.variance + drift / one.values.size).measurement)
        return tuple(kept)

    def _ratio(self, found: Sequence[Expected], rows: int | None) -> float:
        """By what the earlier counts are multiplied: today's number of rows, weighted as counts are, over theirs."""
        before, variance = _total(self.marginals)
        if rows is not None:
            return rows / max(1.0, before)
        now, noise = _total(found)
        far = max(variance, (now - before) ** 2 - noise)
        return max(1.0, before + far / (far + noise) * (now - before)) / max(1.0, before)


def _drift(earlier: Expected, now: Expected) -> tuple[float, float]:
    """An estimate of the squared drift of a marginal, added up over its cells, and about its deviation."""
    cells, noise = now.values.size, now.variance + earlier.variance
    return float(((now.values - earlier.values) ** 2).sum()) - cells * noise, math.sqrt(2 * cells) * noise


def _common(drifts: Mapping[Clique, tuple[float, float]]) -> float:
    """The drift of marginals of which nothing else is known; never negative."""
    weight = sum(deviation**-2 for _, deviation in drifts.values())
    if not weight:
        return 0.0
    mean = sum(drift * deviation**-2 for drift, deviation in drifts.values()) / weight
    return max(0.0, mean + CLEAR / math.sqrt(weight))


def _total(marginals: Sequence[Expected]) -> tuple[float, float]:
    """The number of rows by all of these, weighted by the inverses of their variances, and its variance."""
    precisions = np.array([1 / (one.values.size * one.variance) for one in marginals])
    sums = np.array([float(one.values.sum()) for one in marginals])
    return max(0.0, float(precisions @ sums / precisions.sum())), 1 / float(precisions.sum())
