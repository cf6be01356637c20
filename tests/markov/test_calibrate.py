"""Junction trees, calibration and marginals, beside the whole joint distribution of small domains."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import QuestionError
from discreet.markov import Domain, MarkovRandomField
from discreet.markov.calibrate import Calibrator, aligned, summed
from discreet.markov.tree import Graph, junction_tree
from kinds import examples

KIND = "exact"

NAMES = "abcdef"


@st.composite
def models(draw, zeros: bool = False):
    """A domain, cliques of it, and logarithms of factors on them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    domain = Domain(tuple(NAMES[: len(sizes)]), tuple(sizes))
    subsets = [c for k in (1, 2, 3) for c in itertools.combinations(domain.names, k)]
    cliques = draw(st.lists(st.sampled_from(subsets), max_size=6))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = [generator.normal(0, draw(st.sampled_from([0.5, 5.0, 60.0, 1e3, 1e5])), domain.shape(c)) for c in cliques]
    if zeros:
        for factor in factors:
            factor[generator.random(factor.shape) < 0.2] = -np.inf
    return domain, cliques, factors


def whole(domain: Domain, cliques, factors):
    """The joint distribution and the logarithm of its constant, from the definition."""
    logs = np.zeros(domain.sizes)
    for clique, factor in zip(cliques, factors, strict=True):
        logs = logs + aligned(factor, clique, domain.names)
    top = logs.max()
    if top == -np.inf:
        return None, -np.inf
    mass = np.exp(logs - top)
    return mass / mass.sum(), top + math.log(mass.sum())


@settings(max_examples=examples(150), deadline=None)
@given(models())
def test_a_junction_tree_holds_every_clique_and_has_the_running_intersection_property(model) -> None:
    domain, cliques, _ = model
    tree = junction_tree(domain, cliques)
    assert all(tree.holder(clique) is not None for clique in [*cliques, *[(name,) for name in domain.names]])
    assert tree.cells == sum(math.prod(domain.shape(clique)) for clique in tree.cliques)
    graph = Graph.of(domain, cliques)
    assert tree.cells == graph.cells(graph.triangulated()) <= graph.cells(graph.by_cells())
    for name in domain.names:
        inside = [place for place, clique in enumerate(tree.cliques) if name in clique]
        # all but one have a parent that holds the column too: they are connected
        assert sum(name not in separator for separator in (tree.separators[place] for place in inside)) == 1
    for place, parent in enumerate(tree.parents):
        assert parent < place
        assert set(tree.separators[place]) == (set(tree.cliques[place]) & set(tree.cliques[parent]) if place else set())


@settings(max_examples=examples(150), deadline=None)
@given(models(zeros=True))
def test_calibration_gives_the_constant_and_every_marginal_of_the_joint_distribution(model) -> None:
    domain, cliques, factors = model
    tree = junction_tree(domain, cliques)
    joint, constant = whole(domain, cliques, factors)
    calibrator = Calibrator(tree, cliques)
    if joint is None:
        with pytest.raises(QuestionError, match="no row possible"):
            calibrator.run(factors)
        return
    assert calibrator.run(factors) == pytest.approx(constant, rel=1e-9, abs=1e-9)
    for place, clique in enumerate(cliques):
        assert np.allclose(calibrator.marginal(place), summed(joint, domain.names, clique), atol=1e-10)
    field = MarkovRandomField(tree, tuple(calibrator.beliefs), 10.0, {})
    for size in range(1, len(domain.names) + 1):
        for clique in itertools.combinations(domain.names, size):
            assert np.allclose(field.marginal(clique), 10 * summed(joint, domain.names, clique), atol=1e-9)


@pytest.mark.parametrize("far", [300.0, 700.0, 740.0, 2_000.0, 1e6])
def test_what_one_clique_makes_unlikely_another_makes_likely_again(far) -> None:
    """Beside each other, the two leave all values of b equally likely, however far each alone is from that."""
    domain = Domain.of({"a": 2, "b": 3, "c": 2})
    cliques = [("a", "b"), ("b", "c")]
    low = np.array([0.0, -far, -np.inf])
    for first, second in ((low, -low), (-np.where(low == -np.inf, 0, low), low)):
        second = np.where(np.isinf(second), -np.inf, second)
        factors = [np.array([0.0, 1.0])[:, None] + first, second[:, None] + np.array([0.0, 2.0])]
        calibrator = Calibrator(junction_tree(domain, cliques), cliques)
        constant = calibrator.run(factors)
        joint, expected = whole(domain, cliques, factors)
        assert constant == pytest.approx(expected, rel=1e-9)
        for place, clique in enumerate(cliques):
            assert np.allclose(calibrator.marginal(place), summed(joint, domain.names, clique), rtol=1e-9, atol=0)
        assert np.allclose(calibrator.marginal(0).sum(axis=0), [0.5, 0.5, 0])


def test_a_chain_is_triangulated_without_an_edge_more() -> None:
    names = tuple(f"c{place}" for place in range(40))
    domain = Domain(names, (10,) * 40)
    tree = junction_tree(domain, itertools.pairwise(names))
    assert tree.cells == 39 * 100
    both_ends = MarkovRandomField(tree, tuple(np.full((10, 10), 0.01) for _ in range(39)), 5.0, {}).marginal(
        ("c39", "c0")
    )
    assert np.allclose(both_ends, 0.05)


def test_a_grid_costs_no_more_than_its_width() -> None:
    """A grid of 5 by 5 columns of two cells: the best elimination has cliques of 6, greedy ones come near."""
    at = {(x, y): f"g{x}{y}" for x in range(5) for y in range(5)}
    pairs = [(at[x, y], at[x + 1, y]) for x in range(4) for y in range(5)]
    pairs += [(at[x, y], at[x, y + 1]) for x in range(5) for y in range(4)]
    tree = junction_tree(Domain(tuple(at.values()), (2,) * 25), pairs)
    assert max(map(len, tree.cliques)) <= 7


def test_joining_far_columns_is_refused_where_it_would_not_fit() -> None:
    names = tuple(f"c{place}" for place in range(9))
    domain = Domain(names, (10,) * 9)
    tree = junction_tree(domain, [(name, "c8") for name in names[:8]])
    beliefs = tuple(np.full(domain.shape(clique), 1 / domain.cells(clique)) for clique in tree.cliques)
    field = MarkovRandomField(tree, beliefs, 1.0, {})
    assert field.marginal(names[:4]).shape == (10, 10, 10, 10)
    with pytest.raises(QuestionError, match="cells is too large"):
        field.marginal(names[:8])


@pytest.mark.parametrize(
    ("names", "sizes", "text"),
    [
        ((), (), "without columns"),
        (("a", "a"), (2, 2), "one name"),
        (("a",), (0,), "one cell"),
        (("a",), (True,), "cell"),
    ],
)
def test_a_domain_that_is_none(names, sizes, text) -> None:
    with pytest.raises(QuestionError, match=text):
        Domain(names, sizes)


def test_columns_are_named_once_and_known() -> None:
    domain = Domain.of({"a": 2, "b": 3})
    assert domain.clique(("b", "a")) == ("a", "b")
    assert domain.cells(("a", "b")) == 6
    with pytest.raises(QuestionError, match="no such column"):
        domain.clique(("c",))
    with pytest.raises(QuestionError, match="named twice"):
        domain.clique(("a", "a"))
