"""Noise for a promise: kept, by a bound of its own kind or another, and not much larger than it need be."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from discreet.reference.calibrate import gaussian_sigma, laplace_epsilon, subsampled_sigma
from discreet.trusted.ring_a.loss import Approximate, GaussianLoss, Pure
from discreet.trusted.ring_b.further_losses import LaplaceLoss, SubsampledGaussian
from discreet.trusted.ring_c.batch import compose
from discreet.trusted.ring_c.equivalent import gaussian_equivalent
from tight_oracles import gaussian_curve, response_delta

KIND = "exact"

# σ of one release of sensitivity 1, by bisection with fifty digits
SIGMAS = [
    ("0.01", "1e-6", "306.350376153818"),
    ("1", "1e-5", "3.730631634815942"),
    ("1", "1e-9", "5.4952661572383"),
    ("10", "1e-6", "0.541086831818366"),
    ("5", "1e-30", "2.278987809611204"),
    ("50", "1e-6", "0.1565928703917619"),
]


@pytest.mark.parametrize(("epsilon", "delta", "expected"), SIGMAS)
def test_sigma_of_one_gaussian(epsilon: str, delta: str, expected: str) -> None:
    sigma = gaussian_sigma(epsilon, delta)
    assert Fraction(expected) * (1 - Fraction(1, 10**13)) <= sigma <= Fraction(expected) * (1 + Fraction(1, 10**8))


def test_sigma_of_a_batch() -> None:
    sigma = gaussian_sigma(1, "1e-6", count=1000, sensitivity=3)
    with mp.workdps(40):
        mu = 3 * mp.sqrt(1000) * sigma.denominator / sigma.numerator
        reached = gaussian_curve(mp.mpf(1), mu)
        assert mp.mpf("0.9999999e-6") <= reached <= mp.mpf("1e-6")


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [(1, "1e-6", 100), (1, "1e-6", 1000), (3, "1e-9", 30), ("0.1", "1e-6", 5000), (10, "1e-6", 5), (1, "1e-3", 1)],
)
def test_epsilon_of_laplace_releases(epsilon: str, delta: str, count: int) -> None:
    each = laplace_epsilon(epsilon, delta, count)
    assert each >= Fraction(epsilon) / count * (1 - Fraction(1, 10**7))
    batch = compose({LaplaceLoss(each): count})
    assert batch.epsilon(delta) <= float(Fraction(epsilon))
    assert batch.epsilon_bounds(delta)[0] >= float(Fraction(epsilon)) * (1 - 1e-4)
    assert compose({LaplaceLoss(each * Fraction(1001, 1000)): count}).epsilon_bounds(delta)[0] > float(
        Fraction(epsilon)
    )


def test_without_delta_the_budget_is_parted_evenly() -> None:
    assert laplace_epsilon(1, 0, 1) == 1
    assert laplace_epsilon(1, 0, 4) == Fraction(1, 4)
    assert laplace_epsilon(1, 0, 3) == Fraction(33333333, 10**8)


def test_sigma_of_a_run() -> None:
    """Against the published figure of a privacy-loss accounting, 1.41480."""
    sigma = subsampled_sigma(1, "1e-5", "0.01", 1000)
    assert 1.414 <= sigma <= 1.4149
    assert compose([SubsampledGaussian(sigma, "0.01", 1000)]).epsilon("1e-5") <= 1


def test_what_no_noise_can_promise() -> None:
    with pytest.raises(ValueError, match="needs a delta"):
        gaussian_sigma(1, 0)
    for bad in ((0, "1e-6"), (1, 1), (1, -1)):
        with pytest.raises(ValueError, match="budget"):
            laplace_epsilon(*bad, 3)


def test_a_gaussian_that_stands_for_responses() -> None:
    """H(batch) ≤ δ + (1 − δ)·H(G_μ) at places of our own choice, from the exact δ of the batch."""
    delta = 1e-6
    for epsilon, count in ((0.1, 40), (0.5, 12), (1.0, 3)):
        mu = gaussian_equivalent(compose({Pure(Fraction(str(epsilon))): count}), delta)
        shape = mp.mpf(mu.numerator) / mu.denominator
        with mp.workdps(30):
            for k in range(40):
                target = k / 40 * epsilon * count
                limit = delta + (1 - delta) * gaussian_curve(mp.mpf(target), shape)
                assert response_delta([epsilon] * count, target) <= limit
        smaller = mu * Fraction(99, 100)
        shape = mp.mpf(smaller.numerator) / smaller.denominator
        with mp.workdps(30):
            assert any(
                response_delta([epsilon] * count, k / 400 * epsilon * count)
                > delta + (1 - delta) * gaussian_curve(mp.mpf(k / 400 * epsilon * count), shape)
                for k in range(400)
            )


def test_a_gaussian_that_stands_for_a_run() -> None:
    """Far less than without sampling (μ = 28.7), and enough: its ε at δ′ plus the event's δ covers the run's."""
    batch = compose([SubsampledGaussian("1.1", "0.01", 1000)])
    mu = gaussian_equivalent(batch, "1e-6")
    assert Fraction(35, 100) < mu < Fraction(4, 10)
    for delta in ("1e-5", "1e-4", "1e-2"):
        covered = compose([GaussianLoss(mu), Approximate(Fraction(0), Fraction(1, 10**6))]).epsilon(delta)
        assert covered >= batch.epsilon_bounds(delta)[0]


def test_what_stands_for_gaussians_is_their_sum() -> None:
    mu = gaussian_equivalent(compose([GaussianLoss(Fraction(3, 10)), GaussianLoss(Fraction(4, 10))]), "1e-9")
    assert Fraction(1, 2) <= mu <= Fraction(1, 2) * (1 + Fraction(1, 10**8))
    with pytest.raises(ValueError, match="separately"):
        gaussian_equivalent(compose([Approximate(Fraction(1), Fraction(1, 100))]), "1e-3")
    with pytest.raises(ValueError, match="between"):
        gaussian_equivalent(compose([Pure(Fraction(1))]), 0)
    with pytest.raises(ValueError, match="too large"):
        gaussian_equivalent(compose([Pure(1000)]), "1e-6")
