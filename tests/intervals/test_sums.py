"""Quantiles of sums of independent noises: against their convolution, enumerated, and against noise that is drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.intervals import sums
from discreet.mechanisms import Ball, Gaussian, Laplace

KIND = "exact"
ONE = [Fraction(1)]


def _laplace(scale: Fraction, reach: int) -> np.ndarray:
    places = np.abs(np.arange(-reach, reach + 1))
    masses = np.exp(-places / float(scale))
    return masses / masses.sum()


def _gaussian(sigma: Fraction, reach: int) -> np.ndarray:
    ends = [math.erf((k - 0.5) / (float(sigma) * math.sqrt(2))) for k in range(-reach, reach + 2)]
    return np.diff(ends) / 2


def _beyond(masses: np.ndarray, cells: int, h: float) -> float:
    whole = masses
    for _ in range(cells - 1):
        whole = np.convolve(whole, masses)
    middle = len(whole) // 2
    reach = math.floor(h)
    return float(whole[: middle - reach].sum() + whole[middle + reach + 1 :].sum())


@pytest.mark.parametrize("cells", [2, 5, 11])
@pytest.mark.parametrize("miss", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(10)])
def test_a_sum_of_laplace_numbers_is_as_wide_as_its_convolution(scale: Fraction, miss: float, cells: int) -> None:
    masses = _laplace(scale, 400)
    h = sums.half_width(sums.Summed(Laplace(scale), cells), ONE, miss)
    assert _beyond(masses, cells, h) <= miss * (1 + 1e-9)
    assert _beyond(masses, cells, h - 1) > miss * (1 - 1e-9)  # and no wider


@pytest.mark.parametrize("cells", [2, 7])
@pytest.mark.parametrize("miss", [0.05, 1e-4])
def test_bounds_for_several_numbers_and_many_steps_hold(cells: int, miss: float) -> None:
    masses, scale = _laplace(Fraction(10), 600), Laplace(Fraction(10))
    assert _beyond(masses, cells, sums._chernoff_of_laplace(scale, cells, [1.0], miss)) <= miss
    assert _beyond(masses, cells, sums._many_steps(10.0, cells, miss)) <= miss
    # a number and its double have the noise of three at most, and of the larger at least
    h = sums.half_width(sums.Summed(scale, cells), [Fraction(1), Fraction(2)], miss)
    assert 2 * sums.half_width(sums.Summed(scale, cells), ONE, miss) <= h
    assert h <= 3 * sums.half_width(sums.Summed(scale, cells), ONE, miss)


@pytest.mark.parametrize("cells", [2, 3, 10])
@pytest.mark.parametrize("miss", [0.05, 1e-3, 1e-5])
@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1, 5), Fraction(3, 4), Fraction(2), Fraction(3)])
def test_two_numbers_with_weights_stay_within_their_width(scale: Fraction, miss: float, cells: int) -> None:
    """Also where nearly all noise is 0: two numbers are wrong twice as often as one."""
    one = _laplace(scale, math.ceil(30 * scale) + 5)
    whole = one
    for _ in range(cells - 1):
        whole = np.convolve(whole, one)
    places, both = np.arange(len(whole)) - len(whole) // 2, whole[:, None] * whole[None, :]
    for weights in ([Fraction(1), Fraction(1, 2)], [Fraction(1), Fraction(-99, 100)], [Fraction(100), Fraction(1)]):
        h = sums.half_width(sums.Summed(Laplace(scale), cells), weights, miss)
        sizes = np.abs(float(weights[0]) * places[:, None] + float(weights[1]) * places[None, :])
        assert both[sizes > h + 1e-9].sum() <= miss * (1 + 1e-9)


@pytest.mark.parametrize("cells", [2, 5, 11])
@pytest.mark.parametrize("miss", [0.05, 1e-4, 1e-7])
@pytest.mark.parametrize("sigma", [Fraction(1), Fraction(4), Fraction(20)])
def test_a_sum_of_gaussian_numbers_stays_within_its_width(sigma: Fraction, miss: float, cells: int) -> None:
    masses = _gaussian(sigma, int(12 * sigma))
    h = sums.half_width(sums.Summed(Gaussian(sigma), cells), ONE, miss)
    assert _beyond(masses, cells, h) <= miss * (1 + 1e-6)
    assert _beyond(masses, cells, h * 0.8 - 1) > miss


def test_a_sum_of_joint_numbers_stays_within_its_width() -> None:
    """Of 4,000 sums of 5 cells, 200 would lie beyond a 95 % interval; 300 have a probability below 1e-11."""
    ball, cells, count = Ball(Fraction(1000), (1, 2, 1)), 5, 4_000
    noise = np.array(ball.release([0] * (4 * cells * count)), float).reshape(4, cells, count).sum(axis=1)
    for weights in ([1, 0, 0, 0], [0, 1, 1, 0], [1, -1, 0, 2]):
        h = sums.half_width(sums.Summed(ball, cells), [Fraction(one) for one in weights], 0.05)
        found = np.abs(np.tensordot(weights, noise, axes=1))
        assert (found > h).sum() < 300
        assert (found > h / 3).sum() > 300
