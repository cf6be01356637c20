"""The base synopsis generator for arbitrary queries, by brute force (Dwork & Roth 2014, Theorem 6.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.reference.draws import PublicDraws
from discreet.textbook.composition import each, together
from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_c.construction import Construction, Synopsis, explained, of_this_universe, shown
from discreet.trusted.ring_c.universe import (
    FARTHEST,
    Database,
    Queries,
    histograms,
    log_multisets,
    multisets,
    number,
    refuse,
    whole,
)

MOST_DATABASES = 1_000_000
"""A search or a choice among more databases than this is refused."""

MOST_ANSWERS = 10_000_000


def uniform(size: int) -> tuple[int, ...]:
    """The same weight for each of so many queries."""
    return (1,) * size


def few_enough(elements: int, rows: int, where: str, fix: str) -> None:
    """Raises QuestionError where the databases of so many rows are too many to be looked at."""
    size = log_multisets(elements, rows) / math.log(10)
    databases = multisets(elements, rows) if size < 15 else 10**15
    if databases > MOST_DATABASES:
        many = f"{databases:,}" if size < 15 else f"about 10^{size:.0f}"
        message = f"{many} databases would have to be looked at, and at most {MOST_DATABASES:,} are"
        raise refuse(message, where, fix)


@dataclass(frozen=True, kw_only=True)
class SynopsisGenerator(Construction):
    """What base synopsis generators share: k queries are drawn from a distribution over the class, answered with
    Laplace noise, and never looked at again; all that follows is post-processing.

    (k, λ, η = 1/3, β): for every distribution D over the queries, but with probability β, queries of D-weight at least
    1/2 + η = 5/6 are answered within λ (Definition 6.1).

    Privacy: `runs`·k answers of the queries' sensitivity with discrete Laplace noise of scale b = sensitivity/ε₀, each
    ε₀-DP, adaptively, are (ε − ε_n, δ)-DP by `composition.each`; the number of rows costs ε_n, once for all runs. D
    may be private, as in boosting: who draws from it pays for the draws.

    Generalisation (Lemma 6.5, here by counting databases). Call a synopsis bad if more than 1/6 of D is answered with
    an error above λ. A bad one agrees with k independent queries of D with probability at most (5/6)^k. There are M
    synopses that a run can give, so that some bad one agrees has probability at most M·(5/6)^k ≤ M·e^(−k/6) ≤ β′ for
    k ≥ 6(ln M + ln(1/β′)). The book counts sequences, ln M = n ln|X|; a query reads histograms only, of which there are
    fewer.
    """

    queries: Queries
    delta: Fraction
    runs: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", number("delta", self.delta, 0, 1, zero=True))
        whole("runs", self.runs, 1, 100_000)

    @property
    def k(self) -> int:
        """How many queries are drawn in a run."""
        raise NotImplementedError

    def tolerance(self, rows: int) -> int:
        """λ in steps of the queries, when the noisy number of rows is `rows`."""
        raise NotImplementedError

    def run(self, database: Database, places: Sequence[int], rows: int) -> Synopsis | None:
        """One run on the queries drawn, for the noisy number of rows."""
        raise NotImplementedError

    @property
    def each_epsilon(self) -> Fraction:
        """ε₀, what one answer costs."""
        return each(self.rest_epsilon, self.delta, self.runs * self.k)

    @property
    def b(self) -> Fraction:
        """The scale of the noise, in steps: sensitivity/ε₀."""
        return self.queries.sensitivity / self.each_epsilon

    def loss(self) -> Batch:
        """Of all runs, with the number of rows."""
        added = self.each_epsilon * self.runs * self.k
        return Batch((self.rows_loss, together(self.rest_epsilon, self.delta, added)))

    def release(self, database: Database, distribution: Sequence[int] | None = None) -> Synopsis | None:
        """One run with queries drawn by the public weights `distribution`, uniformly if there are none."""
        of_this_universe(database, self.queries)
        weights = list(uniform(self.queries.size) if distribution is None else distribution)
        bad = any(isinstance(weight, bool) or not isinstance(weight, int) or weight < 0 for weight in weights)
        if len(weights) != self.queries.size or bad or not any(weights):
            fix = f"give {self.queries.size} whole numbers, not all 0"
            raise refuse("a distribution has one weight for each query", "distribution", fix)
        return self.run(database, PublicDraws(self.k).release(weights), self.noisy_rows(database))

    def limits(self, database: Database, places: Sequence[int]) -> dict[int, tuple[int, int]]:
        """For each query drawn the least and the largest of its noisy answers, in steps. Every draw has noise of its
        own, also where a query was drawn before."""
        exact = self.queries.answers(database.counts)
        noisy = Laplace(self.b).release([exact[place] for place in places])
        found: dict[int, tuple[int, int]] = {}
        for place, value in zip(places, noisy, strict=True):
            low, high = found.get(place, (value, value))
            found[place] = min(low, value), max(high, value)
        return found

    def answer_width(self, parts: int) -> int:
        """All k noisy answers of a run are within this, in steps, but for a `parts`-th of beta: at most b·(ln k +
        ln(parts/β)), rounded up (Theorem 3.8, with the exact tail of discrete noise)."""
        return Laplace(self.b).half_width(self.sure(parts), self.k)

    def _enough(self) -> None:
        if self.k > MOST_ANSWERS:
            message = f"{self.k:,} queries would have to be answered, and at most {MOST_ANSWERS:,} are"
            raise refuse(message, "k", "take a larger alpha, a larger beta or a smaller universe")


@dataclass(frozen=True, kw_only=True)
class BaseGenerator(SynopsisGenerator):
    """The base synopsis generator for arbitrary queries of sensitivity ρ: brute force (Dwork & Roth 2014, Theorem 6.6).

    k queries with noise; then the first database y, in order of size and then lexicographically, that is within λ/2
    of every noisy answer; None (the book's ⊥) where there is none. `most_rows` is a public limit: databases of at
    most so many rows are searched, and the bound holds for a private one of at most so many.

    Neighbours add or remove a person, so the size is private. It is released with noise; with h its width, the search
    is over all sizes within h of it (as the book proposes below the proof). All else is the theorem's statement.

    Multisets instead of sequences: the book searches X^n for the lexicographically first sequence that fits. A query is
    a function of the histogram, so if a sequence fits, so does the same sequence sorted, which comes no later. So the
    first that fits is sorted; sorted sequences are multisets, and `histograms` gives them in the same order: the same
    database is found among C(n + |X| − 1, n) instead of |X|^n.

    Utility: three events with probability β/3 each: the noisy size is farther off than h; some noise is above λ/2; a
    bad database agrees with the k queries (`SynopsisGenerator`). Otherwise x itself is in the search and fits, so there
    is a first y; it fits too, so it is within λ of x on every drawn query, and so on 5/6 of D. (The book knows n and
    has two events: k > 6(ln M + ln(2/β)), λ > 2b(ln k + ln(2/β)).) M counts all databases of at most `most_rows` rows.
    """

    most_rows: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("most_rows", self.most_rows, 1, 10**6)
        few_enough(self.queries.universe.size + 1, self.most_rows, "most_rows", "take a smaller universe or fewer rows")
        self._enough()

    @property
    def databases(self) -> int:
        """M: of at most `most_rows` rows, which are the multisets of that size with one element more."""
        return multisets(self.queries.universe.size + 1, self.most_rows)

    @property
    def k(self) -> int:
        most = log_multisets(self.queries.universe.size + 1, self.most_rows)
        return math.ceil(6 * (most + math.log(3 / self.beta)))

    @property
    def lambda_(self) -> int:
        """λ, in steps: twice what all noise is within."""
        return 2 * self.answer_width(3)

    def tolerance(self, rows: int) -> int:  # noqa: ARG002
        return self.lambda_

    def bound(self, rows: int) -> float:
        """With probability 1 − beta the answers of 5/6 of the queries (by the distribution) are within this, in the
        queries' own unit, for a database of so many rows: λ, and infinite above `most_rows`."""
        whole("rows", rows, 0, 10**18)
        return float(self.lambda_ * self.queries.step) if rows <= self.most_rows else math.inf

    def theorem(self, rows: int) -> tuple[int, float]:
        """k and λ of Theorem 6.6 as printed, for a public number of rows, sequences counted, and all of ε for
        answers."""
        failing = math.log(2 / self.beta)
        k = math.ceil(6 * (rows * math.log(self.queries.universe.size) + failing))
        scale = float(self.queries.rho / each(self.epsilon, self.delta, self.runs * k))
        return k, 2 * scale * (math.log(k) + failing)

    def explain(self, rows: int) -> str:
        """The parameters, Theorem 6.6 for a public number of rows, our bound, and the price, in words; and whether the
        bound says anything for a database of so many rows."""
        k, width = self.theorem(rows)
        lines = [
            f"k = {self.k:,} queries drawn, noise of scale b = {float(self.b * self.queries.step):.6g}",
            f"lambda = {float(self.lambda_ * self.queries.step):.6g}, eta = 1/3",
            f"at most {self.databases:,} databases are looked at",
            f"Theorem 6.6 for a public number of rows: k = {k:,}, lambda = {shown(width)}",
            f"price: epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.6g}, runs {self.runs:,}",
        ]
        widest = float(self.queries.widest(self.most_rows) * self.queries.step)
        title = "base synopsis generator for arbitrary queries (Dwork & Roth 2014, Theorem 6.6)"
        return explained(title, lines, self.bound(rows), widest, rows, self.beta, "5 of 6 answers are")

    def run(self, database: Database, places: Sequence[int], rows: int) -> Synopsis | None:
        found = self.first(self.limits(database, places), rows)
        if found is None:
            return None
        return Synopsis(found, found.rows, float(self.lambda_ * self.queries.step))

    def first(self, limits: dict[int, tuple[int, int]], rows: int) -> Database | None:
        """The first database within λ/2 of all noisy answers, of those sizes that the noisy one allows; or None."""
        half, width, middle = self.lambda_ // 2, self.rows_width(3), min(rows, self.most_rows)
        sizes = range(max(0, middle - width), min(self.most_rows, middle + width) + 1)
        places = sorted(limits)
        least = np.array([_inside(limits[place][1] - half) for place in places])
        most = np.array([_inside(limits[place][0] + half) for place in places])
        for size in sizes:
            for block in histograms(self.queries.universe.size, size):
                answers = self.queries.table(block)[:, places]
                fits = np.flatnonzero(((answers >= least) & (answers <= most)).all(axis=1))
                if len(fits):
                    return Database(self.queries.universe, block[fits[0]])
        return None


def _inside(value: int) -> int:
    return min(max(value, -FARTHEST), FARTHEST)
