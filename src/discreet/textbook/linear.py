"""The synthesiser by linear program, and the base generator for counting queries (Dwork & Roth 2014, 6.7 and 6.8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.reference.draws import PublicDraws
from discreet.textbook.base import SynopsisGenerator
from discreet.textbook.composition import each, together
from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_c.construction import Construction, Synopsis, explained, of_this_universe, rounded
from discreet.trusted.ring_c.universe import MOST_ROWS, Database, LinearQueries, log_multisets, number, refuse, whole

SOLVED = Fraction(1, 10**6)
"""HiGHS keeps constraints and optimum to 10^−7 each, in shares of the rows; this is more than both."""

Limits = Mapping[int, tuple[int, int]]


def synthesised(queries: LinearQueries, limits: Limits, rows: int, tolerance: int) -> Database:
    """An integer database near noisy counts, of which each query has the least and the largest (Theorem 6.7).

    The program: shares a_i ≥ 0 of the rows, Σ a_i = 1, and the least t with |rows·Σ_{q(i) = 1} a_i − v| ≤ t for all
    noisy counts v. Let the true database x have n rows, |n − rows| ≤ h, and the noise be within T, with `tolerance` α =
    T + h (in persons; α/rows is the book's). Scaled to `rows` rows, x has counts within h of the true ones, so within
    α of the noisy: t ≤ α, and the solution is within T + α ≤ 2α of the true counts. Noisy counts are cut to [0, rows]
    before, which brings none of them farther from the scaled x, nor farther from the true count than h.

    Rounding down to multiples of 1/W with W = ⌈|X|·rows/α⌉, that is to multiples of at most α/(rows·|X|), with the
    lost shares put on the first element, moves a count by at most rows·|X|/W ≤ α. In all 3α, and `solver` for what the
    program is solved to.
    """
    rows = max(1, rows)
    shares = _solved(queries, limits, rows)
    size = min(MOST_ROWS, -(-queries.universe.size * rows // tolerance))
    return rounded(queries.universe, shares, max(1, size))


def solver(rows: int) -> int:
    """What the solver's precision adds to an error, in persons; nothing below a million rows."""
    return math.floor(SOLVED * rows)


def _solved(queries: LinearQueries, limits: Limits, rows: int) -> NDArray[np.float64]:
    """The shares, by HiGHS. Only released numbers are seen here, so floating point does no harm."""
    from scipy.optimize import linprog  # the weight of an import for those alone who use it

    places = sorted(limits)
    matrix = queries.array[places].astype(float)
    low, high = (np.array([min(max(limits[place][end], 0), rows) for place in places]) / rows for end in (0, 1))
    slack = np.ones((len(places), 1))
    program = linprog(
        np.append(np.zeros(queries.universe.size), 1.0),
        A_ub=np.block([[matrix, -slack], [-matrix, -slack]]),
        b_ub=np.concatenate([low, -high]),
        A_eq=np.append(np.ones(queries.universe.size), 0.0)[None, :],
        b_eq=[1.0],
        method="highs",
    )
    assert program.status == 0, "shares of 1 and a slack of 1 always solve it"
    shares: NDArray[np.float64] = np.maximum(program.x[:-1], 0.0)
    return shares


@dataclass(frozen=True, kw_only=True)
class LinearProgram(Construction):
    """A synthetic database for counting queries, polynomial in |X| and |Q|: noisy counts, a linear program, rounding
    (Dwork & Roth 2014, Theorem 6.7, with the Laplace mechanism as its synopsis generator).

    Privacy: all |Q| counts get discrete Laplace noise of scale b = 1/ε₀ for their sensitivity 1, (ε − ε_n, δ)-DP
    together (`composition.each`; with δ = 0, b = |Q|/(ε − ε_n)); the number of rows costs ε_n. The book's fractional
    counts have noise of scale b/n with a public n. Under add/remove n is private and so is that scale: here the noise
    is on counts, and everything is divided by the noisy n. What follows is post-processing.

    Utility (see `synthesised`): with T the width of all noise and h that of n, each with probability 1 − β/2, α = T + h
    persons, and every query is answered within 3α, whether as a count or, α divided by the noisy n, as a fraction:
    |v/n̂ − c/n| ≤ (T + h·c/n)/n̂ ≤ α/n̂ for a noisy count v of c.
    """

    queries: LinearQueries
    delta: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", number("delta", self.delta, 0, 1, zero=True))
        if not isinstance(self.queries, LinearQueries):
            raise refuse("the linear program is for counting queries", "queries", "give LinearQueries")

    @property
    def b(self) -> Fraction:
        """The scale of the noise, in persons."""
        return 1 / each(self.rest_epsilon, self.delta, self.queries.size)

    @property
    def alpha(self) -> int:
        """α in persons: what noise and rows together are within; at least 1."""
        noise = Laplace(self.b).half_width(self.sure(2), self.queries.size)
        return max(1, noise + self.rows_width(2))

    def loss(self) -> Batch:
        """Of the number of rows, and of all counts together."""
        return Batch((self.rows_loss, together(self.rest_epsilon, self.delta, self.queries.size / self.b)))

    def bound(self, rows: int) -> float:
        """With probability 1 − beta every count is within 3α persons, and `solver` for a database of so many rows."""
        whole("rows", rows, 0, 10**18)
        return self.within(rows + self.rows_width(2))

    def within(self, rows: int) -> float:
        """The same when the noisy number of rows is `rows`."""
        return float(3 * self.alpha + solver(rows))

    def explain(self, rows: int) -> str:
        """The noise, α as a share of the rows, our bound, and the price, in words; and whether the bound says anything
        for a database of so many rows."""
        share = self.alpha / max(1, rows)
        lines = [
            f"{self.queries.size:,} counting queries, noise of scale b = {float(self.b):.6g} persons",
            f"alpha = {self.alpha:,} persons, {share:.4g} of the rows; counts within 3 alpha",
            f"price: epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.6g}",
        ]
        title = "synthesiser by linear program (Dwork & Roth 2014, Theorem 6.7)"
        return explained(title, lines, self.bound(rows), rows, rows, self.beta, "all counts are")

    def release(self, database: Database) -> Synopsis:
        """The synthetic database and the noisy number of rows. Raises QuestionError where the database is over another
        universe than the queries."""
        of_this_universe(database, self.queries)
        rows = self.noisy_rows(database)
        noisy = Laplace(self.b).release(self.queries.answers(database.counts))
        limits = {place: (value, value) for place, value in enumerate(noisy)}
        return Synopsis(synthesised(self.queries, limits, rows, self.alpha), rows, self.within(rows))


@dataclass(frozen=True, kw_only=True)
class FractionalGenerator(SynopsisGenerator):
    """The base synopsis generator for fractional counting queries, in polynomial time (Dwork & Roth 2014, Theorem 6.8).

    k queries with noise, the synthesiser by linear program on them, and then n′ rows drawn from its database, so that
    the synopsis is small and generalises. `alpha` is the share of the rows that drawing may cost: n′ ≥ ln(8k/β)/(2α²).

    Utility: four events with probability β/4 each. The noisy size is off by more than h, or some noise by more than T:
    otherwise the synthesiser's counts are within 3(T + h) persons on the k queries (`synthesised`). The n′ rows differ
    from it by more than α on one of the k queries: 2k·e^(−2n′α²) ≤ β/4 (Hoeffding 1963). A bad synopsis of n′ rows
    agrees with the k queries: k ≥ 6(ln M + ln(4/β)), M = C(n′ + |X| − 1, n′) (`SynopsisGenerator`). As n′ grows with k
    and k with n′, k is the least solution of both. Otherwise λ = 3(T + h) + α·n̂ + 1 persons (and `solver`), the last
    for rounding the decoded counts, holds on 5/6 of D. (The book has n′ = ln k·ln(1/β)/α², α² = ln|Q|/n and 3β.)

    Under add/remove: counts have sensitivity 1 and noise on counts; the noisy n scales what is decoded.
    """

    alpha: Fraction
    queries: LinearQueries

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", number("alpha", self.alpha, 0, 1))
        if not isinstance(self.queries, LinearQueries):
            raise refuse("fractional queries must be counting queries", "queries", "give LinearQueries")
        self._enough()

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """k and n′: upwards from the smallest, until both inequalities hold."""
        beta, k = float(self.beta), 1
        while True:
            rows = math.ceil(math.log(8 * k / beta) / (2 * float(self.alpha) ** 2))
            if rows > 10**6:
                message = f"a synopsis would have {rows:,} rows, and has at most {10**6:,}"
                raise refuse(message, "alpha", "take a larger alpha")
            needed = math.ceil(6 * (log_multisets(self.queries.universe.size, rows) + math.log(4 / beta)))
            if needed <= k:
                return k, rows
            k = needed

    @property
    def k(self) -> int:
        return self._sizes[0]

    @property
    def sample_rows(self) -> int:
        """n′, the rows of the synopsis."""
        return self._sizes[1]

    def tolerance(self, rows: int) -> int:
        """λ in persons, when the noisy number of rows is `rows`."""
        return 3 * self._synthesis + solver(rows) + math.ceil(self.alpha * rows) + 1

    @property
    def _synthesis(self) -> int:
        return max(1, self.answer_width(4) + self.rows_width(4))

    def bound(self, rows: int) -> float:
        """With probability 1 − beta the counts of 5/6 of the queries (by the distribution) are within this many
        persons, for a database of so many rows."""
        whole("rows", rows, 0, 10**18)
        return float(self.tolerance(rows + self.rows_width(4)))

    def explain(self, rows: int) -> str:
        """The parameters, our bound, and the price, in words; and whether the bound says anything for a database of so
        many rows."""
        lines = [
            f"k = {self.k:,} queries drawn, noise of scale b = {float(self.b):.6g} persons",
            f"the synthesiser's 3 alpha = {3 * self._synthesis:,} persons",
            f"{self.sample_rows:,} rows drawn from its database cost {float(self.alpha):.4g} of the rows; eta = 1/3",
            f"price: epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.6g}, runs {self.runs:,}",
        ]
        title = "base synopsis generator for fractional counting queries (Dwork & Roth 2014, Theorem 6.8)"
        return explained(title, lines, self.bound(rows), rows, rows, self.beta, "5 of 6 counts are")

    def run(self, database: Database, places: Sequence[int], rows: int) -> Synopsis:
        whole_one = synthesised(self.queries, self.limits(database, places), rows, self._synthesis)
        drawn = PublicDraws(self.sample_rows).release(whole_one.counts)
        small = Database(self.queries.universe, np.bincount(drawn, minlength=self.queries.universe.size))
        return Synopsis(small, rows, float(self.tolerance(rows)))
