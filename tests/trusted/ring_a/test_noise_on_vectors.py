"""Noise meets each number of a vector, and what is said of its size is so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy
import pytest

from discreet.mechanisms import expected_error, variance
from discreet.trusted.ring_a import additive
from discreet.trusted.ring_a.additive import Gaussian, Laplace

KINDS = [(Laplace(Fraction(3)), "discrete_laplace"), (Gaussian(Fraction(3)), "rounded_gaussian")]


@pytest.mark.parametrize(("made", "sampler"), KINDS)
def test_each_number_gets_the_noise_drawn_for_it(
    made: Laplace | Gaussian, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def drawn(size: Fraction, count: int) -> Any:
        asked.append((size, count))
        return numpy.arange(1, count + 1)

    monkeypatch.setattr(additive, sampler, drawn)
    assert made.release([10, 20, 30]) == [11, 22, 33]
    assert asked == [(Fraction(3), 3)]


@pytest.mark.parametrize(("made", "sampler"), KINDS)
def test_no_number_is_released_without_noise(
    made: Laplace | Gaussian, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(additive, sampler, lambda _size, _count: numpy.zeros(2, dtype=int))
    for vector in ([10, 20, 30], [10]):
        with pytest.raises(ValueError, match="zip"):
            made.release(vector)


def test_the_loss_is_the_sensitivity_over_the_size() -> None:
    """Of Gaussian noise the root of the squares', rounded up."""
    loss = Gaussian(Fraction(3)).loss(5)
    assert 0 <= loss.mu**2 - Fraction(5, 9) < Fraction(1, 1 << 60)
    laplace = Laplace(Fraction(3)).loss(5)
    assert (laplace.epsilon, laplace.sensitivity) == (Fraction(5, 3), 5)


def chance(made: Laplace | Gaussian, k: int) -> Any:
    """The probability that the noise is k."""
    if isinstance(made, Laplace):
        q = mpmath.exp(-mpmath.mpf(made.scale.denominator) / made.scale.numerator)
        return (1 - q) / (1 + q) * q ** abs(k)
    sigma = mpmath.mpf(made.sigma.numerator) / made.sigma.denominator
    return mpmath.ncdf((k + mpmath.mpf("0.5")) / sigma) - mpmath.ncdf((k - mpmath.mpf("0.5")) / sigma)


SIZES = ["0.02", "0.3", "0.9", "1", "2.5", "8"]
MADE = [kind(Fraction(size)) for kind in (Laplace, Gaussian) for size in SIZES]


@pytest.mark.parametrize("made", MADE)
def test_the_variance_is_that_of_the_distribution(made: Laplace | Gaussian) -> None:
    with mpmath.workdps(40):
        truth = sum(2 * k * k * chance(made, k) for k in range(1, 500))
    assert variance(made) == pytest.approx(float(truth), rel=2e-7)


@pytest.mark.parametrize("made", MADE)
def test_the_expected_error_is_that_of_the_distribution(made: Laplace | Gaussian) -> None:
    """Of Gaussian noise, that before it is rounded."""
    if isinstance(made, Laplace):
        with mpmath.workdps(40):
            truth = float(sum(2 * k * chance(made, k) for k in range(1, 500)))
    else:
        truth = float(made.sigma) * 0.7978845608028654
    assert expected_error(made) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("confidence", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("cells", [1, 7])
def test_the_half_width_is_the_least_that_holds(made: Laplace | Gaussian, confidence: float, cells: int) -> None:
    with mpmath.workdps(40):
        inside, least = chance(made, 0), 0
        while cells * (1 - inside) > 1 - confidence:
            least += 1
            inside += 2 * chance(made, least)
    assert made.half_width(confidence, cells) == least
    if cells == 1:
        assert made.half_width(confidence) == least


def test_a_half_width_that_is_met_exactly_is_not_one_too_large() -> None:
    """Where P(|X| > 5) is just what may be missed."""
    q = float(mpmath.exp(-mpmath.mpf(1) / 3))
    assert Laplace(Fraction(3)).half_width(1 - 2 * q**6 / (1 + q)) == 5


@pytest.mark.parametrize(("rate", "there"), [("699.5", True), ("700", True), ("700.5", False), ("10000", False)])
def test_noise_of_next_to_no_size(rate: str, there: bool) -> None:
    """Below what a double can square it is taken as 0."""
    made = Laplace(1 / Fraction(rate))
    assert (expected_error(made) > 0, variance(made) > 0) == (there, there)
    if not there:
        assert expected_error(made) == variance(made) == made.half_width(0.99) == 0


def test_the_variance_of_wide_gaussian_noise() -> None:
    for sigma in ("1", "1.5", "1000"):
        assert variance(Gaussian(Fraction(sigma))) == float(sigma) ** 2 + 1 / 12
    assert variance(Gaussian(Fraction(0))) == 0
