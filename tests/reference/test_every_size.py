"""Searches for noise at every size of budget: more ε is never more noise, and what is found is the price, nearly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from discreet.learning.training_noise import noise_for
from discreet.reference.calibrate import gaussian_sigma, laplace_epsilon, subsampled_sigma
from discreet.trusted.ring_a.curves import delta_bounds, mu_of_budget, mu_of_pure
from discreet.trusted.ring_b.further_losses import LaplaceLoss
from discreet.trusted.ring_c.batch import compose
from discreet.trusted.ring_c.training import run_loss

KIND = "exact"

SIZES = [
    Fraction(size) for size in ("0.001", "0.002", "0.01", "0.1", "1", "10", "100", "145", "160", "599", "601", "1000")
]


@pytest.mark.parametrize("delta", ["1e-30", "1e-9", "1e-5", "0.1"])
def test_gaussian_noise(delta: str) -> None:
    found = [gaussian_sigma(size, delta, 3) for size in SIZES]
    assert all(less < more for more, less in pairwise(found))
    for size, sigma in zip(SIZES, found, strict=True):
        assert delta_bounds(size, Fraction(3**0.5) / sigma)[1] <= Fraction(delta) * (1 + Fraction(1, 10**9))
        assert delta_bounds(size, Fraction(3**0.5) / sigma * Fraction(1001, 1000))[0] > Fraction(delta)


@pytest.mark.parametrize("delta", ["0", "1e-9", "0.1"])
def test_laplace_noise(delta: str) -> None:
    count = 50
    found = [laplace_epsilon(size, delta, count) for size in SIZES]
    assert all(less < more for less, more in pairwise(found))
    for size, each in zip(SIZES, found, strict=True):
        assert each >= size / count * (1 - Fraction(1, 10**7))
        batch = compose({LaplaceLoss(each): count})
        assert batch.epsilon(delta) <= float(size) * (1 + 1e-11)
        assert each * count <= size or batch.epsilon(delta) >= float(size) * 0.99


@pytest.mark.power
def test_training() -> None:
    delta, sizes = "1e-5", SIZES[2:6]
    found = [noise_for(size, Fraction(delta), Fraction(delta) / 10, Fraction("0.1"), 20) for size in sizes]
    assert all(less is not None and less.sigma <= more.sigma for more, less in pairwise(found) if more)
    for size, one in zip(sizes, found, strict=True):
        assert one is not None
        run = run_loss(one.sigma, Fraction("0.1"), 20, one.event_delta)
        assert (run.mu_squared or 0) + mu_of_pure(one.count_epsilon) ** 2 <= mu_of_budget(
            size, Fraction(delta) * Fraction(9, 10)
        ) ** 2
    rising = [float(subsampled_sigma(size, delta, "0.1", 20)) for size in sizes]
    assert all(less < more for more, less in pairwise(rising))
