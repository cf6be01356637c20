"""Intervals of weighted sums of noises: never narrower than the truth, and hardly wider."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy
import pytest

from discreet.intervals import joint, sums
from discreet.intervals.combined import Combined, half_width
from discreet.intervals.sums import Summed
from discreet.mechanisms import Ball, Gaussian, Laplace

KIND = "exact"


def _law(scale: float) -> dict[int, float]:
    q = math.exp(-1 / scale)
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-int(60 * scale), int(60 * scale) + 1)}


@pytest.mark.parametrize("miss", [0.05, 0.01, 1e-4])
@pytest.mark.parametrize(("scales", "weights"), [((2, 1.5), (300, 700)), ((1, 4), (900, 100)), ((3, 3), (500, 500))])
def test_two_laplace_noises_by_enumeration(scales: tuple[float, float], weights: tuple[int, int], miss: float) -> None:
    """Every pair of noises: the sum lies beyond the half width with `miss` at most, and beyond nine tenths of it with
    more."""
    terms = tuple(
        (Laplace(Fraction(scale)), (Fraction(weight, 1000),)) for scale, weight in zip(scales, weights, strict=True)
    )
    wide = half_width(Combined(terms), miss)
    one, two = (_law(scale) for scale in scales)
    places, masses = numpy.array(list(two)) * weights[1] / 1000, numpy.array(list(two.values()))

    def beyond(reach: float) -> float:
        return sum(mass * masses[numpy.abs(k * weights[0] / 1000 + places) > reach].sum() for k, mass in one.items())

    assert beyond(wide) <= miss
    assert beyond(0.9 * wide - 0.5) > miss


@pytest.mark.parametrize("miss", [0.05, 1e-4])
def test_one_term_is_as_wide_as_it_is_alone(miss: float) -> None:
    half = Fraction(1, 2)
    gaussian = Gaussian(Fraction(30))
    normal = -NormalDist().inv_cdf(miss / 2) * 30 * math.sqrt(0.5)
    summed, ball = Summed(Laplace(Fraction(20)), 9), Ball(Fraction(20), (1, 2))
    weights = (Fraction(1), Fraction(2), Fraction(1))
    for found, known in (
        (half_width(Combined(((Laplace(Fraction(2)), (Fraction(1),)),)), miss), {0.05: 6, 1e-4: 18}[miss]),
        (half_width(Combined(((gaussian, (half,)), (gaussian, (half,)))), miss), normal),
        (half_width(Combined(((summed, (Fraction(1),)),)), miss), sums.half_width(summed, [Fraction(1)], miss)),
        (half_width(Combined(((ball, weights),)), miss), joint.half_width(ball, weights, miss)),
    ):
        assert known <= found <= 1.03 * known


def test_what_has_no_noise_has_no_width() -> None:
    assert half_width(Combined(()), 0.05) == 0
    assert half_width(Combined(((Laplace(Fraction(1, 1000)), (Fraction(1),)),)), 0.05) <= 0.01
    nearly = Combined(((Laplace(Fraction(3)), (Fraction(1),)), (Laplace(Fraction(1, 1000)), (Fraction(1),))))
    assert 9 <= half_width(nearly, 0.05) <= 9.2


ONE = (Fraction(1),)


def _laplace(scale: Fraction, reach: int) -> numpy.ndarray:
    masses = numpy.exp(-numpy.abs(numpy.arange(-reach, reach + 1)) / float(scale))
    return masses / masses.sum()


@pytest.mark.parametrize("miss", [0.05, 1e-4, 1.1e-7, 9e-8, 1e-9, 1e-11])
def test_no_more_is_missed_than_said(miss: float) -> None:
    """3 noises of scale 2, and 2 of scale 5: weights 1/4 and 3/4."""
    noise = Combined(
        ((Summed(Laplace(Fraction(2)), 3), (Fraction(1, 4),)), (Summed(Laplace(Fraction(5)), 2), (Fraction(3, 4),)))
    )
    one, other = _laplace(Fraction(2), 150), _laplace(Fraction(5), 300)
    masses = numpy.convolve(numpy.convolve(one, one), one)
    wide = numpy.zeros(3 * (len(numpy.convolve(other, other)) - 1) + 1)
    wide[::3] = numpy.convolve(other, other)  # in quarters
    whole = numpy.convolve(masses, wide)
    places = numpy.abs(numpy.arange(len(whole)) - len(whole) // 2) / 4
    found = half_width(noise, miss)
    assert whole[places > found].sum() <= miss
    least = numpy.sort(places)[::-1]
    order = numpy.argsort(-places, kind="stable")
    true = least[numpy.searchsorted(numpy.cumsum(whole[order]), miss)]
    assert found <= (1.1 if miss > 1e-6 else 2.5) * true


@pytest.mark.parametrize(
    "single", [Laplace(Fraction(3)), Gaussian(Fraction(7)), Ball(Fraction(4), (1, 1)), Summed(Gaussian(Fraction(2)), 9)]
)
def test_it_ends_however_few_may_be_missed(single: Laplace | Gaussian | Ball | Summed) -> None:
    weights = (Fraction(1, 2),) * (2 if isinstance(single, Ball) else 1)
    noise = Combined(((single, weights), (Laplace(Fraction(2)), (Fraction(1, 2),))))
    found = [half_width(noise, miss) for miss in (1e-6, 1e-8, 1e-10, 1e-16, 0.0)]
    assert found == sorted(found)
    assert all(math.isfinite(one) for one in found)
