"""Rows drawn beside given ones: they keep the model's pairs, whatever the given columns are like."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.markov import Domain, MarginalMeasurement, fit
from discreet.synthesis.conditional import dependences, drawn
from kinds import examples

KIND = "exact"
DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 3))


def table(rows: int) -> np.ndarray:
    """Given columns a and b that depend on each other; c follows from a, d from b and c."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, rows)
    b = np.where(rng.random(rows) < 0.8, a, 2)
    c = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 4, rows))
    d = np.where(rng.random(rows) < 0.5, b, c % 3)
    return np.column_stack([a, b, c, d])


def counts(rows: np.ndarray, clique: tuple[str, ...], weights: np.ndarray) -> np.ndarray:
    found = np.zeros(DOMAIN.shape(clique))
    np.add.at(found, tuple(rows[:, DOMAIN.place[name]] for name in clique), weights)
    return found


CLIQUES = [("a",), ("b",), ("c",), ("d",), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("a", "d")]


def check(weights: np.ndarray, given: np.ndarray) -> None:
    real = table(len(weights))
    known = [
        MarginalMeasurement(clique, np.rint(counts(real, clique, weights)).astype(np.int64), Fraction(1))
        for clique in CLIQUES
    ]
    model = fit(DOMAIN, known)
    beside = {"a": given[:, 0], "b": given[:, 1]}
    made = drawn(model, beside, weights, CLIQUES, np.random.default_rng(1))
    assert (made[:, :2] == given[:, :2]).all()
    for clique in CLIQUES[4:]:
        away = np.abs(counts(made, clique, weights) - counts(real, clique, weights)).sum() / weights.sum()
        assert away < 0.02, (clique, away)


def test_pairs_with_given_columns_that_depend_on_each_other_are_kept() -> None:
    """Two of them say the same of c: a model that took them for independent would count that twice."""
    check(np.ones(20_000, np.int64), table(20_000))


def test_rows_that_weigh_less_count_less() -> None:
    weights = np.random.default_rng(5).integers(1, 100, 20_000)
    check(weights, table(20_000))


def test_lines_of_the_model_are_scaled_to_the_rows_that_are_there() -> None:
    """Twice as many given rows of one kind get values by the same odds."""
    real = table(20_000)
    weights = np.ones(len(real), np.int64)
    known = [MarginalMeasurement(("a", "c"), counts(real, ("a", "c"), weights).astype(np.int64), Fraction(1))]
    model = fit(DOMAIN, known)
    ones = real[real[:, 0] == 1]
    given = np.concatenate([real, ones])
    heavy = np.ones(len(given), np.int64)
    made = drawn(model, {"a": given[:, 0]}, heavy, [("a", "c")], np.random.default_rng(1))
    for value in (0, 1):
        wanted = np.bincount(real[real[:, 0] == value][:, 2], minlength=4) / (real[:, 0] == value).sum()
        found = np.bincount(made[made[:, 0] == value][:, 2], minlength=4) / (made[:, 0] == value).sum()
        assert np.abs(found - wanted).sum() < 0.03


def test_no_rows_and_single_cells_are_drawn_too() -> None:
    domain = Domain(("a", "b"), (1, 2))
    model = fit(domain, [MarginalMeasurement(("b",), np.array([0, 0]), Fraction(1))])
    empty = np.zeros(0, np.int64)
    assert drawn(model, {"a": empty}, empty, [("b",)], np.random.default_rng(1)).shape == (0, 2)
    one = np.zeros(1, np.int64)
    assert drawn(model, {"a": one}, one + 1, [("b",), ("a", "b")], np.random.default_rng(1)).shape == (1, 2)


def test_a_tree_over_the_given_columns_holds_the_pairs_that_say_most() -> None:
    real = table(5_000)
    given = {name: real[:, place] for place, name in enumerate(DOMAIN.names)}
    found = dependences(DOMAIN, given, np.ones(5_000, np.int64))
    assert [clique for clique, _ in found[:4]] == [("a",), ("b",), ("c",), ("d",)]
    assert len(found) == 7
    assert ("a", "b") in [clique for clique, _ in found]
    assert all(int(one.sum()) == 5_000 for _, one in found)


@settings(max_examples=examples(100, 15), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rows_that_cannot_be_are_not_drawn_whatever_was_drawn_before(seed: int) -> None:
    """Two or three rules over columns that are drawn one after the other, which leave some rows possible."""
    rng = np.random.default_rng(seed)
    real = table(200)
    allowed = np.stack([rng.integers(0, size, 4) for size in DOMAIN.sizes], axis=1)
    zeros = {}
    for clique in (("b", "c"), ("c", "d"), ("b", "d"))[: rng.integers(2, 4)]:
        zeros[clique] = rng.random(DOMAIN.shape(clique)) < 0.7
        for row in allowed:
            zeros[clique][tuple(row[DOMAIN.place[name]] for name in clique)] = False
    known = [
        MarginalMeasurement((name,), counts(real, (name,), np.ones(200)).astype(np.int64), Fraction(1))
        for name in DOMAIN.names
    ]
    model = fit(DOMAIN, known, zeros=zeros)
    made = drawn(model, {"a": real[:, 0]}, np.ones(200, np.int64), CLIQUES, rng, list(zeros))
    for clique, empty in zeros.items():
        assert not counts(made, clique, np.ones(200))[empty].any()
