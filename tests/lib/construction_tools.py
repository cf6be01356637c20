"""Universes, classes and constructions that tests share, and oracles by brute force."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from scipy import stats

from discreet.textbook import (
    BaseGenerator,
    Boosting,
    Database,
    FractionalGenerator,
    LinearProgram,
    LinearQueries,
    MultiplicativeWeightsExponential,
    SmallDatabase,
    Universe,
    rounds_needed,
)
from discreet.trusted.ring_a.exact import exp_bounds

BETA = Fraction(1, 10**8)
"""With which a bound may fail in a test: a hundred releases fail less often than once in a million runs."""


def universe(size: int) -> Universe:
    return Universe(range(size))


def queries(elements: int, size: int, seed: int = 1) -> LinearQueries:
    drawn = np.random.default_rng(seed).integers(0, 2, (size, elements))
    return LinearQueries(universe(elements), drawn.tolist())


def prefixes(elements: int) -> LinearQueries:
    """How many rows are of one of the first elements: 1, 2, and so on."""
    return LinearQueries(universe(elements), np.tril(np.ones((elements, elements), int)).tolist())


def worst(true: Sequence[int], found: Sequence[int]) -> int:
    return max(abs(one - other) for one, other in zip(true, found, strict=True))


def boosted(kind: type, of: LinearQueries, epsilon: int, delta: str, **more: object) -> Boosting:
    rounds = rounds_needed(of)
    generator = kind(queries=of, epsilon=epsilon, delta=delta, beta=BETA / rounds, runs=rounds, **more)
    return Boosting(generator, epsilon, delta)


def every_construction(of: LinearQueries, epsilon: int = 1) -> list[object]:
    """One of each kind that releases a synopsis, small enough to run at once."""
    return [
        BaseGenerator(queries=of, epsilon=epsilon, delta="1e-6", beta=BETA, most_rows=4),
        LinearProgram(queries=of, epsilon=epsilon, delta="1e-6", beta=BETA),
        FractionalGenerator(queries=of, epsilon=epsilon, delta="1e-6", beta=BETA, alpha="0.2"),
        SmallDatabase(queries=of, epsilon=epsilon, beta=BETA, alpha="0.5"),
        MultiplicativeWeightsExponential(queries=of, epsilon=epsilon, beta=BETA, rounds=5),
        boosted(FractionalGenerator, of, epsilon, "1e-6", alpha="0.2"),
        boosted(BaseGenerator, of, epsilon, "1e-6", most_rows=4),
    ]


def neighbours(elements: int, most: int) -> Iterator[tuple[Database, Database]]:
    """All pairs of databases of at most so many rows that differ by one row."""
    for counts in product(range(most + 1), repeat=elements):
        for place in range(elements):
            more = [*counts[:place], counts[place] + 1, *counts[place + 1 :]]
            if sum(more) <= most:
                yield Database(universe(elements), counts), Database(universe(elements), more)


def lexicographic(of: LinearQueries, limits: Mapping[int, tuple[int, int]], half: int, size: int) -> list[int] | None:
    """The book's search: all sequences of rows, in lexicographic order."""
    for rows in product(range(of.universe.size), repeat=size):
        counts = np.bincount(rows, minlength=of.universe.size)
        answers = of.answers(counts.tolist())
        if all(high - half <= answers[place] <= low + half for place, (low, high) in limits.items()):
            return counts.tolist()
    return None


def ratio(first: Mapping[Hashable, Fraction], second: Mapping[Hashable, Fraction]) -> Fraction:
    """The largest probability ratio of an outcome, either way; both have the same outcomes, none impossible."""
    assert first.keys() == second.keys()
    return max(max(first[x] / second[x], second[x] / first[x]) for x in first)


def surely(first: Mapping[Hashable, float], second: Mapping[Hashable, float]) -> float:
    """A ratio that is reached where each distribution lacks some outcomes: what is missing may have gone anywhere."""
    found = 1.0
    for one, other in ((first, second), (second, first)):
        missing = max(0.0, 1 - math.fsum(other.values())) + 1e-12
        for outcome, mass in one.items():
            found = max(found, mass / (other.get(outcome, 0.0) + missing))
    return found


def at_most(x: Fraction | int) -> Fraction:
    """e^x and a hair more: what a loss of x, drawn to within 2^−150, may reach."""
    return exp_bounds(Fraction(x), 150)[1] * (1 + Fraction(1, 1 << 100))


def two_sided(q: float, reach: int) -> dict[int, float]:
    """(1 − q)/(1 + q)·q^|k| up to ±`reach`; what is beyond is left out."""
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def surely_above(hits: tuple[int, int], draws: int, failing: float = 1e-7) -> float:
    """The logarithm of a ratio of two probabilities that holds but for `failing` (Clopper & Pearson 1934)."""
    low = stats.beta.ppf(failing / 2, hits[0], draws - hits[0] + 1)
    high = stats.beta.isf(failing / 2, hits[1] + 1, draws - hits[1])
    return float(np.log(low / high))
