"""What a filter is charged for a batch that was fixed beforehand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting import Approximate, Batch, BoundedRange, Declared, EquivalentGaussian, Gaussian, Pure, compose
from discreet.trusted.ring_a.curves import mu_of_pure
from discreet.trusted.ring_a.loss import Single
from discreet.trusted.ring_b.further_losses import mu_of_range

KIND = "exact"

EVENT = Fraction(1, 10**9)


def test_gaussian_releases_alone_cost_what_they_add_up_to_and_no_event() -> None:
    loss = Declared((Gaussian("0.3"), Gaussian("0.4")), Fraction(0)).loss
    assert isinstance(loss, Gaussian)
    assert not isinstance(loss, EquivalentGaussian)
    assert Fraction(1, 2) <= loss.mu <= Fraction(1, 2) * (1 + Fraction(1, 10**8))


MIXED: tuple[Single, ...] = (*(BoundedRange("0.1"),) * 20, *(Gaussian("0.1"),) * 30, Pure("0.05"))


def test_the_loss_that_stands_for_a_mixed_batch_is_nowhere_smaller() -> None:
    loss = Declared(MIXED, EVENT).loss
    assert isinstance(loss, EquivalentGaussian)
    assert loss.keys_delta == EVENT
    whole, stood = compose(MIXED), compose([loss])
    for epsilon in (0, "0.5", 1, 2, 3):
        assert whole.delta_bounds(epsilon)[0] <= stood.delta(epsilon)
    assert loss.mu < Fraction(7, 10)  # 30 Gaussian parts alone: .548; what Pure would be charged for the choices: .80


def test_what_strikes_by_itself_is_added() -> None:
    apart = Fraction(1, 10**7)
    loss = Declared((*MIXED, Approximate(Fraction(1, 10), apart), EquivalentGaussian("0.2", apart)), EVENT).loss
    assert isinstance(loss, Batch)
    assert loss.keys_delta == EVENT + 2 * apart
    more = Declared((*MIXED, Pure("0.1"), Gaussian("0.2")), EVENT).loss
    assert loss.mu_squared == more.mu_squared


def test_without_an_event_each_part_counts_for_itself() -> None:
    loss = Declared(MIXED, Fraction(0)).loss
    alone = 20 * mu_of_range(Fraction(1, 10)) ** 2 + 30 * Fraction(1, 100) + mu_of_pure(Fraction(1, 20)) ** 2
    assert not isinstance(loss, EquivalentGaussian)
    assert loss.mu_squared == pytest.approx(alone, rel=1e-9)
    assert alone <= loss.mu_squared
    assert loss.mu_squared > Declared(MIXED, EVENT).loss.mu_squared


@pytest.mark.parametrize("size", [1, 20, 1000])
def test_a_batch_of_any_size_is_charged_for(size: int) -> None:
    """What tells nearly everything is charged what its parts add up to, not refused."""
    parts = (*(BoundedRange("0.2"),) * 20, *(Gaussian(Fraction(size, 5)),) * 30)
    gaussian = 30 * Fraction(size, 5) ** 2
    charged = Declared(parts, EVENT).loss.mu_squared
    assert gaussian <= charged <= gaussian + 20 * mu_of_range(Fraction(1, 5)) ** 2 + Fraction(1, 10**6) * gaussian
