"""The state of the residue filter: how much it admits, what it refuses, and that it never rises."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.room import times
from discreet.trusted.ring_a.curves import mu_of_budget, mu_of_pure
from discreet.trusted.ring_a.loss import Approximate, Batch, DiscreteLaplace, GaussianLoss, Loss, Pure
from discreet.trusted.ring_b.further_losses import LaplaceLoss, SubsampledGaussian
from discreet.trusted.ring_b.gdp_filter import _FAR, _NEAR, _grid, _root_below, charge, opening
from kinds import examples

KIND = "exact"

HUNDREDTH = Fraction(1, 100)


def one_by_one(loss: Loss, left: Fraction | None) -> int:
    count = 0
    while (left := charge(loss, left)) is not None:
        count += 1
    return count


@pytest.mark.parametrize(
    ("epsilon", "delta", "each", "least", "most"),
    [
        (1, "1e-6", "0.01", 560, 560),
        (3, "1e-6", "0.1", 42, 42),
        (3, "1e-6", "0.05", 169, 169),
        (10, "1e-6", "0.1", 351, 351),
        (1, "1e-6", "0.1", 5, 5),
    ],
)
def test_as_many_laplace_releases_as_the_exact_rule(epsilon: int, delta: str, each: str, least: int, most: int) -> None:
    """The figures of the rule itself, from quadrature in another program; the sum alone admits 100, 30, 60, 100, 10."""
    left = opening(epsilon, delta)
    assert least <= times(LaplaceLoss(each), left) <= most


@pytest.mark.parametrize(("steps", "expected"), [(1, 558), (5, 560), (73, 560), (2**20, 560)])
def test_discrete_laplace_releases(steps: int, expected: int) -> None:
    loss, left = DiscreteLaplace(HUNDREDTH, steps), opening(1, "1e-6")
    assert times(loss, left) == one_by_one(loss, left) == expected


def test_times_is_the_count_of_charges() -> None:
    batch = Batch((Pure(HUNDREDTH), GaussianLoss(Fraction(1, 50)), DiscreteLaplace(Fraction(1, 1000), 5)))
    losses: list[Loss] = [
        LaplaceLoss("0.02"),
        Pure(Fraction(1, 7)),
        GaussianLoss(Fraction(1, 9)),
        batch,
        Pure(Fraction(3)),
    ]
    for loss in losses:
        for left in (opening(1, "1e-6"), opening(3, "1e-9"), Fraction(1, 3), Fraction(0), None):
            assert times(loss, left) == one_by_one(loss, left)
    assert times(LaplaceLoss("0.02"), opening(1, "1e-6"), most=3) == 3
    assert times(Pure(Fraction(0)), opening(1, "1e-6"), most=9) == 9
    assert times(LaplaceLoss("0.0001"), opening(3, "1e-6")) > 4_000_000


def test_gaussian_releases_cost_exactly_their_square() -> None:
    left = opening(1, "1e-6")
    after = charge(GaussianLoss(Fraction(1, 10)), left)
    assert after is not None
    assert Fraction(1, 100) <= left - after <= Fraction(1, 100) + Fraction(1, 2**120)
    assert charge(GaussianLoss(Fraction(1, 4)), left) is None


def test_a_run_without_better_knowledge_costs_what_it_does_unsampled() -> None:
    left = Fraction(1)
    after = charge(SubsampledGaussian(10, "0.01", 25), left)
    assert after is not None
    assert abs(left - after - Fraction(1, 4)) < Fraction(1, 2**120)


def test_what_costs_keys_is_charged_for_its_epsilon() -> None:
    left = opening(1, "1e-6")
    assert charge(Approximate(HUNDREDTH, Fraction(1, 10**9)), left) == charge(Pure(HUNDREDTH), left)


def test_a_batch_costs_its_parts_the_largest_first() -> None:
    left = opening(3, "1e-6")
    large, small = Pure(Fraction(1, 5)), DiscreteLaplace(Fraction(1, 20), 3)
    batch = Batch((small, GaussianLoss(Fraction(1, 30)), large))
    assert charge(batch, left) == charge(GaussianLoss(Fraction(1, 30)), charge(small, charge(large, left)))
    other = charge(large, charge(small, charge(GaussianLoss(Fraction(1, 30)), left)))
    best = charge(batch, left)
    assert best is not None
    assert other is not None
    assert best >= other


def test_dead_is_dead() -> None:
    """A large release that only another filter admits ends this one, for smaller releases as well."""
    left = charge(Pure(Fraction(99, 100)), opening(1, "1e-6"))
    assert left is None
    assert charge(Pure(Fraction(1, 10**6)), left) is None
    assert charge(Pure(Fraction(0)), left) is None
    assert times(Pure(HUNDREDTH), left) == 0


def portfolio(losses: list[Loss], epsilon: Fraction, delta: Fraction) -> list[bool]:
    """Which releases "pure sum or residue, both debited" admits; one of both must have admitted all so far."""
    spent: Fraction | None = Fraction(0)
    left: Fraction | None = opening(epsilon, delta)
    admitted = []
    for loss in losses:
        after_sum = None if spent is None or loss.pure is None or spent + loss.pure > epsilon else spent + loss.pure
        after = charge(loss, left)
        admitted.append(after_sum is not None or after is not None)
        if admitted[-1]:
            spent, left = after_sum, after
    return admitted


def test_the_sum_does_not_revive_the_residue() -> None:
    """One response of .99 through the sum, then 558 of .01: with the old r kept, δ(1) would be 6.5e-2 on 1e-6."""
    admitted = portfolio([Pure(Fraction(99, 100))] + 558 * [Pure(HUNDREDTH)], Fraction(1), Fraction(1, 10**6))
    assert admitted[:2] == [True, True]  # .99 + .01 is the whole sum
    assert not any(admitted[2:])
    assert sum(portfolio(558 * [Pure(HUNDREDTH)], Fraction(1), Fraction(1, 10**6))) == 558


def test_the_adaptive_counterexample_is_refused() -> None:
    """After a response of .2, one of .826 on "+" or a δ of .01 on "−": each path alone is (1, .01)-DP, both are not.

    The real δ(1) of that interaction is .0145. A filter may admit at most one of the two continuations.
    """
    budget, delta, second = Fraction(1), Fraction(1, 100), Fraction("0.826493603072298")
    assert portfolio([Pure(Fraction(1, 5)), Pure(second)], budget, delta) == [True, False]
    assert portfolio([Pure(second)], budget, delta) == [True]
    with_keys = opening(budget, Fraction(0))  # the whole delta set apart for the other branch leaves the sum alone
    assert with_keys == 0
    assert charge(Pure(Fraction(1, 5)), with_keys) is None


losses = st.one_of(
    st.tuples(st.integers(1, 3000), st.sampled_from([1, 2, 3, 7, 100])).map(
        lambda pair: DiscreteLaplace(Fraction(pair[0], 1000), pair[1])
    ),
    st.integers(1, 3000).map(lambda n: LaplaceLoss(Fraction(n, 1000))),
    st.integers(1, 3000).map(lambda n: GaussianLoss(Fraction(n, 1000))),
)
states = st.integers(1, 4000).map(lambda n: Fraction(n, 500))


@settings(max_examples=examples(150), deadline=None)
@given(losses, states, st.integers(0, 1000))
def test_more_left_before_is_more_left_after(loss: Loss, left: Fraction, more: int) -> None:
    """Monotone up to the ten digits to which a charge is proved."""
    after, later = charge(loss, left), charge(loss, left + Fraction(more, 700))
    if after is not None:
        assert later is not None
        assert later >= after - left / 10**8
        assert 0 <= after < left


@settings(max_examples=examples(150), deadline=None)
@given(losses, states)
def test_never_worse_than_the_plain_rule(loss: Loss, left: Fraction) -> None:
    """μ-GDP of the noise alone always gives a charge; the residue's is no larger, so it refuses no more."""
    plain = loss.mu if isinstance(loss, GaussianLoss) else mu_of_pure(loss.epsilon)
    after = charge(loss, left)
    if plain**2 <= left * (1 - Fraction(1, 10**6)):
        assert after is not None
        assert after >= left - plain**2 * (1 + Fraction(1, 10**6))


