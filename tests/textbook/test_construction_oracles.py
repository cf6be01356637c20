"""Searches, programs, updates and roundings against brute force and against what their proofs use."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construction_tools import BETA, boosted, lexicographic, prefixes, queries, universe, worst
from discreet.textbook import (
    ArbitraryQueries,
    BaseGenerator,
    Boosted,
    Boosting,
    Database,
    FractionalGenerator,
    LinearProgram,
    LinearQueries,
    SmallDatabase,
    Synopsis,
    rounds_needed,
)
from discreet.textbook.boosting import ETA, STEP, _kept
from discreet.textbook.linear import _solved, synthesised
from discreet.trusted.ring_c.construction import rounded
from discreet.trusted.ring_c.multiplicative_weights import moved
from discreet.trusted.ring_c.universe import histograms, log_multisets, multisets
from kinds import examples

KIND = "exact"

THREE = LinearQueries(universe(3), [[1, 0, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1]])
GENERATOR = BaseGenerator(queries=THREE, epsilon=2000, delta=0, beta="0.1", most_rows=4)


# the search


@pytest.mark.parametrize(("elements", "rows"), [(1, 0), (1, 3), (2, 0), (2, 5), (3, 4), (4, 3)])
def test_histograms_come_in_the_order_of_sorted_rows(elements: int, rows: int) -> None:
    found = [tuple(one) for block in histograms(elements, rows, block=3) for one in block.tolist()]
    expected = [
        tuple(sequence.count(element) for element in range(elements))
        for sequence in combinations_with_replacement(range(elements), rows)
    ]
    assert found == expected
    assert len(found) == multisets(elements, rows) == comb(rows + elements - 1, rows)
    assert log_multisets(elements, rows) >= math.log(len(found)) - 1e-12


@given(
    st.dictionaries(st.integers(0, 3), st.tuples(st.integers(-1, 6), st.integers(0, 2)), min_size=1),
    st.integers(0, 4),
)
def test_multisets_find_what_sequences_find(drawn: dict[int, tuple[int, int]], size: int) -> None:
    """The book's search over all |X|^n sequences, of every size that the noisy one allows, finds the same database."""
    limits = {place: (low, low + more) for place, (low, more) in drawn.items()}
    width = GENERATOR.rows_width(3)
    sizes = range(max(0, size - width), min(4, size + width) + 1)
    found = GENERATOR.first(limits, size)
    by_sequences = (lexicographic(THREE, limits, GENERATOR.lambda_ // 2, each) for each in sizes)
    expected = next((one for one in by_sequences if one is not None), None)
    assert (found and list(found.counts)) == expected


def test_what_is_found_depends_on_noisy_answers_alone() -> None:
    """No database is an argument of the search; and where nothing fits there is none."""
    assert GENERATOR.first({0: (0, 50)}, 4) is None
    assert GENERATOR.first({0: (10**40, 10**40)}, 10**30) is None
    assert GENERATOR.first({3: (0, 0)}, 0) == Database(THREE.universe, [0, 0, 0])


def test_sizes_of_the_base_generator_follow_from_its_theorem() -> None:
    """k > 6(ln M + ln(3/β)), λ/2 the width that k noises of scale b stay within; the book's λ is no smaller."""
    construction = BaseGenerator(queries=THREE, epsilon="0.5", delta="1e-6", beta="1e-12", most_rows=4)
    assert construction.databases == sum(multisets(3, rows) for rows in range(5)) == 35
    assert construction.k == math.ceil(6 * (math.log(35) + math.log(3e12)))
    assert construction.databases < sum(3**rows for rows in range(5))
    share = construction.rest_epsilon
    corollary = 2 * math.sqrt(2 * construction.k * math.log(10**6)) / float(share)
    assert float(construction.b) == pytest.approx(corollary, rel=1e-9)
    assert construction.lambda_ <= 2 * math.ceil(corollary * (math.log(construction.k) + math.log(3e12)))
    assert construction.lambda_ > 1.8 * corollary * (math.log(construction.k) + math.log(3e12)) - 4


@pytest.mark.parametrize("alpha", ["0.05", "0.3"])
def test_sizes_of_the_fractional_generator_solve_each_other(alpha: str) -> None:
    construction = FractionalGenerator(queries=THREE, epsilon=1, delta="1e-6", beta="0.01", alpha=alpha)

    def needed(k: int) -> float:
        rows = math.ceil(math.log(8 * k / 0.01) / (2 * float(alpha) ** 2))
        return 6 * (math.log(multisets(3, rows)) + math.log(400))

    assert construction.k >= needed(construction.k)
    assert construction.sample_rows >= math.log(8 * construction.k / 0.01) / (2 * float(alpha) ** 2)
    assert construction.k - 2 < needed(construction.k - 2)  # no smaller one solves both


# the linear program


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.sampled_from([(1, 0), (0, 1), (1, 1), (0, 0)]), st.integers(-5, 40)), min_size=1, max_size=5),
    st.integers(1, 30),
)
def test_the_program_finds_the_best_shares(asked: list[tuple[tuple[int, int], int]], rows: int) -> None:
    """Over two elements the error is the largest of lines in one unknown: least where two of them cross, or at an
    end."""
    of = LinearQueries(universe(2), [query for query, _ in asked])
    limits = {place: (noisy, noisy) for place, (_, noisy) in enumerate(asked)}
    cut = [min(max(noisy, 0), rows) for _, noisy in asked]

    def error(share: float) -> float:
        parts = (share, 1 - share)
        return max(
            abs(rows * (query[0] * parts[0] + query[1] * parts[1]) - noisy)
            for (query, _), noisy in zip(asked, cut, strict=True)
        )

    lines = [
        (sign * rows * (query[0] - query[1]), sign * (rows * query[1] - noisy))
        for (query, _), noisy in zip(asked, cut, strict=True)
        for sign in (1, -1)
    ]
    crossings = [(d - b) / (a - c) for a, b in lines for c, d in lines if a != c]
    best = min(error(share) for share in [0.0, 1.0, *(one for one in crossings if 0 <= one <= 1)])
    found = _solved(of, limits, rows)
    assert error(float(found[0] / found.sum())) == pytest.approx(best, abs=1e-6 * rows)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda shares: sum(shares) > 0), st.integers(1, 10**9))
