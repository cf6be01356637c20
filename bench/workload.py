"""Workloads: variances over asking one by one, over the histogram, over what no strategy is below; and seconds."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.workload import residuals
from discreet.workload.items import PREFIXES, RANGES, Intervals, Item, Marginal
from discreet.workload.optimum import optimum, singular_value_bound
from discreet.workload.plan import GAUSSIAN, LAPLACE, NoiseBudget, strategy

ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
"""The sizes of Adult's fourteen columns, as work on marginals codes them."""

EPSILON, DELTA = Fraction(1), Fraction(1, 10**9)
Figures = list[tuple[str, float]]


def figures() -> Figures:
    """At (1, 1e-9), Gaussian noise against questions with Gaussian noise, Laplace against Laplace."""
    found: Figures = []
    for ways in (1, 2):
        items = marginals(ways)
        found += compared(f"all {ways}-way marginals of Adult", items, ADULT)
        total, _ = residuals.least([(item, float(item.queries)) for item in items], ADULT)
        answers = sum(item.queries for item in items)
        found.append((f"all {ways}-way marginals of Adult: least RMSE at μ = 1", math.sqrt(total / answers)))
    for cells in (128, 1024):
        for kind in (RANGES, PREFIXES):
            item = Intervals((0,), (cells,), cells, kind)
            found += compared(f"all {kind} of {cells} cells", [item], (cells,))
            best, bound = optimum(item.gram()), singular_value_bound(item.gram())
            found.append((f"all {kind} of {cells} cells: RMSE at μ = 1", math.sqrt(best.variance / item.queries)))
            found.append(
                (f"all {kind} of {cells} cells: RMSE over Li & Miklau's bound", math.sqrt(best.variance / bound))
            )
            dual = math.sqrt(best.variance / best.bound)
            found.append((f"all {kind} of {cells} cells: RMSE over the dual bound", dual))
    return found


def marginals(ways: int) -> list[Item]:
    """All marginals of so many of Adult's columns."""
    chosen = itertools.combinations(range(len(ADULT)), ways)
    return [Marginal(columns, tuple(ADULT[column] for column in columns)) for columns in chosen]


def compared(name: str, items: Sequence[Item], sizes: tuple[int, ...]) -> Figures:
    """The mean variance over that of one question of many, and over that of each item's histogram."""
    found: Figures = []
    for kind, amount in ((GAUSSIAN, mu_of_budget(EPSILON, DELTA)), (LAPLACE, EPSILON)):
        noise = NoiseBudget(kind, amount, 1)
        start = time.perf_counter()
        chosen, alone = strategy(items, sizes, [noise])
        taken = time.perf_counter() - start
        mean = float(np.mean(np.concatenate(chosen.variances)))
        found.append((f"{name}, {kind}: mean variance over one by one", mean / alone))
        if len(items) == 1:
            histogram = items[0].cells_summed * noise.alone(1)
            found.append((f"{name}, {kind}: mean variance over a histogram", mean / histogram))
        found.append((f"{name}, {kind}: seconds to plan", taken))
    return found


if __name__ == "__main__":
    for title, value in figures():
        print(f"{title:<80} {value:>12,.4g}", flush=True)
