"""The square root of the matrix of running totals, in whole numbers, and how far a person moves what it measures.

A, the lower triangular matrix of ones, takes counts by period to running totals. It is C·C for the lower triangular
Toeplitz matrix C with first column a_0 = 1, a_k = a_(k−1)·(2k − 1)/(2k), as Σ a_k·z^k = (1 − z)^(−1/2) (Fichtenberger,
Henzinger & Upadhyay 2022; Henzinger, Upadhyay & Upadhyay 2023). Measured is C with noise; totals are C times that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

BITS = 20
"""Coefficients are counted in steps of 2^−BITS."""

MOST_PERIODS = 10_000


def coefficients(horizon: int) -> tuple[int, ...]:
    """The first column of C, rounded to whole steps: round(2^BITS·a_k), a_k = binomial(2k, k)/4^k."""
    found, binomial = [], 1
    for k in range(horizon):
        found.append(((binomial << (BITS + 1)) + (1 << (2 * k))) >> (2 * k + 1))
        binomial = binomial * 2 * (2 * k + 1) // (k + 1)
    return tuple(found)


def squared_sensitivity(column: tuple[int, ...], rows: int, periods: int) -> int:
    """By how much a person moves C·x at most, in steps, squared: ‖C·Δ‖² over all Δ that a person can be.

    Unit: a person who adds a vector Δ_t of counts over the groups in each period t, ‖Δ_t‖₁ ≤ `rows`, and in at most
    `periods` periods one that is not 0. Counts may be below 0.

    With c_t the column t of C, ‖C·Δ‖² = Σ_(s,t) ⟨Δ_s, Δ_t⟩·⟨c_s, c_t⟩ ≤ rows²·Σ_(s,t ∈ S) ⟨c_s, c_t⟩ with S the
    periods in which Δ is not 0: no coefficient is below 0, so no ⟨c_s, c_t⟩ is, and |⟨Δ_s, Δ_t⟩| ≤ rows² as ‖Δ_t‖₂ ≤
    ‖Δ_t‖₁. For s < t, ⟨c_s, c_t⟩ = Σ_(u < T − t) a_(u + t − s)·a_u. As a does not rise, it grows where t − s falls, and
    where t falls with t − s kept. Of S in order, the i-th and the j-th are at least j − i apart, and the j-th is at
    least j: so S has at most the sum of the first `periods` periods, which is ‖Σ_(t < periods) c_t‖²: one person
    attains it.

    Raises ValueError where the coefficients rise or are below 0, or a number is no count.
    """
    if any(after > before for before, after in pairwise((*column, 0))) or rows < 1 or periods < 1:
        raise ValueError("coefficients fall to 0, and a person has at least one row in one period")
    sums = list(accumulate(column))
    together = [total - (sums[t - periods] if t >= periods else 0) for t, total in enumerate(sums)]
    return rows**2 * sum(one * one for one in together)


def measured_exactly(column: tuple[int, ...], counted: Sequence[Sequence[int]]) -> list[int]:
    """The last row of C·x in each group, for the counts of all periods up to it."""
    last = len(counted) - 1
    return [sum(column[last - t] * one for t, one in enumerate(group)) for group in zip(*counted, strict=True)]
