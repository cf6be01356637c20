"""The proved bounds against the errors of real runs, at sizes where the bounds say something; β = 10^−8 a release."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from construction_tools import BETA, boosted, every_construction, prefixes, queries, universe, worst
from discreet.textbook import (
    ArbitraryQueries,
    BaseGenerator,
    Boosting,
    Database,
    FractionalGenerator,
    LinearProgram,
    MultiplicativeWeightsExponential,
    OnlineMultiplicativeWeights,
    SmallDatabase,
    Synopsis,
    balanced_alpha,
    rounds_needed,
    with_best_alpha,
)

KIND = "exact"

PLAIN = queries(8, 40)
SKEWED = Database(PLAIN.universe, [0, 3, 250_000, 10, 40_000, 0, 9_000, 120])
EVEN = Database(PLAIN.universe, [30_000] * 8)


@pytest.mark.parametrize("database", [SKEWED, EVEN])
def test_linear_program(database: Database) -> None:
    """Every count within 3α, as a count and as a share of the noisy number of rows."""
    construction = LinearProgram(queries=PLAIN, epsilon=1, delta="1e-6", beta=BETA)
    bound, true = construction.bound(database.rows), PLAIN.answers(database.counts)
    assert bound < database.rows / 20
    for _ in range(5):
        found = construction.release(database)
        assert worst(true, found.answers(PLAIN)) <= found.error <= bound
        size = found.database.rows
        shares = [answer / size for answer in PLAIN.answers(found.database.counts)]
        off = max(abs(share - answer / database.rows) for share, answer in zip(shares, true, strict=True))
        assert off <= 3 * construction.alpha / found.rows
        assert size == -(-8 * found.rows // construction.alpha)  # multiples of α/|X|


@pytest.mark.parametrize("database", [SKEWED, EVEN])
def test_fractional_generator(database: Database) -> None:
    """Five of six queries, by whatever distribution the queries were drawn from, and a small database."""
    construction = FractionalGenerator(queries=PLAIN, epsilon=2, delta="1e-6", beta=BETA, alpha="0.1")
    assert construction.bound(database.rows) < database.rows / 4
    true = PLAIN.answers(database.counts)
    for distribution in ([1] * 40, [1] * 39 + [10**6], [0] * 20 + [3] * 20):
        found = construction.release(database, distribution)
        assert found is not None
        assert found.database.rows == construction.sample_rows
        off = np.array([abs(one - other) for one, other in zip(true, found.answers(PLAIN), strict=True)])
        weights = np.array(distribution)
        assert weights[off <= found.error].sum() >= 5 / 6 * weights.sum()
        assert found.error <= construction.bound(database.rows)


def spread(counts: tuple[int, ...]) -> int:
    return max(counts) - min(counts)


def test_base_generator_for_arbitrary_queries() -> None:
    """Functions that no linear program could take; ε is large, for the bound says nothing at ε = 1."""
    functions = [
        max,
        min,
        spread,
        lambda counts: sum(count > 0 for count in counts),
        lambda counts: Fraction(counts[0], 3),
    ]
    of = ArbitraryQueries(universe(2), functions, rho=1, step=Fraction(1, 3))
    assert of.sensitivity == 3
    construction = BaseGenerator(queries=of, epsilon=8000, delta=0, beta=BETA, most_rows=30)
    assert construction.bound(30) < 8
    assert "says nothing" not in construction.explain(30)
    for counts in ([30, 0], [7, 12], [0, 0], [1, 0]):
        true = of.answers(counts)
        found = construction.release(Database(universe(2), counts))
        assert isinstance(found, Synopsis)
        off = [abs(one - other) for one, other in zip(true, found.answers(of), strict=True)]
        assert sum(error <= construction.lambda_ for error in off) >= 5 / 6 * of.size


def test_base_generator_on_counts_keeps_its_promise_for_every_distribution() -> None:
    of = prefixes(3)
    construction = BaseGenerator(queries=of, epsilon=3000, delta="1e-6", beta=BETA, most_rows=20)
    assert construction.lambda_ < 10
    for distribution in ([1, 1, 1], [1, 0, 0], [5, 1, 100]):
        found = construction.release(Database(of.universe, [4, 0, 15]), distribution)
        assert found is not None
        off = [abs(one - other) for one, other in zip(of.answers([4, 0, 15]), found.answers(of), strict=True)]
        good = sum(weight for weight, error in zip(distribution, off, strict=True) if error <= construction.lambda_)
        assert good >= 5 / 6 * sum(distribution)


@pytest.mark.parametrize(
    ("construction", "database"),
    [
        (boosted(FractionalGenerator, PLAIN, 4, "1e-6", alpha="0.1"), SKEWED),
        (boosted(FractionalGenerator, PLAIN, 4, "1e-6", alpha="0.1"), EVEN),
        (boosted(BaseGenerator, prefixes(2), 100_000, "1e-6", most_rows=30), Database(universe(2), [9, 17])),
    ],
    ids=["skewed", "even", "by brute force"],
)
def test_boosting_answers_all_queries(construction: Boosting, database: Database) -> None:
    """All queries, where one run of the generator promises five of six."""
    of = construction.queries
    assert construction.bound(database.rows) < database.rows / 2
    assert "says nothing" not in construction.explain(database.rows)
    assert float(construction.beta) == pytest.approx(1e-8)
    for _ in range(3):
        found = construction.release(database)
        assert found is not None
        assert len(found.synopses) == construction.rounds
        assert worst(of.answers(database.counts), found.answers(of)) <= found.error <= construction.bound(database.rows)


def test_small_database() -> None:
    of = prefixes(3)
    database = Database(of.universe, [4000, 100, 3000])
    construction = SmallDatabase(queries=of, epsilon=1, beta=BETA, alpha="0.1")
    assert construction.m == math.ceil(math.log(3) / 0.01)
    assert construction.bound(database.rows) < database.rows / 4
    for _ in range(5):
        found = construction.release(database)
        assert found.database.rows == construction.m
        assert worst(of.answers(database.counts), found.answers(of)) <= found.error <= construction.bound(database.rows)


def test_the_best_alpha_has_the_least_bound() -> None:
    """For each construction that has one, against a grid; and below the book's own bounds for a public n."""
    of = queries(8, 40)
    online = OnlineMultiplicativeWeights(universe=of.universe, questions=500, alpha="0.3", epsilon=1, beta="0.05")
    small = SmallDatabase(queries=prefixes(3), epsilon=1, beta="0.05", alpha="0.3")
    generator = FractionalGenerator(queries=of, epsilon=1, delta="1e-6", beta="0.05", alpha="0.3")
    for construction in (online, small, generator):
        for rows in (1, 10_000, 10_000_000):
            best = with_best_alpha(construction, rows)
            assert type(best) is type(construction)
            grid = [replace(construction, alpha=Fraction(share, 10)) for share in range(2, 10)]
            assert best.bound(rows) <= min(one.bound(rows) for one in grid) * 1.05
    assert with_best_alpha(online, 10**7).bound(10**7) < online.theorem(10**7) * 10**7


