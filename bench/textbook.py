"""The textbook's constructions: the bound, the largest error of many runs, and how often it was above the bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.textbook import (
    BaseGenerator,
    Boosted,
    Boosting,
    Database,
    FractionalGenerator,
    LinearProgram,
    LinearQueries,
    MultiplicativeWeightsExponential,
    OnlineMultiplicativeWeights,
    SmallDatabase,
    Synopsis,
    Universe,
    rounds_needed,
    with_best_alpha,
)

BETA = Fraction(1, 20)
DELTA = Fraction(1, 10**6)
RUNS = 100


@dataclass(frozen=True)
class Row:
    """Errors in persons; `bound` holds with probability 0.95 in each run."""

    name: str
    rows: int
    bound: float
    measured: float
    violations: int
    runs: int

    @property
    def markdown(self) -> str:
        verdict = "" if self.bound < self.rows else " (says nothing)"
        shown = f"{self.bound:,.0f}{verdict} | {self.measured:,.0f} | {self.violations} of {self.runs}"
        return f"| {self.name} | {self.rows:,} | {shown} |"


def measured(name: str, database: Database, bound: float, error: Callable[[], float], runs: int) -> Row:
    errors = [error() for _ in range(runs)]
    return Row(name, database.rows, bound, max(errors), sum(one > bound for one in errors), runs)


def class_of(elements: int, size: int) -> LinearQueries:
    """Random counting queries, the same in every run of this program."""
    matrix = np.random.default_rng(7).integers(0, 2, (size, elements))
    return LinearQueries(Universe(range(elements)), matrix.tolist())


def database_of(elements: int, rows: int) -> Database:
    """Few elements with most of the rows, and some with next to none."""
    shares = 1 / (1 + np.arange(elements)) ** 2
    counts = np.floor(shares / shares.sum() * rows).astype(int)
    counts[0] += rows - counts.sum()
    return Database(Universe(range(elements)), counts)


def off(queries: LinearQueries, database: Database, released: Synopsis | Boosted | None) -> list[int]:
    """The errors of all queries; where nothing was found, the largest there could be."""
    if released is None:
        return [database.rows] * queries.size
    return apart(queries.answers(database.counts), released.answers(queries))


def apart(true: list[int], answers: list[int]) -> list[int]:
    return [abs(one - other) for one, other in zip(true, answers, strict=True)]


def rows(runs: int = RUNS) -> list[Row]:
    """Every construction, ε = 1 and δ = 10^−6 in all where no other ε is named."""
    return [*_generators(runs), *_boosted(runs), *_others(runs), _online(runs)]


def _of_six(errors: list[int]) -> float:
    """The error that five of six queries stay within."""
    return float(sorted(errors)[-(-5 * len(errors) // 6) - 1])


def _generators(runs: int) -> list[Row]:
    found = []
    small, few = database_of(2, 4), class_of(2, 3)
    for epsilon in (1, 500):
        brute = BaseGenerator(queries=few, epsilon=Fraction(epsilon), delta=DELTA, beta=BETA, most_rows=20)
        database = small if epsilon == 1 else database_of(2, 20)

        def one(brute: BaseGenerator = brute, database: Database = database) -> float:
            return _of_six(off(few, database, brute.release(database)))

        name = f"base generator by brute force, ε = {epsilon:,}, 2 elements, 5 of 6 queries"
        found.append(measured(name, database, brute.bound(database.rows), one, runs))
    queries, large = class_of(16, 64), database_of(16, 1_000_000)
    fractional = FractionalGenerator(
        queries=queries, epsilon=Fraction(1), delta=DELTA, beta=BETA, alpha=Fraction(1, 50)
    )

    def another() -> float:
        return _of_six(off(queries, large, fractional.release(large)))

    name = "base generator for counts, 16 elements, 64 queries, 5 of 6 queries"
    found.append(measured(name, large, fractional.bound(large.rows), another, runs))
    return found


def _boosted(runs: int) -> list[Row]:
    queries, database = class_of(16, 64), database_of(16, 1_000_000)
    rounds, half = rounds_needed(queries), Fraction(1, 2)
    generator = FractionalGenerator(
        queries=queries, epsilon=half, delta=DELTA / 2, beta=BETA / rounds, alpha=Fraction(1, 50), runs=rounds
    )
    boosting = Boosting(generator, half, DELTA / 2)

    def one() -> float:
        return max(off(queries, database, boosting.release(database)))

    return [measured(f"boosting it, {rounds} rounds, all queries", database, boosting.bound(database.rows), one, runs)]


def _others(runs: int) -> list[Row]:
    queries, database = class_of(16, 64), database_of(16, 1_000_000)
    few, small = class_of(4, 20), database_of(4, 20_000)
    program = LinearProgram(queries=queries, epsilon=Fraction(1), delta=DELTA, beta=BETA)
    chosen = SmallDatabase(queries=few, epsilon=Fraction(1), beta=BETA, alpha=Fraction(1, 5))
    weights = MultiplicativeWeightsExponential(queries=queries, epsilon=Fraction(1), beta=BETA, rounds=100)

    def of_program() -> float:
        return max(off(queries, database, program.release(database)))

    def of_chosen() -> float:
        return max(off(few, small, chosen.release(small)))

    def of_weights() -> float:
        return max(off(queries, database, weights.release(database)))

    return [
        measured("linear program, 16 elements, 64 queries", database, program.bound(database.rows), of_program, runs),
        measured("SmallDB, 4 elements, 20 queries", small, chosen.bound(small.rows), of_chosen, min(runs, 20)),
        measured("MWEM, 100 rounds, 16 elements, 64 queries", database, weights.bound(database.rows), of_weights, runs),
    ]


def _online(runs: int) -> Row:
    queries, database = class_of(16, 500), database_of(16, 10_000_000)
    construction = with_best_alpha(
        OnlineMultiplicativeWeights(
            universe=queries.universe, questions=500, alpha=Fraction(1, 4), epsilon=Fraction(1), beta=BETA
        ),
        database.rows,
    )

    def one() -> float:
        run = construction.open(database)
        return max(apart(queries.answers(database.counts), [run.ask(query) for query in queries.matrix]))

    name = "online multiplicative weights, 16 elements, 500 questions"
    return measured(name, database, construction.bound(database.rows), one, min(runs, 20))


def figures(runs: int = RUNS) -> list[tuple[str, float]]:
    """The largest error of all runs as a share of the bound, and the violations of all."""
    found = rows(runs)
    shares = [(f"{row.name}: largest error over bound", row.measured / row.bound) for row in found]
    return [*shares, ("errors above their bound, of all runs", sum(row.violations for row in found))]


if __name__ == "__main__":
    print("| construction | rows | bound | largest error | above the bound |\n| --- | --- | --- | --- | --- |")
    for row in rows():
        print(row.markdown)
