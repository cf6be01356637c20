"""Prices: the loss of what is drawn is the price that was named, and the cheaper noise is taken."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Approximate, DiscreteLaplace, Pure
from discreet.accounting import Gaussian as GaussianLoss
from discreet.mechanisms import Ball, Gaussian, Laplace, Threshold
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.trusted.ring_a.curves import delta_bounds, mu_of_budget
from discreet.trusted.ring_a.exact import sqrt_ceiling
from kinds import examples
from plan_tools import ONE, people, planned

KIND = "exact"

QUESTIONS = [
    (ONE, "SELECT COUNT(*) FROM t"),
    (ONE, "SELECT COUNT(*), SUM(v), AVG(w) FROM t GROUP BY g"),
    (people(3), "SELECT COUNT(*), SUM(v), SUM(s) FROM t GROUP BY k"),
    (people(7), "SELECT AVG(w), COUNT(*), COUNT(DISTINCT p) FROM t GROUP BY g, k"),
]
PRIVATE = [
    (ONE, "SELECT h, COUNT(*), AVG(v) FROM t GROUP BY h"),
    (people(7, 3), "SELECT h, g, COUNT(DISTINCT p), SUM(w) FROM t GROUP BY h, g"),
]
EPSILONS = st.fractions(min_value=Fraction(1, 10**6), max_value=100, max_denominator=10**6)


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(case=st.sampled_from(QUESTIONS), epsilon=EPSILONS)
def test_pure_noise_costs_its_price_exactly(case: tuple[Mapping[str, Any], str], epsilon: Fraction) -> None:
    """The parts' epsilons add up to the price, and each one's scale is its sensitivity over its share."""
    measured = measurement(planned(case[1], case[0]), Price(epsilon))
    assert measured.loss.pure == epsilon
    assert measured.loss.keys_delta == 0
    for part, event in zip(measured.parts, measured.loss.parts, strict=True):
        if isinstance(part.mechanism, Ball):
            assert event == Pure(part.sensitivity.l1 / part.mechanism.scale)
            continue
        assert isinstance(part.mechanism, Laplace)
        assert event == DiscreteLaplace(part.sensitivity.l1 / part.mechanism.scale, part.sensitivity.l1)


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(case=st.sampled_from(PRIVATE), epsilon=EPSILONS, exponent=st.integers(3, 30))
def test_private_keys_cost_epsilon_and_their_delta(
    case: tuple[Mapping[str, Any], str], epsilon: Fraction, exponent: int
) -> None:
    delta = Fraction(1, 10**exponent)
    measured = measurement(planned(case[1], case[0]), Price(epsilon, delta))
    assert measured.loss.pure == epsilon
    assert measured.loss.keys_delta == delta
    (keys,) = [part for part in measured.parts if part.part.kind == "keys"]
    assert isinstance(keys.mechanism, Threshold)
    assert isinstance(keys.mechanism.noise, Laplace)
    assert keys.mechanism.cells == keys.sensitivity.cells
    columns = sum(output.kind != "key" for output in measured.plan.outputs)
    used = sum(output.kind != "key" and measured.parts[output.index] is keys for output in measured.plan.outputs)
    assert Approximate(epsilon * (used + 1) / (columns + 1), delta) in measured.loss.parts
    assert all(not isinstance(part.mechanism, Gaussian) for part in measured.parts)


WIDE = (people(200), "SELECT COUNT(*), SUM(v) FROM t GROUP BY g, k")


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "10"])
@pytest.mark.parametrize("delta", ["1e-4", "1e-6", "1e-9"])
def test_gaussian_noise_stays_within_epsilon_and_delta(epsilon: str, delta: str) -> None:
    """All parts of a Gaussian release together are μ-GDP with a μ that implies (epsilon, delta), and hardly less."""
    aggregates = "COUNT(DISTINCT p), SUM(u, contribution_bounds_per_group => (0, 3))"
    plan = planned(f"SELECT {aggregates} FROM t GROUP BY g, k, b", people(200, 200))
    price = Price(Fraction(epsilon), Fraction(delta))
    measured = measurement(plan, price)
    assert all(isinstance(part.mechanism, Gaussian) for part in measured.parts)
    assert measured.loss.pure is None
    mu = sqrt_ceiling(measured.loss.mu_squared)
    assert delta_bounds(price.epsilon, mu)[1] <= price.delta
    assert mu <= mu_of_budget(price.epsilon, price.delta) * (1 + Fraction(1, 2**60))
    assert mu >= mu_of_budget(price.epsilon, price.delta) * (1 - Fraction(1, 2**60))
    for part, event in zip(measured.parts, measured.loss.parts, strict=True):
        assert isinstance(part.mechanism, Gaussian)
        assert isinstance(event, GaussianLoss)
        assert event.mu**2 >= part.sensitivity.l2_squared / part.mechanism.sigma**2


@pytest.mark.parametrize(
    ("unit", "question", "price", "expected"),
    [
        # one number, or a few rows in one group: Laplace; a person in many groups: Gaussian
        (ONE, "SELECT COUNT(*) FROM t", Price(Fraction(1), Fraction(1, 10**6)), Laplace),
        (ONE, "SELECT COUNT(*) FROM t GROUP BY g", Price(Fraction(1), Fraction(1, 10**6)), Laplace),
        (
            people(200),
            "SELECT COUNT(DISTINCT p) FROM t GROUP BY g, k",
            Price(Fraction(1, 10), Fraction(1, 10**4)),
            Gaussian,
        ),
        (people(200), "SELECT COUNT(DISTINCT p) FROM t GROUP BY g, k", Price(Fraction(1, 10)), Laplace),
        (
            people(200),
            "SELECT COUNT(DISTINCT p) FROM t GROUP BY g",
            Price(Fraction(1, 10), Fraction(1, 10**9)),
            Laplace,
        ),
        # private keys have Gaussian noise only where the budget has a delta for it
        (
            people(200),
            "SELECT h, COUNT(*) FROM t GROUP BY h",
            Price(Fraction(1, 10), Fraction(1, 10**4)),
            Laplace,
        ),
    ],
)
def test_the_noise_with_the_smaller_error_is_taken(
    unit: Mapping[str, Any], question: str, price: Price, expected: type
) -> None:
    measured = measurement(planned(question, unit), price)
    assert {type(part.mechanism) for part in measured.parts if part.part.kind != "keys"} == {expected}


def test_the_choice_reads_no_rows_and_is_the_same_every_time() -> None:
    unit, question = WIDE
    price = Price(Fraction(1, 10), Fraction(1, 10**4))
    assert measurement(planned(question, unit), price) == measurement(planned(question, unit), price)
