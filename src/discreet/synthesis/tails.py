"""What a column alone shows of cells that few rows or none have, as a model is fitted to it: post-processing.

Counts below nothing are impossible, so a model of noisy counts makes some rows in each cell, and where many cells are
empty, too many rows. In a column of values in order (how many rows somebody has), they would be the highest. So cells
that show no more than noise are taken together with those beside them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.markov import MarginalMeasurement
from discreet.markov.measurement import Average
from discreet.trusted.ring_c.coding import Binned

UNSEEN, UNSEEN_TAIL = 3, 2.5
"""Deviations up to which counts are taken for noise: that of one cell, and of all beyond a place in order."""

CLOSER = 20
"""By how much less than what is measured the model may be off from what is said of such cells."""

_RATIOS = np.arange(50)[:, None] / 50


def unseen(column: Average, rare: int | None, ordered: int) -> NDArray[np.bool_]:
    """The cells of a column that are taken for empty: the `rare` one, where it is no more than noise; and of the
    `ordered` first the lowest, as long as all below are no more than noise together: all of them, if all are."""
    counts, sigma = column.values, column.sigma
    empty = np.zeros(counts.shape, bool)
    if rare is not None:
        empty[rare] = counts[rare] < UNSEEN * sigma
    empty[: _quiet(counts[:ordered], sigma)] = True
    if _quiet(counts[:ordered][::-1], sigma) == ordered:
        empty[:ordered] = True
    return empty


def falling(column: Average, widths: NDArray[np.int64], rows: float) -> MarginalMeasurement | None:
    """The highest cells of a column, as long as all above are no more than noise together, as the model shall have
    them. None where there are no such cells, or no others. The first cells hold so many values in order as the
    `widths` say; `rows` is how many rows there seem to be.

    If they were taken for empty, the rows of those few who have many would be missing. From the last cell that is seen
    on, rows a value fall by one ratio, which with their height fits the counts best (least squares)."""
    counts, ordered = column.values, len(widths)
    first = ordered - _quiet(counts[:ordered][::-1], column.sigma)
    if first in (0, ordered):
        return None
    near, ends = counts[first - 1 : ordered], np.cumsum(widths[first - 1 :])
    sums = (1 - _RATIOS**ends) / (1 - _RATIOS)
    falls = np.diff(sums, axis=1, prepend=0)
    heights = np.maximum(falls @ near / (falls * falls).sum(axis=1), 0)[:, None]
    best = int(((near - heights * falls) ** 2).sum(axis=1).argmin())
    tail = np.rint(heights[best] * falls[best, 1:]).astype(np.int64)
    merged = np.zeros(len(counts), np.int64)
    merged[first:ordered] = np.arange(1, len(tail) + 1)
    values = np.concatenate([[max(0, round(rows) - int(tail.sum()))], tail])
    merged_to = (tuple(merged.tolist()),)
    return MarginalMeasurement(column.like.clique, values, Fraction(column.sigma) / CLOSER, merged_to)


def widths_of(cells: Binned) -> NDArray[np.int64]:
    """How many whole numbers each cell of such a column holds."""
    low, high = cells.column.minimum, cells.column.maximum
    assert isinstance(low, int)
    assert isinstance(high, int)
    ends = np.array([low, *cells.cuts, high + 1], np.int64)
    found: NDArray[np.int64] = ends[1:] - ends[:-1]
    return found


def _quiet(counts: NDArray[np.float64], sigma: float) -> int:
    """How many of the first counts are no more than noise, each with all before it."""
    noise = UNSEEN_TAIL * sigma * np.sqrt(np.arange(1, len(counts) + 1))
    return int(np.logical_and.accumulate(np.cumsum(counts) < noise).sum())
