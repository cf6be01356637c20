"""What is left of a Gaussian budget when a release takes just all of it, or no more are asked for."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting.room import times_at as times
from discreet.trusted.ring_a.gaussian_budget import Price, charge, down, squares, up
from discreet.trusted.ring_a.loss import Batch, GaussianLoss, Loss, Pure

ONE, BIT = Fraction(1), Fraction(1, 1 << 128)


def test_a_release_may_take_all_that_is_left() -> None:
    assert charge(squares, GaussianLoss(ONE), ONE) == 0
    assert charge(squares, GaussianLoss(ONE), ONE - BIT) is None
    assert charge(squares, GaussianLoss(ONE), None) is None
    assert charge(squares, Batch((GaussianLoss(ONE), GaussianLoss(ONE))), Fraction(2)) == 0


def dearer_above(_loss: Loss, left: Fraction, /) -> Price:
    """1 a release down to 100, then a half."""
    return (ONE, Fraction(100)) if left > 100 else (ONE / 2, Fraction(0))


@pytest.mark.parametrize("most", [0, 1, 2, 3, 50, 10**6])
def test_no_more_are_counted_than_are_asked_for(most: int) -> None:
    """Also where the price falls on the way: two at 1, then two hundred at a half."""
    assert times(dearer_above, GaussianLoss(ONE), Fraction(102), most) == min(most, 202)


def test_the_largest_part_of_a_batch_is_charged_first() -> None:
    seen: list[Loss] = []

    def noted(loss: Loss, _left: Fraction, /) -> Price:
        seen.append(loss)
        return ONE, Fraction(0)

    small, large, other = Pure(ONE), Pure(Fraction(2)), GaussianLoss(Fraction(3))
    charge(noted, Batch((other, small, large)), Fraction(9))
    assert seen == [large, small, other]


def test_states_and_charges_are_multiples_of_one_grain() -> None:
    """A ledger's states are computed anew from its entries: with another grain they would be others."""
    assert (down(BIT), up(BIT)) == (BIT, BIT)
    assert (down(3 * BIT / 2), up(3 * BIT / 2)) == (BIT, 2 * BIT)
    assert (down(BIT / 2), up(BIT / 2)) == (0, BIT)