def with_delta(construction: OnlineMultiplicativeWeights, delta: float, rows: int) -> float:
    """Three times the least α of Theorem 4.15, as a share of a public number of rows: what Theorem 3.28 gives for c =
    4 ln|X|/α² answers of 2|Q| questions at (ε, δ)."""
    epsilon, beta, size = float(construction.epsilon), float(construction.beta), math.log(construction.universe.size)
    low, high = 1e-9, 1e9
    for _ in range(200):
        alpha = math.sqrt(low * high)
        updates = 4 * size / alpha**2
        width = math.log(2 * construction.questions) + math.log(4 * updates / beta)
        width *= math.sqrt(updates * math.log(2 / delta)) * (math.sqrt(512) + 1) / epsilon
        low, high = (low, alpha) if alpha * rows >= width else (alpha, high)
    return 3 * high


def test_the_pure_run_meets_the_theorem_with_delta_up_to_some_rows() -> None:
    """Theorem 4.15 has no code: a run at pure ε has δ = 0. Its bound is within that theorem's error where rows are few,
    and falls more slowly with them."""
    online = OnlineMultiplicativeWeights(universe=universe(8), questions=500, alpha="0.3", epsilon=1, beta="0.05")
    assert online.loss().keys_delta == 0
    shares = {rows: with_best_alpha(online, rows).bound(rows) / rows for rows in (10**5, 10**6, 10**7, 10**8)}
    theirs = {rows: with_delta(online, 1e-6, rows) for rows in shares}
    assert [shares[rows] <= theirs[rows] for rows in shares] == [True, True, False, False]
    printed = 2 + 32 * math.sqrt(2)  # as the book writes it
    for rows, share in theirs.items():
        inner = math.log(500) + math.log(32 * math.log(8) / ((share / 3) ** 2 * 0.05))
        least = printed * math.sqrt(math.log(8) * math.log(2e6)) * inner / (share / 3 * rows)
        assert share / 3 == pytest.approx(least)
    assert shares[10**8] / shares[10**5] == pytest.approx(10 ** (-3 / 3), rel=0.3)  # n^(−1/3), but for logarithms
    assert theirs[10**8] / theirs[10**5] == pytest.approx(10 ** (-3 / 2), rel=0.3)  # n^(−1/2)


def test_what_the_theorem_takes_for_alpha_balances_its_bound() -> None:
    """Proposition 4.4 at the α of Theorem 4.5 is at most the latter's bound, twice that α."""
    of = queries(3, 20)
    alpha = balanced_alpha(of, 1.0, 0.05, 50_000)
    construction = SmallDatabase(queries=of, epsilon=1, beta="0.05", alpha=Fraction(alpha))
    assert construction.theorem(50_000) <= 2 * alpha * (1 + 1e-9)


