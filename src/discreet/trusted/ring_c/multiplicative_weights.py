"""Multiplicative weights: a distribution over the universe, moved towards noisy counts (Dwork & Roth 2014, section
4.2).

The distribution is public: it is made of noisy counts only, so floating point may carry it.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.loss import Batch, DiscreteLaplace, Pure
from discreet.trusted.ring_b.further_losses import BoundedRange
from discreet.trusted.ring_b.selection import ExponentialMechanism
from discreet.trusted.ring_b.sparse import AboveThreshold
from discreet.trusted.ring_c.construction import Construction, Synopsis, explained, of_this_universe, rounded, shown
from discreet.trusted.ring_c.universe import MOST_ROWS, Database, LinearQueries, Universe, number, refuse, whole

Shares = NDArray[np.float64]


def moved(shares: Shares, query: Shares, noisy: int, rows: int) -> Shares:
    """The distribution after one update with a noisy count: a(i)·e^(η·q(i)), normalised, η = (v/rows − q(a))/2.

    With b the true distribution, v/rows cut to [0, 1] and off from q(b) by at most e, and D = q(b) − q(a): the relative
    entropy Σ b ln(b/a) falls by η·q(b) − ln(Σ a·e^(η·q)) ≥ η·D − η², as e^z ≤ 1 + z + z² for z ≤ 1; with v/rows = q(b)
    − e′, |e′| ≤ e, that is (D² − e′²)/4 ≥ (D² − e²)/4 (Hardt, Ligett & McSherry 2012, Theorem 2.2; Dwork & Roth 2014,
    Theorem 4.10).
    """
    share = min(max(noisy, 0), max(1, rows)) / max(1, rows)
    found = shares * np.exp(query * ((share - float(query @ shares)) / 2))
    result: Shares = found / found.sum()
    return result


def counted(shares: Shares, query: Shares, rows: int) -> int:
    """The count of a query by the distribution, for so many rows, rounded."""
    return round(float(query @ shares) * rows)


@dataclass(frozen=True, kw_only=True)
class MultiplicativeWeightsExponential(Construction):
    """MWEM (Hardt, Ligett & McSherry 2012): T times, choose the query that the distribution answers worst, count it
    with noise, move the distribution; released is the average of the distributions before each move.

    Privacy. The number of rows n̂ is released with noise; what is left, ε, is spent in T rounds, half of each on the
    choice and half on the count: ε/(2T). Scores |c_q(x) − r_q| compare the true count with the distribution's rounded
    one, which is public: one person added or removed moves each by at most 1, up or down (the paper knows n and
    replaces a row). The choice has bounded range; the count has discrete Laplace noise of scale 2T/ε.

    Utility, with β/3 for each kind of failure: n's noise is within h, all T counts' within L, and each choice within s
    = (4T/ε)·ln(3T|Q|/β) of the worst (Corollary 3.12). With D_i the i-th chosen query's error in fractions and e = (L +
    h)/n̂, the relative entropy starts at or below ln|X| and falls by (D_i² − e²)/4 or more each time (`moved`), so the
    mean of D_i is at most 2√(ln|X|/T) + e. The worst query's error is at most (s + 2h + 1)/n̂ more: the scores compare
    counts, of n and of n̂ rows. The average's error is at most the mean of the worst errors. As a count it is within
    another h, and rounding costs 2. In persons: 2(n + h)√(ln|X|/T) + L + 4h + s + 3. (Theorem 2.2 has 2n√(ln|X|/T) +
    10T ln|Q|/ε, which this is for h = 0 and β such that each choice and count fails with probability 1/|Q|.)
    """

    queries: LinearQueries
    rounds: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("rounds", self.rounds, 1, 100_000)
        if not isinstance(self.queries, LinearQueries):
            raise refuse("multiplicative weights need counting queries", "queries", "give LinearQueries")

    @property
    def each_epsilon(self) -> Fraction:
        """What one choice, or one count, costs."""
        return self.rest_epsilon / (2 * self.rounds)

    @property
    def _noise(self) -> Laplace:
        return Laplace(1 / self.each_epsilon)

    def loss(self) -> Batch:
        """Of the number of rows and of T choices and T counts, declared together: ε in all."""
        one = (BoundedRange(self.each_epsilon), DiscreteLaplace(self.each_epsilon, 1))
        return Batch((self.rows_loss, *one * self.rounds))

    def bound(self, rows: int) -> float:
        """With probability 1 − beta all counts are within this many persons, for a database of so many rows."""
        whole("rows", rows, 0, 10**18)
        return self.within(rows + self.rows_width(3))

    def within(self, rows: int) -> float:
        """The same when the noisy number of rows is `rows`."""
        width, failing = self.rows_width(3), float(self.beta) / 3
        count = self._noise.half_width(self.sure(3), self.rounds)
        choice = 2 / float(self.each_epsilon) * math.log(self.rounds * self.queries.size / failing)
        regret = 2 * rows * math.sqrt(math.log(self.queries.universe.size) / self.rounds)
        return regret + count + 4 * width + choice + 3

    def explain(self, rows: int) -> str:
        """The noise, Theorem 2.2 as printed, our bound, the price, and whether the bound says anything, in words, for a
        database of so many rows."""
        printed = 2 * rows * math.sqrt(math.log(self.queries.universe.size) / self.rounds)
        printed += 10 * self.rounds * math.log(self.queries.size) / float(self.epsilon)
        certain = 1 - 2 * self.rounds / self.queries.size
        lines = [
            f"T = {self.rounds:,} rounds, noise of scale {float(1 / self.each_epsilon):.6g} persons on each count",
            f"Theorem 2.2 for a public number of rows: {shown(printed)} persons, probability {max(0.0, certain):.4g}",
            f"price: epsilon {float(self.epsilon):.6g}",
        ]
        title = "MWEM (Hardt, Ligett & McSherry 2012, Theorem 2.2)"
        return explained(title, lines, self.bound(rows), rows, rows, self.beta, "all counts are")

    def release(self, database: Database) -> Synopsis:
        """All rounds: a synthetic database near the average of the distributions, and the noisy number of rows. Raises
        QuestionError where the database is over another universe than the queries."""
        of_this_universe(database, self.queries)
        rows = self.noisy_rows(database)
        exact = self.queries.answers(database.counts)
        matrix = self.queries.array.astype(float)
        choice = ExponentialMechanism(self.each_epsilon)
        shares: Shares = np.full(self.queries.universe.size, 1 / self.queries.universe.size)
        total = np.zeros_like(shares)
        for _ in range(self.rounds):
            total += shares
            public = [round(share * rows) for share in (matrix @ shares).tolist()]
            place = choice.release([abs(true - other) for true, other in zip(exact, public, strict=True)])
            (noisy,) = self._noise.release([exact[place]])
            shares = moved(shares, matrix[place], noisy, rows)
        size = min(MOST_ROWS, max(1, rows * self.queries.universe.size))
        return Synopsis(rounded(self.queries.universe, total, size), rows, self.within(rows))


@dataclass(frozen=True, kw_only=True)
class OnlineMultiplicativeWeights(Construction):
    """Private multiplicative weights for `questions` counting queries, each asked after the answers to those before
    (Hardt & Rothblum 2010; Dwork & Roth 2014, Algorithms 6 and 7, Theorem 4.14).

    A public distribution answers. Above threshold watches whether a question is answered badly by it; if so, the count
    is released with noise and moves the distribution, which can happen at most c times.

    Privacy. The number of rows is released with noise at ε_n, when the run opens. Of what is left, ε, half goes to
    above threshold over |c_q(x) − r_q| with r_q the rounded public answer, half to at most c + 1 counts with discrete
    Laplace noise of scale 2(c + 1)/ε: pure ε in all, however many questions (Theorems 3.25 and 3.28). One person added
    or removed moves c_q by 0 or 1 and |c_q − r_q| by at most 1, up or down. (The book asks c_q − r_q and r_q − c_q one
    after the other; the noisy count tells the sign.) Where a person may have R = `rows_per_person` rows, all of this
    moves by at most R, and all noise is R times as large; databases and bounds then count rows.

    Utility, with β/3 for each kind of failure: n's noise within h, that of the counts within L, all replies of above
    threshold right to within w (Theorem 3.24). The threshold is ⌈α·n̂⌉ + L + 2h + w + 1. At a yes, |c_q − r_q| ≥ α·n̂ +
    L + 2h + 1, so D·n̂ ≥ α·n̂ + L + h in fractions of the distributions, the count's error there is e ≤ (L + h)/n̂, and
    the relative entropy falls by (D² − e²)/4 ≥ α²/4 (`moved`). It starts at or below ln|X| and is never negative: at
    most c = 4 ln|X|/α² times. Every answer is within ⌈α·n̂⌉ + L + 2h + 2w + 1 persons. (Theorem 4.14: 3α for a public
    n, α ≥ 32 ln|X|(ln|Q| + ln(32 ln|X|/(α²β)))/(ε·α²·n).)
    """

    universe: Universe
    questions: int
    alpha: Fraction
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("questions", self.questions, 1, 10**9)
        whole("rows_per_person", self.rows_per_person, 1, 10**9)
        object.__setattr__(self, "alpha", number("alpha", self.alpha, 0, 1))
        if self.updates > 10**6:
            message = f"there might be {self.updates:,} updates, and at most {10**6:,} are allowed"
            raise refuse(message, "alpha", "take a larger alpha")

    @property
    def moved(self) -> int:
        return self.rows_per_person

    @property
    def updates(self) -> int:
        """c, how often the distribution can move."""
        return math.floor(4 * math.log(self.universe.size) / float(self.alpha) ** 2)

    @property
    def half_epsilon(self) -> Fraction:
        """The price of above threshold, and that of all noisy counts."""
        return self.rest_epsilon / 2

    @property
    def noise(self) -> Laplace:
        """On each noisy count."""
        return Laplace(self.moved * (self.updates + 1) / self.half_epsilon)

    def watch(self, threshold: int) -> AboveThreshold:
        """What says whether an answer is off by at least `threshold`, up to c + 1 times yes, at `half_epsilon`."""
        return AboveThreshold(threshold, self.half_epsilon, self.moved, self.updates + 1)

    @property
    def widths(self) -> tuple[int, int, int]:
        """h, L and w, in persons."""
        count = self.noise.half_width(self.sure(3), self.updates + 1)
        return self.rows_width(3), count, math.ceil(self.watch(0).half_width(self.sure(3), self.questions))

    def threshold(self, rows: int) -> int:
        """Of the public answer's error, when the noisy number of rows is `rows`."""
        rows_width, count, reply = self.widths
        return math.ceil(self.alpha * rows) + count + 2 * rows_width + reply + 1

    def loss(self) -> Pure:
        """Of a whole run, to be reserved when it opens. Pure: what is asked beside it composes with it."""
        return Pure(self.epsilon)

    def bound(self, rows: int) -> float:
        """With probability 1 − beta all answers are within this many persons, for a database of so many rows."""
        whole("rows", rows, 0, 10**18)
        return self.within(rows + self.rows_width(3))

    def within(self, rows: int) -> float:
        """The same when the noisy number of rows is `rows`."""
        _, _, reply = self.widths
        return float(self.threshold(rows) + reply)

    def theorem(self, rows: int) -> float:
        """Three times the least α of Theorem 4.14, as a share of a public number of rows."""
        logarithm, beta = math.log(max(2, self.universe.size)), float(self.beta)

        def fits(alpha: float) -> bool:
            inner = math.log(self.questions) + math.log(32 * logarithm / (alpha**2 * beta))
            return alpha**3 * float(self.epsilon) * max(1, rows) >= 32 * logarithm * inner

        low, high = 1e-9, 1e9
        for _ in range(100):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        return 3 * high

    def explain(self, rows: int) -> str:
        """The threshold, the noise, Theorem 4.14 for a public number of rows, our bound, the price, and whether the
        bound says anything, in words, for a database of so many rows."""
        lines = [
            f"{self.questions:,} questions, at most c = {self.updates:,} updates",
            f"threshold {self.threshold(rows):,} persons, noise of scale {float(self.noise.scale):.6g} on noisy counts",
            f"Theorem 4.14 for a public number of rows: {self.theorem(rows):.4g} of the rows",
            f"price: epsilon {float(self.epsilon):.6g}",
        ]
        title = "private multiplicative weights, online (Dwork & Roth 2014, Theorem 4.14)"
        return explained(title, lines, self.bound(rows), rows, rows, self.beta, "all answers are")

    def open(self, database: Database) -> OnlineRun:
        """A run: the number of rows and the threshold's noise are drawn now."""
        if database.universe != self.universe:
            fix = "build both over the same Universe"
            raise refuse("the database has another universe", "database", fix)
        return OnlineRun(self, database)


