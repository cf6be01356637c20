"""The bounds are those of the textbooks, hold as often as they say, and prove what they should."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet.audit import bound, exact, fit, pmf
from discreet.audit.claims import Claim
from discreet.audit.events import NUMBER, choose

CASES = [(0, 10, 1e-8), (1, 10, 0.05), (10, 10, 1e-3), (37, 1000, 1e-9), (500, 1000, 1e-6), (9_000, 20_000, 1e-8)]


@pytest.mark.parametrize(("hits", "draws", "miss"), CASES)
def test_clopper_and_pearson(hits: int, draws: int, miss: float) -> None:
    low = stats.beta.ppf(miss, hits, draws - hits + 1) if hits else 0.0
    high = stats.beta.isf(miss, hits + 1, draws - hits) if hits < draws else 1.0
    assert bound.lower(hits, draws, miss) == pytest.approx(low, rel=1e-6, abs=1e-12)
    assert bound.upper(hits, draws, miss) == pytest.approx(high, rel=1e-6)


LARGE = [(9_000, 20_000, 1e-8), (3, 10**6, 1e-12), (10**6 - 2, 10**6, 1e-8)]


@pytest.mark.parametrize(
    ("hits", "draws", "miss"),
    [*CASES[:-1], (1, 1, 1e-9), *(pytest.param(*case, marks=pytest.mark.power) for case in LARGE)],
)
def test_bounds_are_rounded_to_the_side_that_claims_less(hits: int, draws: int, miss: float) -> None:
    """At the lower bound so many or more hits have at most the chance `miss`, at the upper so many or fewer."""
    with mpmath.workdps(60):
        if hits:
            low = mpmath.mpf(bound.lower(hits, draws, miss))
            assert _so_many_or_more(hits, draws, low) <= mpmath.mpf(miss)
        if hits < draws:
            high = mpmath.mpf(bound.upper(hits, draws, miss))
            assert _so_many_or_more(draws - hits, draws, 1 - high) <= mpmath.mpf(miss)


def _so_many_or_more(hits: int, draws: int, chance: mpmath.mpf) -> mpmath.mpf:
    """P(Bin(draws, chance) ≥ hits), each chance of a number from the one before it."""
    odds = chance / (1 - chance)
    term = total = math.comb(draws, hits) * chance**hits * (1 - chance) ** (draws - hits)
    for number in range(hits, draws):
        term *= odds * (draws - number) / (number + 1)
        total += term
        if term <= total * mpmath.mpf(10) ** -50:  # above the mean they fall ever faster
            break
    return total


@pytest.mark.parametrize(("draws", "chance"), [(5, 0.3), (100, 0.01), (10_000, 0.5), (300_000, 1e-4)])
def test_the_tail_is_the_binomial_one_where_it_matters(draws: int, chance: float) -> None:
    mean, spread = draws * chance, math.sqrt(draws * chance * (1 - chance))
    for hits in {min(draws, int(mean + score * spread) + 1) for score in (0.1, 1, 3, 6, 10)}:
        wanted = stats.binom.sf(hits - 1, draws, chance)
        assert bound.at_least(hits, draws, chance) == pytest.approx(wanted, rel=1e-6)
    assert bound.at_least(int(mean), draws, chance) == 1


def test_a_bound_fails_no_more_often_than_it_says() -> None:
    """Randomised response of ε = 1 at its own chances: bounds with miss 0.05 are above 1 in at most 5 % of cases."""
    rounds = 800
    most = stats.binom.isf(1e-6, rounds, 0.05)
    truth = math.e / (1 + math.e)
    source = np.random.default_rng(1)
    likely, rare = source.binomial(300, truth, rounds), source.binomial(300, 1 - truth, rounds)
    above = sum(bound.epsilon_bound(int(a), int(b), 300, 0, 0.05) > 1 for a, b in zip(likely, rare, strict=True))
    assert above <= most
    normal = source.binomial(300, stats.norm.cdf(0.5), rounds), source.binomial(300, stats.norm.cdf(-0.5), rounds)
    assert sum(bound.mu_bound(int(a), int(b), 300, 0, 0.05) > 1 for a, b in zip(*normal, strict=True)) <= most


def test_bounds_come_close_with_many_draws() -> None:
    truth = math.e / (1 + math.e)
    size = 10**6
    assert 0.98 < bound.epsilon_bound(int(size * truth), int(size * (1 - truth)), size, 0, 1e-8) < 1
    hits = int(size * stats.norm.cdf(0.5))
    assert 0.98 < bound.mu_bound(hits, size - hits, size, 0, 1e-8) < 1
    assert bound.epsilon_bound(size // 20, 0, size, 0.06, 1e-8) == -math.inf


def test_the_event_is_chosen_where_the_neighbours_differ() -> None:
    one, two = [0, 0, 0, 1] * 100, [0, 1, 1, 1] * 100
    event = choose(NUMBER, one, two, Claim(1.0))
    assert event is not None
    assert [event.holds(value) for value in (0, 1)] == [event.first, not event.first]


def test_distributions_are_distributions() -> None:
    known = [
        pmf.laplace(2.0, 1, 100),
        pmf.gaussian(1.5, -1, 40),
        pmf.shown([0.1, 0.9]),
        pmf.exponential(0.5, [1, 2, 0]),
        pmf.permute_and_flip(0.5, [1, 2, 0]),
        pmf.top_k(0.5, 2, [1, 2, 0]),
        pmf.lead(1.0, [1, 0, 1], 60),
        pmf.replies(0, (2.0, 4.0), 2, [1, 0, -1]),
    ]
    for distribution in known:
        assert math.fsum(distribution.values()) == pytest.approx(1, abs=1e-9)
        assert min(distribution.values()) >= 0
    for law, width in ((pmf.laplace_law, 2.0), (pmf.gaussian_law, 1.5)):
        mass = {pmf.laplace_law: pmf.laplace, pmf.gaussian_law: pmf.gaussian}[law](width, 0, 20)
        for k in range(-5, 6):
            assert law(width)(k) - law(width)(k - 1) == pytest.approx(mass[k])


def test_distances_of_known_distributions() -> None:
    one, two = {"a": 0.75, "b": 0.25}, {"a": 0.25, "b": 0.75}
    assert exact.loss(one, two)[0] == pytest.approx(math.log(3))
    assert exact.hockey_stick(one, two, 0) == pytest.approx(0.5)
    assert exact.needed({"a": 1.0}, {"b": 1.0}, Claim(1.0, 0.5))[0] == math.inf
    assert exact.needed(one, two, Claim(1.0, 0.25))[0] == pytest.approx(math.log(2))
    found, _ = exact.needed(pmf.gaussian(4, 0, 60), pmf.gaussian(4, 4, 60), Claim(mu=1.0))
    assert 0.99 < found <= 1 + 1e-9


def test_a_fit_is_not_blamed_by_chance() -> None:
    """p-values are those of exact tests with Bonferroni, so at most a share p of right samples has one below p."""
    source = np.random.default_rng(2)
    values = []
    for _ in range(300):
        drawn = [int(value) for value in source.geometric(0.4, 400) - source.geometric(0.4, 400)]
        values.append(fit.of_numbers(drawn, pmf.laplace_law(-1 / math.log(0.6)))[0])
    assert sum(value < 0.05 for value in values) <= stats.binom.isf(1e-6, 300, 0.05)
    assert fit.of_numbers([0.5], pmf.laplace_law(1.0))[0] == 0
