"""Rows drawn from a model: their counts beside the model's, also of columns that no clique holds together."""

from __future__ import annotations

import itertools
import math

import numpy as np

from discreet.markov import Domain, MarkovRandomField
from discreet.markov.calibrate import Calibrator
from discreet.markov.rows import draw
from discreet.markov.tree import junction_tree

KIND = "exact"


def model(domain: Domain, cliques, seed: int) -> MarkovRandomField:
    generator = np.random.default_rng(seed)
    tree = junction_tree(domain, cliques)
    calibrator = Calibrator(tree, cliques)
    calibrator.run([generator.normal(0, 1.5, domain.shape(clique)) for clique in cliques])
    return MarkovRandomField(tree, tuple(calibrator.beliefs), 1.0, {})


def counts(rows, domain, clique):
    codes = np.ravel_multi_index([rows[:, domain.place[name]] for name in clique], domain.shape(clique))
    return np.bincount(codes, minlength=domain.cells(clique)).reshape(domain.shape(clique))


STAR = Domain.of({"root": 4, "x": 8, "y": 8, "z": 8})
BRANCHES = [("root", "x"), ("root", "y"), ("root", "z")]


def test_children_of_one_parent_are_independent_given_it() -> None:
    """20,000 rows: the ℓ1 distance on pairs of children is 0.02, independent draws' is about 0.045; ranks in the order
    of the rows, which tie children together, would give more than 1."""
    field = model(STAR, BRANCHES, 0)
    rows = draw(field.tree, field.beliefs, 20_000, np.random.default_rng(0))
    for pair in itertools.combinations(STAR.names, 2):
        assert np.abs(counts(rows, STAR, pair) / 20_000 - field.marginal(pair)).sum() < 0.045
    for triple in (("x", "y", "z"), ("root", "x", "z")):
        expected = math.sqrt(2 / math.pi) * np.sqrt(field.marginal(triple) / 20_000).sum()
        assert np.abs(counts(rows, STAR, triple) / 20_000 - field.marginal(triple)).sum() < 1.1 * expected


def test_cliques_of_the_tree_are_met_to_a_row_or_so() -> None:
    """The first clique to within a row a cell; children to within two a cell of each group."""
    field = model(STAR, BRANCHES, 1)
    rows = draw(field.tree, field.beliefs, 5000, np.random.default_rng(1))
    first = tuple(sorted(field.tree.cliques[0], key=STAR.place.__getitem__))
    assert np.abs(counts(rows, STAR, first) - 5000 * field.marginal(first)).max() <= 1 + 1e-9
    for pair in BRANCHES:
        assert np.abs(counts(rows, STAR, pair) - 5000 * field.marginal(pair)).max() <= 3


def test_the_average_of_many_tables_is_the_model() -> None:
    """Also with seven rows a table: 4,000 tables, whose cell means lie within six standard errors of the model's."""
    field = model(STAR, BRANCHES, 2)
    generator = np.random.default_rng(2)
    tables, size = 4000, 7
    rows = np.concatenate([draw(field.tree, field.beliefs, size, generator) for _ in range(tables)])
    for pair in itertools.combinations(STAR.names, 2):
        expected = field.marginal(pair)
        error = 6 * np.sqrt(expected * (1 - expected) * size / tables) / size + 1e-3 / tables
        assert (np.abs(counts(rows, STAR, pair) / (tables * size) - expected) < error).all()


def test_tables_differ_from_each_other() -> None:
    field = model(STAR, BRANCHES, 3)
    assert (field.sample(500) != field.sample(500)).any()


def test_impossible_cells_stay_empty() -> None:
    domain = Domain.of({"a": 3, "b": 3, "c": 3})
    logs = np.zeros((3, 3))
    logs[np.arange(3), np.arange(3)] = -np.inf
    tree = junction_tree(domain, [("a", "b"), ("b", "c")])
    calibrator = Calibrator(tree, [("a", "b"), ("b", "c")])
    calibrator.run([logs, logs])
    rows = draw(tree, calibrator.beliefs, 3000, np.random.default_rng(4))
    assert (rows[:, 0] != rows[:, 1]).all()
    assert (rows[:, 1] != rows[:, 2]).all()