def test_rounding_moves_no_query_by_more_than_its_multiples_allow(shares: list[float], rows: int) -> None:
    of = prefixes(len(shares))
    found = rounded(of.universe, np.array(shares), rows)
    assert found.rows == rows
    total = math.fsum(shares)
    for subset in of.matrix:
        before = math.fsum(share for share, taken in zip(shares, subset, strict=True) if taken) / total
        after = sum(count for count, taken in zip(found.counts, subset, strict=True) if taken) / rows
        assert abs(before - after) <= len(shares) / rows + 1e-9


@given(st.lists(st.integers(0, 500), min_size=4, max_size=4), st.data())
def test_the_synthesiser_stays_within_three_alpha(counts: list[int], data: st.DataObject) -> None:
    """Any noise within T and any n̂ within h: the statement that the theorem's proof rests on, without its
    randomness."""
    of = queries(4, 6)
    noise, width = data.draw(st.integers(0, 60)), data.draw(st.integers(0, 30))
    rows = max(0, sum(counts) + data.draw(st.integers(-width, width)))
    exact = of.answers(counts)
    limits = {}
    for place, answer in enumerate(exact):
        ends = [answer + data.draw(st.integers(-noise, noise)) for _ in range(2)]
        limits[place] = (min(ends), max(ends))
    alpha = max(1, noise + width)
    found = Synopsis(synthesised(of, limits, rows, alpha), rows, 0.0)
    assert worst(exact, found.answers(of)) <= 3 * alpha + 1  # decoded counts are rounded


# multiplicative weights


@settings(max_examples=examples(200))
@given(
    st.lists(st.integers(0, 50), min_size=4, max_size=4).filter(any),
    st.lists(st.integers(1, 50), min_size=4, max_size=4),
    st.lists(st.integers(0, 1), min_size=4, max_size=4),
    st.integers(-200, 400),
)
def test_an_update_lowers_the_relative_entropy(true: list[int], start: list[int], query: list[int], noisy: int) -> None:
    """By (D² − e²)/4 at least, for any noisy count whatever."""
    b, a, q = np.array(true) / sum(true), np.array(start) / sum(start), np.array(query, float)
    rows = sum(true)
    after = moved(a, q, noisy, rows)
    share = min(max(noisy, 0), rows) / rows
    off, wrong = float(q @ b) - float(q @ a), share - float(q @ b)

    def entropy(other: np.ndarray) -> float:
        return float(sum(p * math.log(p / r) for p, r in zip(b, other, strict=True) if p))

    assert entropy(a) - entropy(after) >= (off**2 - wrong**2) / 4 - 1e-12
    assert after.sum() == pytest.approx(1)


# boosting


def test_rounds_are_the_fewest_that_the_proof_allows() -> None:
    shrinks = math.cosh(STEP) - 2 * ETA * math.sinh(STEP)
    for size in (1, 2, 3, 17, 1000, 10**6):
        rounds = rounds_needed(size)
        assert size * shrinks**rounds < 1
        assert rounds == 1 or size * shrinks ** (rounds - 1) >= 1
    assert shrinks == pytest.approx(math.sqrt(1 - 4 / 9), rel=1e-4)  # what the best α of all has


