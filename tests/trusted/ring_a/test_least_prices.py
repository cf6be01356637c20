"""The least price of a measurement at its edges."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.errors import QuestionError
from discreet.trusted.ring_a.exact import ceiling
from discreet.trusted.ring_a.filter import PrivacyFilter
from discreet.trusted.ring_a.least import Least
from discreet.trusted.ring_a.loss import GaussianLoss, Loss, Pure, Single

CENT = Fraction(1, 100)
LEAST = Least(CENT, Fraction(1, 10_000))


@pytest.mark.parametrize(
    ("epsilon", "declared", "expected"),
    [
        (Fraction(1), None, Fraction(1, 10_000)),
        (Fraction(12345), None, Fraction(1, 1000)),  # never more than that
        (Fraction("1.23456"), None, Fraction("0.000124")),  # three digits, rounded up
        (Fraction("1.00005"), None, Fraction("0.000101")),
        (Fraction(1), CENT, CENT),
        (Fraction(12345), Fraction(7), Fraction(7)),
    ],
)
def test_the_least_price_of_a_budget(epsilon: Fraction, declared: Fraction | None, expected: Fraction) -> None:
    """Its μ² is the same share of the budget's μ², rounded up to three digits."""
    budget = PrivacyFilter(epsilon, Fraction(1, 10**6))
    least = Least.of(budget, declared)
    assert least.epsilon == expected
    assert least.mu_squared == ceiling(budget.mu_squared * expected / epsilon, 3)
    assert least.mu_squared >= budget.mu_squared * expected / epsilon > 0


JUST, UNDER = Fraction(99, 100), Fraction(98999, 100_000)


def gaussian(share: Fraction) -> Loss:
    """A Gaussian loss of μ = 1/100 · share."""
    return GaussianLoss(CENT * share)


@pytest.mark.parametrize(
    ("loss", "admitted", "met"),
    [
        (Pure(CENT), True, True),
        (Pure(CENT * JUST), True, True),  # a hundredth is allowed for rounding
        (Pure(CENT * UNDER), False, False),
        (Pure(CENT / JUST), True, True),
        (Pure(CENT / UNDER), True, False),
        (Pure(Fraction(0)), False, False),
        (Pure(Fraction(5)), True, False),
        (gaussian(Fraction(1)), True, True),
        (gaussian(Fraction(994, 1000)), False, False),  # its square is compared
        (gaussian(Fraction(996, 1000)), True, True),
        (gaussian(Fraction(1004, 1000)), True, True),
        (gaussian(Fraction(1006, 1000)), True, False),
    ],
)
def test_a_loss_is_as_large_as_the_least(loss: Loss, admitted: bool, met: bool) -> None:
    assert LEAST.admits(loss) is admitted
    assert LEAST.met(loss) is met
    if admitted:
        LEAST.check(loss)
    else:
        with pytest.raises(QuestionError) as refused:
            LEAST.check(loss)
        assert ("0.01" in refused.value.fix) is (loss.pure is not None)


def test_what_no_filter_admits_is_left_to_the_filter() -> None:
    class Unknown(Single):
        """A loss of which nothing is known."""

        event = "unknown"

    for least, loss in ((LEAST, Unknown()), (Least(CENT, Fraction(0)), GaussianLoss(Fraction(1, 10**9)))):
        assert least.admits(loss)
        assert not least.met(loss)
        least.check(loss)