class OnlineRun:
    """An open run of `OnlineMultiplicativeWeights`: ask until it has ended.

    It belongs to the process that opened it and cannot be copied or stored: a copy would answer again with the same
    threshold. No representation shows a count.
    """

    __slots__ = ("_answered", "_database", "_lock", "_process", "_shares", "_watch", "construction", "error", "rows")

    def __init__(self, construction: OnlineMultiplicativeWeights, database: Database) -> None:
        self.construction = construction
        self._database = database
        self.rows = construction.noisy_rows(database)
        self.error = construction.within(self.rows)
        self._shares: Shares = np.full(construction.universe.size, 1 / construction.universe.size)
        self._watch = construction.watch(construction.threshold(self.rows)).open()
        self._answered = 0
        self._process, self._lock = os.getpid(), threading.Lock()

    @property
    def ended(self) -> bool:
        """Whether all questions have been asked, or the distribution has moved once too often."""
        return self._watch.halted or self._answered >= self.construction.questions

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return self._answered

    def ask(self, query: Sequence[int]) -> int:
        """The answer to a counting query, a 0 or 1 for each element. Raises QuestionError where it is none, or the run
        has ended; then nothing is spent of the run."""
        checked = LinearQueries(self.construction.universe, [query])
        if os.getpid() != self._process:
            raise refuse("the run belongs to another process", "ask", "open another one")
        with self._lock:
            if self.ended:
                raise refuse("the run has ended", "ask", "open another one")
            self._answered += 1
            return self._reply(checked)

    def _reply(self, checked: LinearQueries) -> int:
        vector: Shares = checked.array[0].astype(float)
        (exact,) = checked.answers(self._database.counts)
        public = counted(self._shares, vector, self.rows)
        if not self._watch.ask(abs(exact - public)):
            return public
        (noisy,) = self.construction.noise.release([exact])
        self._shares = moved(self._shares, vector, noisy, self.rows)
        return noisy

    def synopsis(self) -> Synopsis:
        """The public distribution as it is now, as a synthetic database: it costs nothing. Its bound holds for the
        questions that were answered from it."""
        universe = self.construction.universe
        size = min(MOST_ROWS, max(1, self.rows * universe.size))
        return Synopsis(rounded(universe, self._shares, size), self.rows, self.error)

    def __repr__(self) -> str:
        return f"<online multiplicative weights, {self._answered:,} answers, {'ended' if self.ended else 'open'}>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a run cannot be copied or stored")
