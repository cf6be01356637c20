"""Fitting noisy counts: the optimum beside a direct search, zeros, warm starts, totals, bad input."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import QuestionError
from discreet.markov import Domain, MarginalMeasurement, fit
from discreet.markov.likelihood import SHRINKAGE, positive
from discreet.markov.measurement import total_rows

KIND = "exact"

DOMAIN = Domain.of({"a": 3, "b": 2, "c": 4})


def counts(table, domain, clique):
    codes = np.ravel_multi_index([table[:, domain.place[name]] for name in clique], domain.shape(clique))
    return np.bincount(codes, minlength=domain.cells(clique)).reshape(domain.shape(clique))


def correlated(rows: int, seed: int):
    """A table on DOMAIN whose columns depend on each other."""
    generator = np.random.default_rng(seed)
    a = generator.choice(3, rows, p=[0.6, 0.3, 0.1])
    b = (generator.random(rows) < 0.2 + 0.3 * a).astype(int)
    c = (a + b + generator.integers(0, 2, rows)) % 4
    return np.stack([a, b, c], axis=1)


def noisy(clique, sigma, seed, table=None, domain=DOMAIN):
    exact = counts(correlated(3000, 0) if table is None else table, domain, clique)
    noise = np.rint(np.random.default_rng(seed).normal(0, sigma, exact.shape)).astype(np.int64)
    return MarginalMeasurement(clique, exact + noise, Fraction(sigma))


def primal(joint, total, measurements, shrinkage):
    """The objective of the docstring for a joint distribution, up to the normalisation of q."""
    value, prior = 0.0, np.ones(DOMAIN.sizes)
    for one in measurements:
        axes = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in one.clique)
        value += ((total * joint.sum(axis=axes) - one.values) ** 2).sum() / (2 * shrinkage * float(one.sigma))
        if len(one.clique) == 1:
            single = positive(one.values.astype(float), float(one.sigma), total) / total
            prior = prior * np.expand_dims(single, axes)
    return value + total * float((joint * np.log(np.maximum(joint, 1e-300) / prior)).sum())


def test_the_fit_is_the_minimum_of_the_stated_objective() -> None:
    """No small change of the joint distribution, in 400 random directions, makes the objective smaller."""
    measurements = [noisy((name,), 20, place) for place, name in enumerate(DOMAIN.names)]
    measurements += [noisy(("a", "b"), 15, 7), noisy(("b", "c"), 30, 8)]
    field = fit(DOMAIN, measurements, iterations=500)
    joint = field.marginal(DOMAIN.names) / field.total
    best = primal(joint, field.total, measurements, SHRINKAGE)
    generator = np.random.default_rng(1)
    for size in (1e-3, 1e-2):
        for _ in range(200):
            moved = joint * np.exp(size * generator.normal(size=joint.shape))
            assert primal(moved / moved.sum(), field.total, measurements, SHRINKAGE) > best - 0.5


def test_exact_counts_on_cliques_come_back() -> None:
    table = correlated(5000, 3)
    cliques = [("a", "b"), ("b", "c"), ("a", "c")]
    field = fit(
        DOMAIN, [MarginalMeasurement(c, counts(table, DOMAIN, c), Fraction(1, 10)) for c in cliques], iterations=500
    )
    assert field.total == pytest.approx(5000)
    for clique, got in zip(cliques, field.marginals(cliques), strict=True):
        assert np.abs(got - counts(table, DOMAIN, clique)).max() < 1


def test_a_warm_start_ends_where_a_cold_one_does() -> None:
    measurements = [noisy((name,), 20, place) for place, name in enumerate(DOMAIN.names)] + [noisy(("a", "b"), 15, 7)]
    first = fit(DOMAIN, measurements, iterations=300)
    more = [*measurements, noisy(("b", "c"), 25, 9)]
    cold = fit(DOMAIN, more, iterations=1000)
    warm = fit(DOMAIN, more, potentials=first.potentials, iterations=1000)
    assert np.allclose(cold.marginal(DOMAIN.names), warm.marginal(DOMAIN.names), atol=0.5)


def test_structural_zeros_hold_whatever_the_counts_say() -> None:
    impossible = np.zeros((3, 2), bool)
    impossible[0, 1] = impossible[2, 0] = True
    measurements = [noisy(("a", "b"), 5, 1), noisy(("b", "c"), 5, 2)]
    field = fit(DOMAIN, measurements, zeros={("a", "b"): impossible})
    assert (field.marginal(("a", "b"))[impossible] == 0).all()
    rows = field.sample(2000)
    assert not impossible[rows[:, 0], rows[:, 1]].any()


def test_zeros_that_contradict_each_other() -> None:
    first = np.array([[True] * 2, [True] * 2, [False] * 2])
    second = np.zeros((3, 4), bool)
    second[2] = True
    with pytest.raises(QuestionError, match="no row possible"):
        fit(DOMAIN, [noisy(("a",), 5, 1)], zeros={("a", "b"): first, ("a", "c"): second})
    with pytest.raises(QuestionError, match="one entry for each cell"):
        fit(DOMAIN, [], zeros={("a", "b"): second})


def test_repetitions_and_sub_marginals_share_what_they_know() -> None:
    """The total is the weighted average of all sums, each with the variance cells·σ²."""
    one = MarginalMeasurement(("a",), np.array([10, 20, 30]), Fraction(1))
    other = MarginalMeasurement(("b",), np.array([30, 40]), Fraction(2))
    assert total_rows([one, other]) == pytest.approx((60 / 3 + 70 / 8) / (1 / 3 + 1 / 8))
    assert total_rows([MarginalMeasurement(("a",), np.array([-10, -20, 3]), Fraction(1))]) == 0
    assert total_rows([]) == 0


def test_coarser_counts_tell_of_coarser_cells_only() -> None:
    coarse = MarginalMeasurement(("c",), np.array([900, 100]), Fraction(1), ((0, 0, 1, 1),))
    got = fit(DOMAIN, [coarse]).marginal(("c",))
    assert np.allclose(got, [450, 450, 50, 50], atol=5)
    with pytest.raises(QuestionError, match="coarser cells"):
        fit(DOMAIN, [MarginalMeasurement(("c",), np.array([900, 100]), Fraction(1), ((0, 0, 2, 2),))])
    with pytest.raises(QuestionError, match="one mapping"):
        fit(DOMAIN, [MarginalMeasurement(("c",), np.array([900, 100]), Fraction(1), (None, None))])


@pytest.mark.parametrize("values", [[0, 0, 0], [-5, -3, -9], [10**9, -(10**9), 0], [0, 0, 10**15]])
def test_strange_counts_give_a_distribution_all_the_same(values) -> None:
    pair = np.outer(values, [1, -1]).astype(np.int64)
    field = fit(
        DOMAIN,
        [
            MarginalMeasurement(("a",), np.array(values), Fraction(3)),
            MarginalMeasurement(("a", "b"), pair, Fraction(3)),
        ],
    )
    joint = field.marginal(DOMAIN.names)
    assert np.isfinite(joint).all()
    assert (joint >= 0).all()
    assert joint.sum() == pytest.approx(field.total)
    assert field.sample(10).shape == (10, 3)
    assert field.sample(0).shape == (0, 3)


def test_nothing_measured_is_all_alike() -> None:
    field = fit(DOMAIN, [])
    assert field.total == 0
    assert np.allclose(np.bincount(field.sample(2400)[:, 0], minlength=3), 800, atol=2)


def test_a_column_of_one_cell_and_one_of_thousands() -> None:
    domain = Domain.of({"one": 1, "many": 5000, "b": 2})
    generator = np.random.default_rng(5)
    many = MarginalMeasurement(("many",), generator.integers(-50, 60, 5000), Fraction(30))
    pair = MarginalMeasurement(("one", "b"), np.array([[4000, 1000]]), Fraction(30))
    field = fit(domain, [many, pair])
    assert field.marginal(("b",)).sum() == pytest.approx(field.total)
    assert (field.sample(100)[:, 0] == 0).all()


def test_a_domain_larger_than_memory_is_refused_with_its_size() -> None:
    domain = Domain(tuple("abcdefgh"), (100,) * 8)
    cliques = list(itertools.combinations(domain.names, 2))
    with pytest.raises(QuestionError, match=r"10,000,000,000,000,000 cells, above the limit"):
        fit(domain, [MarginalMeasurement(c, np.zeros((100, 100), np.int64), Fraction(1)) for c in cliques[:28]])


def test_measurements_that_do_not_fit_the_domain() -> None:
    for clique, shape, sigma in ((("a", "b"), (2, 3), 1), (("b", "a"), (2, 3), 1), (("a",), (3,), 0)):
        with pytest.raises(QuestionError):
            fit(DOMAIN, [MarginalMeasurement(clique, np.zeros(shape, np.int64), Fraction(sigma))])


def test_positive_counts_add_up_and_keep_their_order() -> None:
    values = np.array([-300.0, -20.0, 0.0, 15.0, 500.0, 4000.0])
    found = positive(values, 50.0, 4200.0)
    assert (found > 0).all()
    assert found.sum() == pytest.approx(4200, rel=1e-3)
    assert (np.diff(found) > 0).all()
