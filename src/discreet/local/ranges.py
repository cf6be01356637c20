"""Range queries and quantiles, from reports about the levels of a tree (hierarchical histograms)."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.errors import QuestionError
from discreet.local.answers import Ordered
from discreet.local.channels import Floats
from discreet.local.estimate import Estimate, Oracle, listed, quantile_of


@dataclass(frozen=True)
class Level:
    """The nodes of `size` bins each, from left to right: how they were reported, and their estimates."""

    size: int
    oracle: Oracle
    shares: Floats

    @property
    def precision(self) -> float:
        """The inverse variance of a node of true frequency 0."""
        return 1 / float(self.oracle.variances(np.zeros(1))[0])


@dataclass(frozen=True)
class Tree:
    """Levels from the coarsest to the bins, and what follows from all of them together.

    The bins x that fit best: least Σ_levels precision·(sums of x over nodes − estimates)², where x adds up to 1 (as
    Hay, Rastogi, Miklau & Suciu 2010). It is linear in the estimates, with weights that do not look at them, so every
    sum of x is unbiased. The matrix of the normal equations is block-wise a diagonal plus constants on each node, so it
    is inverted one level after the other (Sherman & Morrison 1950), for all bins at once.
    """

    bins: int
    levels: tuple[Level, ...]
    known: Floats = field(init=False)

    def __post_init__(self) -> None:
        right = sum(level.precision * level.shares[self._nodes(level)] for level in self.levels)
        solved, ones = self._solve(np.asarray(right, float))
        object.__setattr__(self, "known", solved + ones * ((1 - solved.sum()) / ones.sum()))

    def _nodes(self, level: Level) -> Any:
        return np.arange(self.bins) // level.size

    def _solve(self, right: Floats) -> tuple[Floats, Floats]:
        """M⁻¹ times the right side, and M⁻¹ times ones, with M = Σ precision·(which bins share a node)."""
        least = self.levels[-1].precision
        ones, solved = np.full(self.bins, 1 / least), right / least
        for level in self.levels[-2::-1]:
            nodes = self._nodes(level)
            sizes = np.bincount(nodes, ones)
            factor = level.precision / (1 + level.precision * sizes)
            solved = solved - ones * (factor * np.bincount(nodes, solved))[nodes]
            ones = ones - ones * (factor * sizes)[nodes]
        return solved, ones

    def variances(self) -> Floats:
        """Of each bin: the diagonal of the inverse, times by how much its nodes vary more than empty ones, at most."""
        least = self.levels[-1].precision
        ones, diagonal, more = np.full(self.bins, 1 / least), np.full(self.bins, 1 / least), np.ones(self.bins)
        for level in self.levels[::-1]:
            nodes = self._nodes(level)
            spread = level.oracle.variances(np.clip(level.shares, 0, 1)) * level.precision
            more = np.maximum(more, spread[nodes])
            if level is self.levels[-1]:
                continue
            sizes = np.bincount(nodes, ones)
            factor = level.precision / (1 + level.precision * sizes)
            diagonal = diagonal - ones**2 * factor[nodes]
            ones = ones - ones * (factor * sizes)[nodes]
        found: Floats = (diagonal - ones**2 / ones.sum()) * more
        return found

    def between(self, first: int, end: int) -> tuple[float, float]:
        """Share and variance of the bins first ≤ b < end."""
        if (first, end) == (0, self.bins):
            return 1.0, 0.0
        chosen = np.zeros(self.bins)
        chosen[first:end] = 1
        solved, ones = self._solve(chosen)
        solved = solved - ones * (solved.sum() / ones.sum())
        variance = 0.0
        for level in self.levels:
            weights = np.asarray(level.precision * np.bincount(self._nodes(level), solved), np.float64)
            variance += level.oracle.combined(weights, np.clip(level.shares, 0, 1))
        return float(self.known[first:end].sum()), max(0.0, variance)


def _between(one: Mapping[str, float]) -> str:
    return f"{one['from']:g}" if one["from"] == one["to"] else f"{one['from']:g} to {one['to']:g}"


def _sizes() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, …"""
    return (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))


@dataclass(frozen=True, repr=False)
class Ranges(Estimate):
    """Estimates for bins in an order, and for what follows from them. `rows` are the bins, each called by its value.

    `weight` and `shift` are those of a share as the reports of its level alone give it, where these are the largest.
    Fitted together, bins were seen to move by up to one and a half times as much, ranges by up to four and a half.
    """

    lattice: Ordered | None = None
    tree: Tree | None = None

    def grouped(self, most: int = 20) -> list[dict[str, float]]:
        """Lists ranges of alike many bins, `most` at most, from first to last: estimate, low and high of the share."""
        lattice, tree = self._known()
        size = next(size for size in _sizes() if tree.bins <= most * size)
        found = []
        for first in range(0, tree.bins, size):
            low, high = lattice.value(first), lattice.value(min(first + size, tree.bins) - 1)
            found.append({"from": low, "to": high, **self._share(first, min(first + size, tree.bins))})
        return found

    def _share(self, first: int, end: int) -> dict[str, float]:
        share, variance = self._known()[1].between(first, end)
        wide = quantile_of(self.confidence) * math.sqrt(variance)
        return {"estimate": share, "low": share - wide, "high": share + wide}

    def quartiles(self) -> list[dict[str, float]]:
        """Lists the values at or below which a quarter, half and three quarters of the respondents lie, as `quantile`
        gives them, each with its `share`."""
        return [{"share": share, **self.quantile(share)} for share in (0.25, 0.5, 0.75)]

    def __repr__(self) -> str:
        lines = [f"{self.window}: {self.reports:,} reports, ε {self.epsilon:g}; `rows` has each value"]
        lines += listed([(_between(one), one) for one in self.grouped()])
        lines += [
            f"  {100 * one['share']:g} % are at or below {one['estimate']:g}  [{one['low']:g}, {one['high']:g}]"
            for one in self.quartiles()
        ]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])

    def _known(self) -> tuple[Ordered, Tree]:
        assert self.lattice is not None
        assert self.tree is not None
        return self.lattice, self.tree

    def range(self, low: Any, high: Any) -> dict[str, float]:
        """estimate, low and high of the share of those who lie from low to high, both included."""
        lattice, _ = self._known()
        first, last = lattice.code(low), lattice.code(high)
        if first > last:
            raise QuestionError("range", "low is above high", where="range", fix="write the smaller one first")
        return self._share(first, last + 1)

    def quantile(self, share: float) -> dict[str, float]:
        """estimate, low and high of the least value at or below which this share of the respondents lie: where the
        cumulated shares, made to rise, and their intervals' ends reach it."""
        lattice, tree = self._known()
        if not isinstance(share, int | float) or not 0 < share < 1:
            raise QuestionError(
                "quantile", "a quantile must lie between 0 and 1", where="quantile", fix="write for instance 0.5"
            )
        sums = np.cumsum(tree.known)
        rising = (np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]) / 2

        def reached(deviations: float) -> float:
            def end(place: int) -> float:
                wide = math.sqrt(tree.between(0, place + 1)[1]) if deviations else 0.0
                return float(rising[place]) + deviations * wide

            places: Sequence[int] = range(lattice.steps)
            return lattice.value(bisect_left(places, share, key=end))

        wide = quantile_of(self.confidence)
        return {"estimate": reached(0), "low": reached(wide), "high": reached(-wide)}
