"""A target: which marginals matter to whoever predicts a column, what choosing among them costs, and what it gains."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.markov import Domain
from discreet.mechanisms import ExponentialMechanism
from discreet.synthesis.adaptive import synthesise
from discreet.synthesis.candidates import weights
from discreet.synthesis.schedule import (
    HEARD,
    MOST_TARGETED,
    MOST_TRIPLES,
    closure,
    marginals_for,
)
from memory_measurer import Memory, planned

DELTA = Fraction(1, 10**9)


def test_all_pairs_matter_and_the_triples_that_hold_the_target() -> None:
    domain = Domain.of({"a": 3, "b": 4, "y": 2, "c": 5})
    found = marginals_for(domain, "y")
    assert set(found) == {("a", "b", "y"), ("a", "y", "c"), ("b", "y", "c"), *itertools.combinations(domain.names, 2)}
    assert len(found) == 9
    assert marginals_for(Domain.of({"y": 3}), "y") == (("y",),)
    assert marginals_for(Domain.of({"y": 3, "a": 2}), "y") == (("y", "a"),)
    assert marginals_for(Domain.of({"y": 10**6, "a": 2}), "y") == (("a",),)


@pytest.mark.parametrize("size", [2, 300])
def test_of_very_many_triples_those_with_the_fewest_cells_matter(size: int) -> None:
    domain = Domain.of({"y": 2, **{f"c{place}": size if place % 7 else 100 for place in range(60)}})
    triples = [one for one in marginals_for(domain, "y") if len(one) == 3]
    cells = [domain.cells(one) for one in triples]
    assert all("y" in one for one in triples)
    assert len(set(triples)) == len(triples) <= MOST_TRIPLES
    assert max(cells) <= HEARD
    assert sum(cells) <= MOST_TARGETED
    left_out = [
        domain.cells(("y", *two)) for two in itertools.combinations(domain.names[1:], 2) if ("y", *two) not in triples
    ]
    assert max(cells) <= min(left_out)


def chances(scores: list[int], epsilon: Fraction, sensitivity: int) -> list[float]:
    """The logarithms of the exponential mechanism's chances."""
    rate = float(ExponentialMechanism(epsilon, sensitivity).rate)
    whole = math.log(sum(math.exp(rate * (score - max(scores))) for score in scores)) + rate * max(scores)
    return [rate * score - whole for score in scores]


@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_weights_move_no_choice_further_than_it_is_paid_for(rows_per_person: int) -> None:
    """Tables with a person and without, whatever was predicted: the logarithms of the chances differ by an interval of
    at most ε. Noise that is not scaled with the largest weight would leave it far behind."""
    rng = np.random.default_rng(5)
    domain = Domain.of({"y": 2, "a": 2, "b": 3, "c": 2, "d": 2})
    workload = marginals_for(domain, "y")
    candidates = closure(domain, workload)
    heavy = weights(domain, candidates, workload)
    assert max(heavy) > 2 * min(heavy)
    assert max(heavy) == heavy[candidates.index(("y", "a", "b"))]
    epsilon, widest, unscaled = Fraction(1), 0.0, 0.0
    for _ in range(200):
        rows = np.stack([rng.integers(0, size, 40 + rows_per_person) for size in domain.sizes], axis=1)
        if rng.random() < 0.5:
            rows[40:] = rows[40]
        scores: list[list[int]] = [[], []]
        for clique, weight in zip(candidates, heavy, strict=True):
            with_person, without = (Memory(some, domain).count(clique) for some in (rows, rows[:40]))
            prediction = rng.choice([with_person + 5, without - 5, with_person, without, rng.permutation(without)])
            scores[0].append(weight * int(np.abs(with_person - prediction).sum()))
            scores[1].append(weight * int(np.abs(without - prediction).sum()))
        for scale in (rows_per_person * max(heavy), rows_per_person):
            one, other = (chances(each, epsilon, scale) for each in scores)
            moved = np.subtract(one, other)
            if scale == rows_per_person:
                unscaled = max(unscaled, float(np.ptp(moved)))
            else:
                widest = max(widest, float(np.ptp(moved)))
    assert 0.5 < widest <= 1 + 1e-9
    assert unscaled > 5


def test_what_three_columns_tell_of_the_target_is_learnt_from_a_wide_table() -> None:
    """The target is 1 where two of 40 columns differ: no pair of columns tells anything of it."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (4000, 41))
    rows[:, 40] = rows[:, 3] ^ rows[:, 17]
    domain = Domain.of({f"c{place}": 2 for place in range(40)} | {"y": 2})
    schedule = planned("adaptive", domain, 4, DELTA, target="y")
    measurer = Memory(rows, domain)
    result = synthesise(schedule, domain, measurer)
    made = result.rows
    assert (made[:, 40] == made[:, 3] ^ made[:, 17]).mean() > 0.9
    assert set(measurer.spent) <= set(schedule.parts)
    assert all(len(one.clique) == 1 or "y" in one.clique for one in result.measurements)
    assert {("c0", "c1"), ("c0", "y"), ("c3", "c17", "y")} <= set(result.bounds)
    assert {one.clique for one in result.measurements} <= set(result.evidence.shapes)  # what bounds allow for


def test_where_the_target_is_not_there_after_all_pairs_are_chosen() -> None:
    domain = Domain.of({"a": 3, "b": 4, "y": 2, "c": 5})
    schedule = planned("adaptive", domain, 4, DELTA, target="y")
    rows = np.random.default_rng(2).integers(0, 3, (2000, 1)) * np.ones(3, np.int64)
    left = Domain.of({"a": 3, "b": 4, "c": 5})
    among = schedule.among(left)
    assert among.target is None
    assert set(among.parts) <= set(schedule.parts)
    result = synthesise(among, left, Memory(rows, left))
    assert {len(one.clique) for one in result.measurements} == {1, 2}
    assert (result.rows[:, 0] == result.rows[:, 1]).mean() > 0.9