def test_the_opening_state_is_rounded_down() -> None:
    for epsilon, delta in ((1, "1e-6"), ("0.1", "1e-9"), (3, "1e-3"), (30, "1e-6")):
        budget = Fraction(epsilon), Fraction(delta)
        assert opening(*budget) <= mu_of_budget(*budget) ** 2 < opening(*budget) + Fraction(1, 2**127)


def test_a_kept_charge_was_proved_at_no_larger_state() -> None:
    """It falls as the state grows: proved at a smaller one it holds, at a larger one it would not."""
    random = Random(5)
    squares = [Fraction(random.randrange(1, 10**9), random.randrange(1, 10**6)) for _ in range(500)]
    squares += [Fraction(root * root, 256) + more for root in range(60, 1100, 7) for more in (0, -Fraction(1, 10**30))]
    for square in squares:
        grid = _grid(square)
        assert (grid is None) is (square < _NEAR**2)
        if grid is not None:
            assert grid**2 <= square
            assert min(square, Fraction(_FAR**2)) < (grid * Fraction(17, 16)) ** 2
        root = _root_below(square, Fraction(1, 7))
        assert root**2 <= square < (root + Fraction(1, 2**60)) ** 2


def test_tiny_and_huge_losses_fall_back_to_the_plain_rule() -> None:
    for epsilon in (Fraction(1, 10**12), Fraction(100)):
        left = 2 * mu_of_pure(epsilon) ** 2
        after = charge(Pure(epsilon), left)
        assert after is not None
        assert abs(after - left / 2) <= left / 1000 + Fraction(1, 2**120)
