"""SmallDB: the exponential mechanism over all small databases (Blum, Ligett & Roth 2008; Dwork & Roth 2014, 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.textbook.base import few_enough
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_b.further_losses import BoundedRange
from discreet.trusted.ring_b.selection import ExponentialMechanism
from discreet.trusted.ring_c.construction import Construction, Synopsis, explained, of_this_universe
from discreet.trusted.ring_c.universe import (
    Database,
    Integers,
    LinearQueries,
    histograms,
    log_multisets,
    multisets,
    number,
    refuse,
    whole,
)


def balanced_alpha(queries: LinearQueries, epsilon: float, beta: float, rows: int) -> float:
    """The error of Theorem 4.5, ((16 ln|X| ln|Q| + 4 ln(1/β))/(ε·n))^(1/3), halved: what α to take for so many rows."""
    logs = 16 * math.log(queries.universe.size) * math.log(queries.size) + 4 * math.log(1 / beta)
    error: float = (logs / (epsilon * rows)) ** (1 / 3)
    return error / 2


@dataclass(frozen=True, kw_only=True)
class SmallDatabase(Construction):
    """A database of m = ln|Q|/α² rows, chosen among all of that size by how well it answers every query (SmallDB; Dwork
    & Roth 2014, Algorithm 4, Proposition 4.4, Theorem 4.5).

    Some database of m rows answers all queries within α of the rows (Lemma 4.3: m rows drawn from x do with probability
    at least 1 − 2|Q|·e^(−2mα²) > 0, for which m > ln(2|Q|)/(2α²) is enough, and ln|Q|/α² where |Q| > 2).

    Privacy. The number of rows n̂ is released with noise. The score of y is −max_q |c_q(x) − n̂·c_q(y)/m|, in persons:
    as n̂ is public by then, adding or removing one person moves each c_q(x) by at most 1, so the score by at most 1, up
    or down. (The book's score is in fractions of a public n, of sensitivity 1/n when a row is replaced.) The
    exponential mechanism with ε − ε_n has bounded range, hence `BoundedRange`. Scores are multiplied by m to be
    integers.

    Utility. With h the width of n's noise, x scaled to n̂ rows has counts within h of the true ones, so some y is
    within α·n̂ + h ≤ α·n + 2h of all counts; the chosen one is worse by at most 2(ln|R| + ln(2/β))/(ε − ε_n) (Theorem
    3.11), |R| = C(m + |X| − 1, m) ≤ |X|^m. Decoding rounds counts by at most 1/2.
    """

    queries: LinearQueries
    alpha: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", number("alpha", self.alpha, 0, 1))
        if not isinstance(self.queries, LinearQueries):
            raise refuse("SmallDatabase needs counting queries", "queries", "give LinearQueries")
        few_enough(self.queries.universe.size, self.m, "alpha", "take a smaller universe or a larger alpha")

    @property
    def m(self) -> int:
        """The rows of the small database."""
        square = float(self.alpha) ** 2
        size = self.queries.size
        return max(math.ceil(math.log(size) / square), math.floor(math.log(2 * size) / (2 * square)) + 1)

    @property
    def databases(self) -> int:
        """|R|."""
        return multisets(self.queries.universe.size, self.m)

    @property
    def choice(self) -> ExponentialMechanism:
        """Over scores in persons times m."""
        return ExponentialMechanism(self.rest_epsilon, self.m)

    def loss(self) -> Batch:
        """Of the number of rows, and of the one choice."""
        return Batch((self.rows_loss, BoundedRange(self.rest_epsilon)))

    def bound(self, rows: int) -> float:
        """With probability 1 − beta all counts are within this many persons, for a database of so many rows."""
        whole("rows", rows, 0, 10**18)
        return self.within(rows + self.rows_width(2))

    def within(self, rows: int) -> float:
        """The same when the noisy number of rows is `rows`."""
        worse = (
            2 * (log_multisets(self.queries.universe.size, self.m) + math.log(2 / self.beta)) / float(self.rest_epsilon)
        )
        return float(self.alpha) * rows + self.rows_width(2) + worse + 1

    def theorem(self, rows: int) -> float:
        """Proposition 4.4 as printed, for a public n, as a share of the rows: α + 2(ln|X| ln|Q|/α² + ln(1/β))/(εn)."""
        square = float(self.alpha) ** 2
        logs = math.log(self.queries.universe.size) * math.log(self.queries.size) / square
        return float(self.alpha) + 2 * (logs + math.log(1 / self.beta)) / (float(self.epsilon) * max(1, rows))

    def explain(self, rows: int) -> str:
        """How many databases there are, Proposition 4.4 for a public number of rows, our bound, and the price, in
        words; and whether the bound says anything for a database of so many rows."""
        lines = [
            f"{self.databases:,} databases of m = {self.m:,} rows, the best within alpha = {float(self.alpha):.4g}",
            f"Proposition 4.4 for a public number of rows: {self.theorem(rows):.4g} of the rows",
            f"price: epsilon {float(self.epsilon):.6g}",
        ]
        title = "SmallDB (Dwork & Roth 2014, Algorithm 4, Proposition 4.4)"
        return explained(title, lines, self.bound(rows), rows, rows, self.beta, "all counts are")

    def release(self, database: Database) -> Synopsis:
        """The small database that was chosen, and the noisy number of rows. Raises QuestionError where the database is
        over another universe than the queries."""
        of_this_universe(database, self.queries)
        rows = self.noisy_rows(database)
        small = self.candidates()
        chosen = small[self.choice.release(self.scores(database, rows, small))]
        return Synopsis(Database(self.queries.universe, chosen), rows, self.within(rows))

    def candidates(self) -> Integers:
        """R: a histogram in each row."""
        return np.concatenate(list(histograms(self.queries.universe.size, self.m)))

    def scores(self, database: Database, rows: int, small: Integers) -> list[int]:
        """−max_q |m·c_q(x) − n̂·c_q(y)| for every y."""
        wide = object if self.m * max(rows, database.rows) >= 1 << 62 else np.int64
        true = np.array(self.queries.answers(database.counts), wide) * self.m
        found: list[int] = []
        for start in range(0, len(small), 1 << 14):
            theirs = self.queries.table(small[start : start + (1 << 14)]).astype(wide) * rows
            found += (-np.abs(theirs - true).max(axis=1)).tolist()
        return found