@settings(max_examples=examples(30))
@given(st.integers(0, 10**6))
def test_the_median_is_right_when_every_round_is_right_on_five_of_six(seed: int) -> None:
    """The statement of Theorem 6.1 without its randomness: each round an adversary answers a set of D_t-weight at most
    1/6 wrongly, the heaviest queries first, or at random, and all others just within λ."""
    size, tolerance, mu = 30, 10, 20
    drawn = np.random.default_rng(seed)
    exact = drawn.integers(0, 1000, size).tolist()
    kept, columns = [0] * size, []
    for _ in range(rounds_needed(size)):
        weights = np.exp(-2 * float(STEP) / mu * (np.array(kept) - min(kept)))
        weights /= weights.sum()
        order = np.argsort(-weights) if drawn.integers(2) else drawn.permutation(size)
        left, answers = 1 / 6, [true + int(drawn.integers(-tolerance, tolerance + 1)) for true in exact]
        for place in order:
            if weights[place] <= left:
                left -= weights[place]
                answers[place] = exact[place] + (tolerance + mu + 1 + int(drawn.integers(100)))
        columns.append(answers)
        kept = _kept(kept, exact, answers, tolerance, mu)
    medians = [sorted(column)[(len(column) - 1) // 2] for column in zip(*columns, strict=True)]
    assert worst(exact, medians) <= tolerance + mu


@given(
    st.lists(st.integers(0, 60), min_size=3, max_size=3),
    st.lists(st.integers(-1, 1), min_size=3, max_size=3),
    st.lists(st.integers(-20, 80), min_size=3, max_size=3),
    st.integers(0, 10),
    st.integers(1, 30),
)
def test_one_person_moves_a_round_by_one(
    exact: list[int], steps: list[int], decoded: list[int], tolerance: int, mu: int
) -> None:
    other = [answer + step for answer, step in zip(exact, steps, strict=True)]
    before, after = (_kept([7] * 3, side, decoded, tolerance, mu) for side in (exact, other))
    assert worst(before, after) <= 1
    assert all(7 <= value <= 7 + mu for value in before)


def test_boosted_answers_are_medians() -> None:
    of = prefixes(1)
    parts = tuple(Synopsis(Database(of.universe, [count]), count, 0.0) for count in (5, 100, 7, 8))
    assert Boosted(parts, 0.0).answers(of) == [7]


def test_boosting_survives_rounds_without_a_synopsis() -> None:
    """Noise far too large for the search: rounds end without one, and weights stay."""
    generator = BaseGenerator(queries=prefixes(1), epsilon="0.01", delta=0, beta="0.9", most_rows=1, runs=3)
    results = [Boosting(generator, 1).release(Database(universe(1), [1])) for _ in range(5)]
    assert all(result is None or 1 <= len(result.synopses) <= 3 for result in results)


def test_tighter_draws_than_the_books() -> None:
    """μ by concentrated differential privacy, against Corollary 3.21 at the worst round's range."""
    construction = boosted(FractionalGenerator, queries(8, 1000), Fraction(1, 2), "5e-7", alpha="0.1")  # type: ignore[arg-type]
    rounds, k = construction.rounds, construction.generator.k
    book = 8 * 0.8047 * rounds * math.sqrt(2 * k * rounds * math.log(1 / 5e-7)) / 0.5
    assert book / construction.mu > 3


# queries


@given(st.integers(0, 40), st.integers(1, 7), st.integers(1, 9))
def test_answers_of_neighbours_stay_within_the_steps_that_are_charged(count: int, top: int, bottom: int) -> None:
    slope = Fraction(top, 3)
    of = ArbitraryQueries(universe(1), [lambda counts: slope * counts[0]], rho=slope, step=Fraction(1, bottom))
    (one,), (other,) = of.answers([count]), of.answers([count + 1])
    assert abs(one - other) <= of.sensitivity
    assert of.sensitivity - 1 < slope * bottom <= of.sensitivity


def test_small_databases_hold_one_that_is_near() -> None:
    """Lemma 4.3: for every database of six rows, one of m rows within α on all queries, by looking at all."""
    construction = SmallDatabase(queries=THREE, epsilon=1, beta=BETA, alpha="0.35")
    small = construction.queries.table(construction.candidates()) / construction.m
    for counts in product(range(7), repeat=3):
        if sum(counts) == 6:
            true = np.array(THREE.answers(counts)) / 6
            assert np.abs(small - true).max(axis=1).min() <= 0.35


def test_scores_are_exact_and_move_by_a_person_at_most() -> None:
    construction = SmallDatabase(queries=THREE, epsilon=1, beta=BETA, alpha="0.7")
    small = construction.candidates()
    for counts in ([0, 0, 0], [3, 1, 2], [1 << 48, 1 << 47, 5]):
        for rows in (0, 7, 1 << 49):
            one = construction.scores(Database(THREE.universe, counts), rows, small)
            other = construction.scores(Database(THREE.universe, [counts[0], counts[1] + 1, counts[2]]), rows, small)
            assert worst(one, other) <= construction.m
            expected = -max(
                abs(construction.m * a - rows * b)
                for a, b in zip(THREE.answers(counts), THREE.answers(small[1].tolist()), strict=True)
            )
            assert one[1] == expected


def test_linear_program_takes_corollary_and_basic_composition_whichever_is_better() -> None:
    few = LinearProgram(queries=queries(4, 3), epsilon="0.5", delta="1e-6", beta=BETA)
    assert few.b == 3 / few.rest_epsilon
    many = LinearProgram(queries=queries(4, 2000), epsilon="0.5", delta="1e-6", beta=BETA)
    assert float(many.b) == pytest.approx(2 * math.sqrt(4000 * math.log(10**6)) / float(many.rest_epsilon), rel=1e-9)
