"""Planning and reconstruction against dense linear algebra: variances, estimates, and never worse than one by one."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Gaussian
from discreet.trusted.ring_c.linear_queries import Linear, loss_of
from discreet.workload import residuals
from discreet.workload.items import PREFIXES, RANGES, Count, Intervals, Item, Marginal
from discreet.workload.optimum import independent, optimum, singular_value_bound, tree, whole
from discreet.workload.plan import GAUSSIAN, LAPLACE, NoiseBudget, Strategy, VarianceLimits, WorkloadPlanner, strategy
from kinds import examples
from workload_tools import NOISES, asked, best_estimator, workloads

SAME = {"rtol": 1e-6, "atol": 1e-9}
KINDS = st.sampled_from(NOISES)


def strategies(items: list[Item], sizes: tuple[int, ...], noise: NoiseBudget) -> list[Strategy]:
    """Every kind of strategy that the planner tries."""
    planner = WorkloadPlanner(items, sizes, noise)
    return [planner.planned(), planner.one_by_one(), *planner.dense()]


@given(workloads(), KINDS)
@settings(max_examples=examples(40), deadline=None)
def test_variances_are_those_of_the_best_linear_estimate(case: tuple[Any, Any], noise: NoiseBudget) -> None:
    items, sizes = case
    for one in strategies(items, sizes, noise):
        inverse, _ = best_estimator(one.measurements, sizes)
        for rows, own in zip(asked(items, sizes), one.variances, strict=True):
            np.testing.assert_allclose(own, np.einsum("ij,jk,ik->i", rows, inverse, rows), **SAME)


@given(workloads(), KINDS, st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_answers_are_the_best_linear_estimate_and_agree(case: tuple[Any, Any], noise: NoiseBudget, seed: int) -> None:
    """Of made-up noise: the estimates are the dense ones, so they are linear functions of one table."""
    items, sizes = case
    made_up = np.random.default_rng(seed)
    table = made_up.integers(0, 50, sizes)
    for one in strategies(items, sizes, noise):
        exact, noisy = [], []
        for measurement in one.measurements:
            silent = Linear(
                measurement.columns,
                measurement.shape,
                type(measurement.mechanism)(Fraction(1, 10**9)),
                measurement.rows,
                measurement.atoms,
                measurement.residual,
            )
            others = tuple(axis for axis in range(len(sizes)) if axis not in measurement.columns)
            exact.append(silent.release(table.sum(axis=others)))
            noisy.append(measurement.release(table.sum(axis=others)))
        truth = [rows @ table.reshape(-1) for rows in asked(items, sizes)]
        found = one.reconstruction.estimates(exact)
        for item, place, known in zip(items, one.where, truth, strict=True):  # unbiased: without noise, the truth
            np.testing.assert_allclose(one.reconstruction.values(item, place, found), known, rtol=1e-5, atol=1e-5)
        _, estimator = best_estimator(one.measurements, sizes)
        best = estimator @ np.concatenate([values.reshape(-1).astype(float) for values in noisy])
        found = one.reconstruction.estimates(noisy)
        scale = max(1.0, float(np.abs(best).max()))
        for item, place, rows in zip(items, one.where, asked(items, sizes), strict=True):
            values = one.reconstruction.values(item, place, found)
            np.testing.assert_allclose(values / scale, rows @ best / scale, rtol=1e-5, atol=1e-5)


@given(workloads(), KINDS)
@settings(max_examples=examples(60), deadline=None)
def test_never_worse_than_one_by_one(case: tuple[Any, Any], noise: NoiseBudget) -> None:
    """No answer's variance is above that of its own question with an equal share, by the mechanism that a single count
    would have; nor is the sum of all, or the mean of an item, of which both bounds can be kept."""
    items, sizes = case
    found, alone = strategy(items, sizes, [noise])
    questions = sum(item.questions for item in items)
    assert alone == noise.alone(questions)
    for own in found.variances:
        assert own.max() <= alone * (1 + 1e-9)
    single = WorkloadPlanner(items, sizes, noise).one_by_one()
    assert all(own.max() <= alone * (1 + 1e-9) for own in single.variances)
    bounds = VarianceLimits.of(items, [noise])
    if bounds.fair(single) or not bounds.fair(found):
        assert found.total(items) <= single.total(items) * (1 + 1e-9)


@given(workloads())
@settings(max_examples=15, deadline=None)
def test_the_better_kind_of_noise_is_taken(case: tuple[Any, Any]) -> None:
    items, sizes = case
    noises = [NoiseBudget(LAPLACE, Fraction(1), 1), NoiseBudget(GAUSSIAN, Fraction(1, 5), 1)]
    found, alone = strategy(items, sizes, noises)
    assert alone == min(noise.alone(sum(item.questions for item in items)) for noise in noises)
    assert all(own.max() <= alone * (1 + 1e-9) for own in found.variances)


@given(workloads(), KINDS)
@settings(max_examples=examples(40), deadline=None)
def test_the_loss_is_the_price_at_most(case: tuple[Any, Any], noise: NoiseBudget) -> None:
    items, sizes = case
    for one in strategies(items, sizes, noise):
        loss = loss_of(one.measurements, noise.rows_per_person)
        if noise.kind == GAUSSIAN:
            assert isinstance(loss, Gaussian)
            assert noise.amount * (1 - Fraction(1, 10**6)) <= loss.mu <= noise.amount
        else:
            assert loss.pure is not None
            assert noise.amount * (1 - Fraction(1, 10**6)) <= loss.pure <= noise.amount


# the optimum


@pytest.mark.parametrize("kind", [RANGES, PREFIXES])
@pytest.mark.parametrize("cells", [1, 2, 7, 40, 150])
def test_the_optimum_lies_between_its_bounds(kind: str, cells: int) -> None:
    gram = Intervals((0,), (cells,), cells, kind).gram()
    found = optimum(gram)
    assert np.abs(found.rows**2).sum(axis=0).max() <= 1 + 1e-9
    inverse = np.linalg.inv(found.rows.T @ found.rows)
    assert math.isclose(float((gram * inverse).sum()), found.variance, rel_tol=1e-6)
    assert singular_value_bound(gram) <= found.bound * (1 + 1e-9)
    assert found.bound <= found.variance * (1 + 1e-9) <= found.bound * 1.003
    assert found.variance <= np.trace(gram) * (1 + 1e-9)  # every cell by itself


def test_the_optimum_of_two_cells_by_hand() -> None:
    """Both cells and their total. By symmetry X = [[1, c], [c, 1]]; tr(G·X⁻¹) = (4 − 2c)/(1 − c²) is least where
    c² − 4c + 1 = 0: c = 2 − √3, and there it is 2 + √3. Every cell by itself gives 4."""
    found = optimum(np.array([[2.0, 1.0], [1.0, 2.0]]))
    assert math.isclose(found.variance, 2 + math.sqrt(3), rel_tol=3e-3)


def test_whole_rows_tell_exactly_what_was_asked() -> None:
    asked = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 2, 1, 0]])
    basis = independent(asked)
    assert basis.tolist() == asked[:2].tolist()
    rows = whole(optimum((asked.T @ asked).astype(float)).rows, basis)
    weights = asked @ np.linalg.pinv(rows.astype(float))
    np.testing.assert_allclose(weights @ rows, asked, atol=1e-9)
    above = [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1]]
    assert tree(5, 2).tolist() == [*np.eye(5).tolist(), *above]


def test_marginals_reach_the_singular_value_bound() -> None:
    """A workload of marginals looks the same when values are renamed, so the bound of Li & Miklau 2013 is reached."""
    sizes = (3, 4, 2)
    items = [Marginal(columns, tuple(sizes[i] for i in columns)) for columns in itertools.combinations(range(3), 2)]
    total, shares = residuals.least([(item, 1.0) for item in items], sizes)
    rows = np.concatenate([own / math.sqrt(item.queries) for own, item in zip(asked(items, sizes), items, strict=True)])
    assert math.isclose(total, singular_value_bound(rows.T @ rows), rel_tol=1e-6)
    assert math.isclose(sum(shares.values()), 1)


def test_large_workloads_are_planned_at_once() -> None:
    """All one- and two-way marginals of fourteen columns, with ranges and counts: 106 sets of columns, no joint domain
    (its 10^17 cells would not fit anywhere)."""
    sizes = (9, 17, 7, 33, 16, 8, 15, 7, 6, 3, 33, 33, 33, 42)
    items: list[Item] = [
        Marginal(columns, tuple(sizes[i] for i in columns))
        for ways in (1, 2)
        for columns in itertools.combinations(range(14), ways)
    ]
    items.append(Intervals((3,), (33,), 32, RANGES))
    items.append(Count((0, 2, 4), (9, 7, 16), ((True,) + (False,) * 8, (True, True) + (False,) * 5, (True,) * 16)))
    found, alone = strategy(items, sizes, [NoiseBudget(GAUSSIAN, Fraction(1), 1)])
    ratios = [float(own.max()) / alone for own in found.variances]
    assert max(ratios) <= 1
    assert sum(ratios) / len(ratios) < 0.6


def test_a_drowned_item_is_lifted() -> None:
    """Many counts that one strategy answers well, beside a marginal that would lose by the mean alone."""
    sizes = (2, 5)
    items: list[Item] = [Marginal((0,), (2,)), Marginal((0, 1), (2, 5)), Marginal((), ())]
    items += [Count((1,), (5,), (tuple(bool(mask >> bit & 1) for bit in range(5)),)) for mask in range(1, 31)]
    for noise in NOISES:
        found, alone = strategy(items, sizes, [noise])
        assert all(own.max() <= alone * (1 + 1e-9) for own in found.variances)
