"""The base of all constructions: a price, a noisy number of rows, and the release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.loss import DiscreteLaplace
from discreet.trusted.ring_c.universe import (
    MOST_ROWS,
    Database,
    LinearQueries,
    Queries,
    Universe,
    number,
    price,
    refuse,
)

SIZE_SHARE = Fraction(1, 8)
"""How much of ε the number of rows gets: its error enters every bound only once or twice."""


@dataclass(frozen=True, kw_only=True)
class Construction:
    """A construction's price `epsilon`, of which an eighth is for the number of rows, and `beta`, the probability with
    which its bound may fail. Numbers are taken as written.

    The number of rows n is private, since neighbours differ in it. It is released once, with discrete Laplace noise of
    scale 1/ε_n for its sensitivity 1 (of as many rows as one person may have, where it may have more; Dwork & Roth
    2014, Theorem 3.6), cut to what is possible, and from then on everything is scaled by that noisy n: no output
    depends on n itself.
    """

    epsilon: Fraction
    beta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", price(self.epsilon))
        object.__setattr__(self, "beta", number("beta", self.beta, 0, 1))
        if self.beta < Fraction(1, 10**12):
            raise refuse("beta must be at least 10^-12", "beta", "write beta=1e-6")

    @property
    def rows_epsilon(self) -> Fraction:
        """What the number of rows costs."""
        return self.epsilon * SIZE_SHARE

    @property
    def rest_epsilon(self) -> Fraction:
        """What is left for everything else."""
        return self.epsilon - self.rows_epsilon

    @property
    def moved(self) -> int:
        """By how many rows one person changes a database."""
        return 1

    @property
    def rows_noise(self) -> Laplace:
        """On the number of rows."""
        return Laplace(self.moved / self.rows_epsilon)

    @property
    def rows_loss(self) -> DiscreteLaplace:
        """Of the noisy number of rows: pure ε, `rows_epsilon`."""
        return self.rows_noise.loss(self.moved)

    def noisy_rows(self, database: Database) -> int:
        """The number of rows with noise: from 0 to 2^50."""
        (noisy,) = self.rows_noise.release([database.rows])
        return min(max(0, noisy), MOST_ROWS)

    def rows_width(self, parts: int) -> int:
        """The noisy number of rows is within this of the true one, but for a `parts`-th of beta."""
        return self.rows_noise.half_width(self.sure(parts))

    def sure(self, parts: int) -> float:
        """1 − beta/parts, not rounded down."""
        return math.nextafter(1 - float(self.beta) / parts, 1.0)


@dataclass(frozen=True)
class Synopsis:
    """What a construction released: a synthetic database, and the noisy number of rows that it stands for.

    `error` is the bound that holds for it with probability 1 − beta, in persons (or steps of the queries).
    """

    database: Database
    rows: int
    error: float

    def answers(self, queries: Queries) -> list[int]:
        """The decoded answers: those of the synthetic database, counts rescaled to `rows` rows and rounded."""
        of_this_universe(self.database, queries)
        size = self.database.rows
        found = queries.answers(self.database.counts)
        if size == self.rows or size == 0 or not isinstance(queries, LinearQueries):
            return found
        return [(2 * answer * self.rows + size) // (2 * size) for answer in found]


def of_this_universe(database: Database, queries: Queries) -> None:
    """Raises QuestionError where the database and the queries have different universes."""
    if database.universe != queries.universe:
        fix = "build both over the same Universe"
        raise refuse("the database and the queries have different universes", "database", fix)


def rounded(universe: Universe, shares: NDArray[np.float64], rows: int) -> Database:
    """A database of `rows` rows near these shares of a whole: every share rounded down to a multiple of 1/rows, and
    what is lost put on the first element, so that no query's share changes by more than elements/rows."""
    total = float(np.sum(shares))
    counts = [min(rows, max(0, math.floor(float(share) / total * rows))) for share in shares]
    while (spare := rows - sum(counts)) < 0:  # floating point may round up a hair
        largest = max(range(len(counts)), key=counts.__getitem__)
        counts[largest] += spare
    counts[0] += spare
    return Database(universe, counts)


def shown(value: float) -> str:
    """A bound for people."""
    return f"{value:,.6g}" if abs(value) < 10**5 or math.isinf(value) else f"{math.ceil(value):,}"


def explained(title: str, lines: list[str], bound: float, widest: float, rows: int, beta: Fraction, what: str) -> str:
    """The text that stands before a run: parameters, the bound, and whether it says anything at this size."""
    said = f"with probability {1 - float(beta):.6g} {what} within {shown(bound)}, for a database of {rows:,} rows"
    verdict = [] if bound < widest else [f"this bound says nothing at this size: no error could exceed {shown(widest)}"]
    return "\n".join([title, *(f"  {line}" for line in [*lines, said, *verdict])])