@pytest.mark.parametrize("counts", [[2_000_000, 0, 0, 500_000, 0, 0, 0, 0], [300_000] * 8])
def test_mwem(counts: list[int]) -> None:
    database = Database(PLAIN.universe, counts)
    construction = MultiplicativeWeightsExponential(queries=PLAIN, epsilon=1, beta=BETA, rounds=60)
    assert construction.bound(database.rows) < database.rows / 2
    for _ in range(3):
        found = construction.release(database)
        assert worst(PLAIN.answers(database.counts), found.answers(PLAIN)) <= found.error
        assert found.error <= construction.bound(database.rows)


def test_more_rounds_of_mwem_come_nearer_where_noise_does_not_matter() -> None:
    """The mean of the iterates, against a database of one element."""
    of, errors = prefixes(8), []
    database = Database(of.universe, [0, 0, 0, 0, 0, 0, 10**9, 0])
    for rounds in (1, 30, 300):
        found = MultiplicativeWeightsExponential(queries=of, epsilon=1000, beta=BETA, rounds=rounds).release(database)
        errors.append(worst(of.answers(database.counts), found.answers(of)))
    assert errors[2] < errors[1] / 2 < errors[0] / 4


def test_online_answers_stay_within_the_bound_for_an_adaptive_analyst() -> None:
    """Each question is built from the answers so far, against the distribution where it seems to be wrong."""
    construction = OnlineMultiplicativeWeights(universe=universe(8), questions=400, alpha="0.25", epsilon=2, beta=BETA)
    database = Database(universe(8), [4_000_000, 0, 0, 0, 100, 0, 1_000_000, 5])
    bound = construction.bound(database.rows)
    assert bound < database.rows / 2
    drawn, heavy, moved = np.random.default_rng(3), [0.0] * 8, 0
    with_answer = construction.open(database)
    for turn in range(400):
        query = [int(weight > np.median(heavy)) for weight in heavy] if turn % 2 else drawn.integers(0, 2, 8).tolist()
        answer = with_answer.ask(query)
        true = sum(count for count, taken in zip(database.counts, query, strict=True) if taken)
        assert abs(answer - true) <= with_answer.error <= bound
        moved += abs(answer - true) < 10_000
        heavy = [weight + answer * taken - with_answer.rows / 4 for weight, taken in zip(heavy, query, strict=True)]
    assert with_answer.ended
    assert with_answer.asked == 400
    assert moved  # some answers were counts


def test_the_distribution_moves_where_it_is_wrong_and_few_times() -> None:
    """One question asked for ever: from the noisy counts the public distribution learns its answer."""
    construction = OnlineMultiplicativeWeights(universe=universe(4), questions=200, alpha="0.2", epsilon=8, beta=BETA)
    database = Database(universe(4), [10_000_000, 0, 0, 0])
    run = construction.open(database)
    answers = [run.ask([1, 0, 0, 0]) for _ in range(200)]
    assert len(set(answers)) <= construction.updates + 2
    assert answers[-1] == answers[-2]  # the distribution answers by now
    found = run.synopsis()
    assert worst([answers[-1]], [found.answers(prefixes(4))[0]]) <= 10
    assert sum(found.database.counts) == found.database.rows


@pytest.mark.parametrize("elements", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_smallest_databases(elements: int, rows: int) -> None:
    """Nobody, one person, one element: everything runs, and stays within its bound, such as it is."""
    of = prefixes(elements)
    database = Database(of.universe, [rows] + [0] * (elements - 1))
    for construction in every_construction(of):
        found = construction.release(database)  # type: ignore[attr-defined]
        assert "says nothing at this size" in construction.explain(rows)  # type: ignore[attr-defined]
        if found is not None:
            assert worst(of.answers(database.counts), found.answers(of)) <= construction.bound(rows)  # type: ignore[attr-defined]
    online = OnlineMultiplicativeWeights(universe=of.universe, questions=3, alpha="0.5", epsilon=1, beta=BETA)
    run = online.open(database)
    while not run.ended:
        assert abs(run.ask([1] * elements) - rows) <= online.bound(rows)


def test_more_rows_than_were_laid_out_for_is_no_refusal() -> None:
    """How many rows there are is private: nothing is said, and no bound is promised."""
    construction = BaseGenerator(queries=prefixes(2), epsilon=1, delta=0, beta="0.1", most_rows=3)
    construction.release(Database(universe(2), [10**6, 10**6]))
    assert construction.bound(4) == math.inf


def test_rounds_are_fewer_than_the_books() -> None:
    for size in (1, 2, 10, 1000, 10**6):
        assert rounds_needed(size) <= max(1, math.ceil(math.log(size) * 9))
    assert rounds_needed(1000) == 24
