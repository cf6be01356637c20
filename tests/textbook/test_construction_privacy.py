"""Exact output distributions of the constructions on small databases, and an attack that finds half the noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from scipy import stats

from construction_tools import (
    BETA,
    at_most,
    boosted,
    every_construction,
    neighbours,
    prefixes,
    queries,
    ratio,
    surely,
    surely_above,
    two_sided,
    universe,
)
from discreet.accounting import Approximate, DiscreteLaplace, Pure
from discreet.mechanisms import ExponentialMechanism
from discreet.reference.draws import ExponentialDraws, PublicDraws
from discreet.textbook import (
    BaseGenerator,
    Boosting,
    Database,
    FractionalGenerator,
    LinearProgram,
    LinearQueries,
    MultiplicativeWeightsExponential,
    OnlineMultiplicativeWeights,
    SmallDatabase,
)
from discreet.textbook.boosting import STEP, _kept
from discreet.textbook.composition import each, root_rho
from discreet.trusted.ring_a.exact import exp_bounds, log_bounds
from discreet.trusted.ring_b.choice import CERTAIN, decays

KIND = "exact"


def chosen(mechanism: ExponentialMechanism | ExponentialDraws, scores: list[int]) -> dict[int, Fraction]:
    """One draw: the very weights that it compares random bits with."""
    weights = decays(mechanism.rate, [max(scores) - score for score in scores])
    return {place: Fraction(weight, sum(weights)) for place, weight in enumerate(weights)}


# SmallDB: the number of rows and the small database, together


def small_outcomes(construction: SmallDatabase, database: Database, reach: int = 12) -> dict[Hashable, Fraction]:
    """P(n̂, y) for n̂ up to `reach`, where everything beyond is left out."""
    small = construction.candidates()
    q = exp_bounds(-construction.rows_epsilon, 200)[0]
    found: dict[Hashable, Fraction] = {}
    for rows in range(reach + 1):
        far = rows - database.rows
        mass = (1 - q) / (1 + q) * q ** abs(far) if rows else q**database.rows / (1 + q)  # cut to at least 0
        scores = construction.scores(database, rows, small)
        found |= {(rows, y): mass * share for y, share in chosen(construction.choice, scores).items()}
    return found


@dataclass(frozen=True, kw_only=True)
class Halved(SmallDatabase):
    """A mutant that thinks that a person moves the score by half a person."""

    @property
    def choice(self) -> ExponentialMechanism:
        return ExponentialMechanism(self.rest_epsilon, Fraction(self.m, 2))


def worst_small(construction: SmallDatabase) -> Fraction:
    found = cache(lambda counts: small_outcomes(construction, Database(universe(2), counts)))
    return max(ratio(found(x.counts), found(y.counts)) for x, y in neighbours(2, 2))


@pytest.mark.parametrize("matrix", [[[1, 0]], [[1, 0], [0, 1]], [[1, 0], [0, 1], [1, 1]]])
def test_small_database_with_its_number_of_rows_costs_at_most_epsilon(matrix: list[list[int]]) -> None:
    """Every outcome with n̂ up to 12, every pair of databases of at most two rows, the empty one among them. One query
    needs all of it."""
    of = LinearQueries(universe(2), matrix)
    settings = {"queries": of, "epsilon": 4, "beta": "0.1", "alpha": "0.5"}
    assert worst_small(SmallDatabase(**settings)) <= at_most(4)  # type: ignore[arg-type]
    if of.size == 1:
        assert worst_small(SmallDatabase(**settings)) > at_most(Fraction(399, 100))  # type: ignore[arg-type]
        assert worst_small(Halved(**settings)) > at_most(Fraction(7))  # type: ignore[arg-type]


# boosting: the draws of every round


def histories(rounds: int, answers: int, size: int) -> product:
    """Everything that the rounds before may have answered to each query: counts from 0 to `answers`."""
    one_round = list(product(range(answers + 1), repeat=size))
    return product(one_round, repeat=rounds)


def draws_of(exact: list[int], history: tuple[tuple[int, ...], ...], tolerance: int, mu: int) -> list[int]:
    kept = [0] * len(exact)
    for answers in history:
        kept = _kept(kept, exact, answers, tolerance, mu)
    return [-value for value in kept]


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_draw_of_boosting_has_the_range_that_is_charged(rounds: int) -> None:
    """Every history of one or two rounds, every pair of databases: the logarithms of the probability ratios lie in an
    interval of length r_t = 4αt/μ, so each is at most r_t; and some pair needs more than nine tenths of it."""
    of = LinearQueries(universe(2), [[1, 0], [0, 1]])
    mu, most = 3, Fraction(1)
    mechanism = ExponentialDraws(4 * STEP * rounds / mu, rounds)
    assert mechanism.rate == 2 * STEP / mu
    longest, allowed = Fraction(1), at_most(mechanism.epsilon)
    find = cache(lambda scores: chosen(mechanism, list(scores)))
    for x, y in neighbours(2, 2):
        for history in histories(rounds, 3, 2):
            one, other = (find(tuple(draws_of(of.answers(side.counts), history, 0, mu))) for side in (x, y))
            shares = [one[place] / other[place] for place in one]
            most = max(most, max(shares), 1 / min(shares))
            longest = max(longest, max(shares) / min(shares))
    assert most <= longest <= allowed
    # over two queries one person moves at most one score up and the other not at all, or both; the range is met
    # when one error grows and the other falls
    assert longest > at_most(mechanism.epsilon * Fraction(45, 100))


def test_errors_that_move_apart_need_the_whole_range() -> None:
    """A person whom two queries count, one of them answered too low and one too high before."""
    of = LinearQueries(universe(1), [[1], [1]])
    mu, tolerance = 4, 0
    mechanism = ExponentialDraws(4 * STEP / mu, 1)
    history = ((0, 4),)  # with one or two persons: errors grow on the first, fall on the second
    one, other = (chosen(mechanism, draws_of(of.answers([count]), history, tolerance, mu)) for count in (1, 2))
    shares = [one[place] / other[place] for place in one]
    longest = max(shares) / min(shares)
    assert at_most(mechanism.epsilon * Fraction(999, 1000)) < longest <= at_most(mechanism.epsilon)


@pytest.mark.parametrize("order", [2, 5, 20])
def test_a_draw_is_concentrated_as_its_range_says(order: int) -> None:
    """Rényi divergence of the hardest pair above is at most order·r²/8 (Cesar & Rogers 2021), a quarter of what ε-DP
    alone gives."""
    mechanism = ExponentialDraws(Fraction(4, 5), 1, draws=1)
    one, other = chosen(mechanism, [-1, -3]), chosen(mechanism, [-2, -2])
    for p, q in ((one, other), (other, one)):
        moment = math.fsum(float(p[x]) ** order * float(q[x]) ** (1 - order) for x in p)
        assert math.log(moment) / (order - 1) <= order * float(mechanism.rho) * (1 + 1e-12)


def test_the_draws_of_all_rounds_are_within_their_price() -> None:
    """Σ k·r_t²/8, from the mechanisms that are really used, is at most the ρ of (ε, δ); with μ one less it is not."""
    of = prefixes(4)
    for delta in ("1e-6", "1e-12"):
        construction = boosted(FractionalGenerator, of, 1, delta, alpha="0.2")
        limit = root_rho(Fraction(1), Fraction(delta)) ** 2
        spent = sum(construction.draws(rounds).rho for rounds in range(1, construction.rounds))
        assert spent <= limit
        assert spent * Fraction(construction.mu, construction.mu - 1) ** 2 > limit
    pure = Boosting(construction.generator, Fraction(1), Fraction(0))
    total = sum(pure.generator.k * pure.draws(rounds).epsilon for rounds in range(1, pure.rounds))
    assert Fraction(99, 100) < total <= 1
    assert pure.mu > construction.mu


def test_draws_have_the_distribution_of_their_scores() -> None:
    """30,000 draws, with replacement, against the exact weights; the power against a rate twice as large is one."""
    mechanism = ExponentialDraws(Fraction(1), 1, draws=30_000)
    scores = [0, -1, -3]
    expected = chosen(mechanism, scores)
    seen = mechanism.release(scores)
    counts = [seen.count(place) for place in range(3)]
    assert stats.chisquare(counts, [float(expected[place]) * 30_000 for place in range(3)]).pvalue > 1e-7
    doubled = chosen(replace(mechanism, epsilon=Fraction(2)), scores)
    assert stats.chisquare(counts, [float(doubled[place]) * 30_000 for place in range(3)]).pvalue < 1e-6
    public = PublicDraws(30_000).release([1, 0, 2])
    counts = [public.count(place) for place in range(3)]
    assert counts[1] == 0
    assert stats.binomtest(counts[0], 30_000, 1 / 3).pvalue > 1e-7


# the base generator: all noise values, one by one


@dataclass(frozen=True, kw_only=True)
class Two(BaseGenerator):
    """Only two answers, so that all their noise can be enumerated."""

    k = 2
    lambda_ = 2


def searched(construction: Two, exact: list[int], rows: int, first: Callable, halved: bool) -> dict[Hashable, float]:
    """P(output), but for noise beyond a reach, when both queries are answered once and searched for."""
    found: dict[Hashable, float] = defaultdict(float)
    answers = two_sided(math.exp(-(1 + halved) / construction.b), 9)
    sizes: dict[int, float] = defaultdict(float)
    for extra, mass in two_sided(math.exp(-construction.rows_epsilon), 200).items():
        sizes[min(max(0, rows + extra), construction.most_rows)] += mass
    for (one, p), (two, r), (size, s) in product(answers.items(), answers.items(), sizes.items()):
        found[first(exact[0] + one, exact[1] + two, size)] += p * r * s
    return found


def test_the_search_of_the_base_generator_tells_no_more_than_its_noise() -> None:
    """Databases of at most two rows, both queries drawn: the first that fits, or none; all noise values but 10^−13 of
    them are enumerated. With half the noise the ratio is above the price."""
    of = LinearQueries(universe(2), [[1, 0], [1, 1]])
    construction = Two(queries=of, epsilon=8, delta=0, beta="0.5", most_rows=2)
    assert construction.b == 2 / construction.rest_epsilon

    @cache
    def first(low: int, high: int, rows: int) -> Hashable:
        found = construction.first({0: (low, low), 1: (high, high)}, rows)
        return found and found.counts

    def longest(halved: bool) -> float:
        def find(x: Database) -> dict[Hashable, float]:
            return searched(construction, of.answers(x.counts), x.rows, first, halved)

        return max(surely(find(x), find(y)) for x, y in neighbours(2, 2))

    assert longest(halved=False) <= math.exp(8) < longest(halved=True)
    assert longest(halved=False) > math.exp(6)


# an attack on the noise itself


def attacked(noisy: object, draws: int = 5_000) -> float:
    """A lower bound on the loss of one noisy count, from how often it is at least 1 with nobody and with one there."""
    hits = [sum(value >= 1 for value in noisy(count, draws)) for count in (1, 0)]  # type: ignore[operator]
    return surely_above((hits[0], hits[1]), draws)


def counts_of(construction: FractionalGenerator, count: int, draws: int) -> list[int]:
    """The noisy answers to the same query, from as many places."""
    database = Database(construction.queries.universe, [count, 0])
    return [construction.limits(database, [0])[0][0] for _ in range(draws)]


@dataclass(frozen=True, kw_only=True)
class LessNoise(FractionalGenerator):
    """A mutant with half the noise."""

    @property
    def b(self) -> Fraction:
        return super().b / 2


def test_an_attack_finds_half_the_noise() -> None:
    """5,000 draws a side bound the loss from below, wrong with 10^−7: below ε₀ for the construction, above for the
    mutant, whose loss is 2ε₀; the bound is then above 1.5ε₀, by eight deviations."""
    of = prefixes(2)
    settings = {"queries": of, "epsilon": 3000, "delta": 0, "beta": "0.5", "alpha": "0.5"}
    honest = FractionalGenerator(**settings)  # type: ignore[arg-type]
    honest = replace(honest, epsilon=Fraction(8, 7) * honest.k)  # one answer costs 1
    assert float(honest.each_epsilon) == pytest.approx(1)
    assert attacked(lambda count, draws: counts_of(honest, count, draws)) <= 1
    mutant = LessNoise(**{**settings, "epsilon": honest.epsilon})  # type: ignore[arg-type]
    assert attacked(lambda count, draws: counts_of(mutant, count, draws)) > 1

    small = LinearProgram(queries=of, epsilon=8, delta=0, beta="0.5")  # the number of rows costs 1

    def rows(count: int, draws: int) -> list[int]:
        return [small.noisy_rows(Database(of.universe, [count, 0])) for _ in range(draws)]

    assert 0.5 < attacked(rows) <= 1


# what is charged


def test_losses_add_up_to_the_price_with_the_number_of_rows() -> None:
    of = prefixes(2)
    for construction in every_construction(of):
        loss = construction.loss()  # type: ignore[attr-defined]
        assert loss.parts[0] == DiscreteLaplace(Fraction(1, 8), 1)  # an eighth of ε, for the number of rows
        epsilon = 2 if isinstance(construction, Boosting) else 1  # answers, and draws
        assert loss.pure == epsilon
        assert loss.keys_delta in (0, Fraction("1e-6"), Fraction("2e-6"))
    few, many = (LinearProgram(queries=queries(4, size), epsilon=1, delta="1e-6", beta="0.1") for size in (3, 3000))
    assert few.loss().keys_delta == 0  # plain addition was better, and needs no δ
    assert many.loss().keys_delta == Fraction("1e-6")
    assert many.queries.size / many.b > many.rest_epsilon
    online = OnlineMultiplicativeWeights(universe=of.universe, questions=10, alpha="0.5", epsilon=1, beta="0.1")
    watch = online.watch(5).loss().pure
    counts = (online.updates + 1) / online.noise.scale
    assert online.rows_epsilon + watch + counts == 1
    assert online.loss() == Pure(1)
    assert online.watch(5).limit == online.updates + 1
    assert not online.watch(5).monotone  # an error may fall as well as rise


def test_mwem_charges_each_round() -> None:
    construction = MultiplicativeWeightsExponential(queries=prefixes(2), epsilon=1, beta="0.1", rounds=7)
    parts = construction.loss().parts[1:]
    assert len(parts) == 14
    assert all(part.pure == construction.each_epsilon == Fraction(1, 16) for part in parts)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), Fraction(99, 100), Fraction(2), Fraction(300)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(9, 10)])
@pytest.mark.parametrize("count", [1, 10, 5000])
def test_each_share_satisfies_a_composition_theorem(epsilon: Fraction, delta: Fraction, count: int) -> None:
    """Theorem 3.20 or Theorem 3.14, in rational numbers; and for small ε at least what Corollary 3.21 has."""
    share = each(epsilon, delta, count)
    root = math.sqrt(2 * count * math.log(1 / delta))
    advanced = share < 600 and float(share) * (root + count * math.expm1(float(share))) <= float(epsilon) * (1 + 1e-12)
    assert count * share <= epsilon or advanced
    assert share * count >= epsilon * Fraction(999_999, 10**6) or advanced
    if epsilon < 1 and delta < Fraction(1, 2):
        assert float(share) >= float(epsilon) / (2 * root) * (1 - 1e-9)
    assert each(epsilon, Fraction(0), count) * count <= epsilon


def test_the_corollary_is_not_used_where_it_is_false() -> None:
    """At ε = 100 and δ = 1/10, Corollary 3.21's share for 100 answers would cost more than Theorem 3.20 allows, and
    what randomised responses at that share cost is above (ε, δ) indeed."""
    from discreet.accounting import compose

    epsilon, delta, count = 100, Fraction(1, 10), 100
    corollary = epsilon / (2 * math.sqrt(2 * count * math.log(10)))
    assert compose({Pure(Fraction(corollary)): count}).delta_bounds(epsilon)[0] > delta
    share = each(Fraction(epsilon), delta, count)
    assert compose({Pure(share): count}).delta(epsilon) <= delta


def test_the_price_of_draws_is_that_of_concentrated_privacy() -> None:
    for epsilon, delta in (("0.1", "1e-9"), ("1", "1e-6"), ("20", "0.01")):
        root, limit = root_rho(Fraction(epsilon), Fraction(delta)), Fraction(epsilon)
        logarithm = float(log_bounds(1 / Fraction(delta))[1])
        assert float(root) ** 2 + 2 * float(root) * math.sqrt(logarithm) <= float(limit) * (1 + 1e-12)
        assert float(root) ** 2 + 2 * float(root) * math.sqrt(logarithm) >= float(limit) * (1 - 1e-9)


def test_weights_are_rational_and_the_best_one_exact() -> None:
    construction = boosted(FractionalGenerator, prefixes(4), 1, "1e-6", alpha="0.2")
    mechanism = construction.draws(2)
    assert isinstance(mechanism.rate, Fraction)
    assert mechanism.rate == Fraction(8, 5) / construction.mu
    assert decays(mechanism.rate, [0])[0] == CERTAIN
    assert isinstance(construction.loss().parts[-1], Approximate)
    assert BETA < 1
