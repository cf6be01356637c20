"""Thresholds of both kinds: who is alone in a group is shown as often as was paid for, and what is made for less is
refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

from discreet.mechanisms.lowest_threshold import _least, gaussian_threshold, laplace_threshold
from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.exact import exp_bounds, sqrt_ceiling
from discreet.trusted.ring_a.loss import Approximate, EquivalentGaussian
from discreet.trusted.ring_a.threshold import (
    Threshold,
    gaussian_tail,
    laplace_tail,
)
from discreet.trusted.ring_b.joint import Ball

MILLE = Fraction(1, 1000)
HARDLY = MILLE
"""Noise of this size is 0 but for a probability below e^−400."""


def real(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


CASES = [
    (Fraction(size), Fraction(delta), cells)
    for size, delta, cells in itertools.product(("0.01", "1", "9"), ("0.3", "1e-6", "1e-12"), (1, 3, 50))
]


@pytest.mark.parametrize(("mu_squared", "delta", "cells"), CASES)
def test_the_gaussian_threshold_is_the_lowest_that_holds(mu_squared: Fraction, delta: Fraction, cells: int) -> None:
    """Rounded noise makes one person `threshold` of them with P(N ≥ threshold − 3/2)."""
    made = gaussian_threshold(mu_squared, delta, cells)

    def alone(threshold: int) -> Any:
        return mpmath.ncdf(-(threshold - mpmath.mpf("1.5")) / real(made.noise.sigma))

    assert alone(made.threshold) <= real(delta) / cells
    assert made.threshold == 2 or alone(made.threshold - 1) > real(delta) / cells
    assert made.noise.sigma == sqrt_ceiling(cells / mu_squared)
    assert (made.cells, made.delta) == (cells, delta)
    assert made.loss() == EquivalentGaussian(sqrt_ceiling(cells / made.noise.sigma**2), delta)


@pytest.mark.parametrize(
    ("mu_squared", "delta"), [(0, MILLE), (-1, MILLE), (1, 0), (1, 1), (1, Fraction(-1, 2)), (1, 2)]
)
def test_a_gaussian_threshold_needs_a_delta_and_a_mu(mu_squared: int, delta: Fraction) -> None:
    with pytest.raises(ValueError, match="0 < delta < 1 and mu > 0"):
        gaussian_threshold(Fraction(mu_squared), Fraction(delta), 1)


def test_a_small_mu_and_a_large_delta_have_a_threshold() -> None:
    assert gaussian_threshold(Fraction(1, 2), Fraction(99, 100), 1).threshold == 2
    assert laplace_threshold(Fraction(1, 2), Fraction(99, 100), 1).threshold == 2


MADE = [laplace_threshold(Fraction(2), MILLE, 3), gaussian_threshold(Fraction(2), MILLE, 3)]


@pytest.mark.parametrize("made", MADE)
def test_a_threshold_is_certified_however_it_is_made(made: Threshold) -> None:
    """Lower by one, for a smaller delta, with more noise or for more groups, it would show a lone person too often."""
    noise = made.noise
    more = Laplace(2 * noise.scale) if isinstance(noise, Laplace) else Gaussian(2 * noise.sigma)
    assert Threshold(noise, made.threshold, made.cells, made.delta) == made
    assert Threshold(noise, made.threshold + 1, made.cells, made.delta).threshold == made.threshold + 1
    assert Threshold(noise, made.threshold, 1, made.delta / 3).cells == 1
    for bad in (
        (noise, made.threshold - 1, 3, MILLE),
        (more, made.threshold, 3, MILLE),
        (noise, made.threshold, 9, MILLE),
        (noise, made.threshold, 3, MILLE / 3),
    ):
        with pytest.raises(ValueError, match="shown with a probability above delta"):
            Threshold(*bad)


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_a_threshold_of_one_shows_whoever_is_there(kind: type[Laplace | Gaussian]) -> None:
    """Also where so large a delta would pay for it: what is shown then follows from the noise alone."""
    for threshold in (1, 0, -5):
        with pytest.raises(ValueError, match="shown with a probability above delta"):
            Threshold(kind(Fraction(1)), threshold, 1, Fraction(9999, 10_000))
    assert Threshold(kind(Fraction(1)), 2, 1, Fraction(9999, 10_000)).threshold == 2


def test_a_threshold_for_no_groups_is_refused() -> None:
    with pytest.raises(ValueError, match="shown with a probability above delta"):
        Threshold(Laplace(Fraction(1)), 50, 0, MILLE)


ONE, SMALL = Fraction(1), Fraction(1, 10**6)


class Silent(Laplace):
    """Noise that says it is there."""

    def release(self, exact: Sequence[int]) -> list[int]:
        return list(exact)


class Unlike(Fraction):
    """A number that is above no other."""

    def __gt__(self, _: object) -> bool:
        return False


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@pytest.mark.parametrize(
    ("width", "threshold", "cells", "delta"),
    [
        (ONE, 50, 1, Fraction(0)),
        (ONE, 50, 1, -SMALL),
        (ONE, 2, 1, math.nan),
        (ONE, 2, 1, math.inf),
        (ONE, 50, 1, 1e-6),
        (ONE, 50, 1, Unlike(1, 10**6)),
        (ONE, 2, math.nan, SMALL),
        (ONE, 50, 1.5, SMALL),
        (ONE, 50, True, SMALL),
        (ONE, 50, np.int64(1), SMALL),
        (ONE, 50.0, 1, SMALL),
        (ONE, math.inf, 1, SMALL),
        (ONE, Fraction(101, 2), 1, SMALL),
        (ONE, np.int64(50), 1, SMALL),
        (Fraction(0), 50, 1, SMALL),
        (-ONE, 2, 1, Fraction(9, 10)),
        (1, 50, 1, SMALL),
        (1.0, 50, 1, SMALL),
        (math.inf, 50, 1, SMALL),
        (Unlike(1), 50, 1, SMALL),
    ],
)
def test_what_is_no_exact_number_in_its_range_makes_no_threshold(
    kind: type[Laplace | Gaussian], width: Any, threshold: Any, cells: Any, delta: Any
) -> None:
    for read in (Fraction(1), Fraction(49)):
        exp_bounds(-read, 200)  # what was worked out before for an equal number changes nothing
    with pytest.raises(ValueError, match=r"(whole|above)"):
        Threshold(kind(width), threshold, cells, delta)


@pytest.mark.parametrize(
    "noise",
    [Silent(ONE), Ball(ONE, (1,)), SimpleNamespace(sigma=ONE, release=list), None],
    ids=["subclass", "joint", "alike", "none"],
)
def test_a_threshold_has_one_of_two_noises(noise: Any) -> None:
    with pytest.raises(ValueError, match="discrete Laplace or rounded Gaussian"):
        Threshold(noise, 50, 1, SMALL)


def test_exactly_what_was_paid_for_is_enough() -> None:
    tail = laplace_tail(Fraction(3), 9)
    assert Threshold(Laplace(Fraction(3)), 10, 2, 2 * tail).loss() == Approximate(Fraction(2, 3), 2 * tail)
    assert laplace_threshold(Fraction(2, 3), 2 * tail, 2).threshold == 10
    tail = gaussian_tail(Fraction(2), 9, gaussian_tail(Fraction(2), 9, MILLE))
    assert tail == gaussian_tail(Fraction(2), 9, tail)  # worked out as precisely as it is compared
    assert gaussian_threshold(Fraction(1, 4), tail, 1).threshold == 10


@pytest.mark.parametrize("delta", [0, 1, 2, -1])
def test_a_laplace_threshold_needs_a_delta(delta: int) -> None:
    with pytest.raises(ValueError, match="0 < delta < 1"):
        laplace_threshold(Fraction(1), Fraction(delta), 1)


@pytest.mark.parametrize("scale", ["0.001", "0.5", "3", "1000", "1e12"])
@pytest.mark.parametrize("j", [-3, 0, 1, 2, 40])
def test_the_tail_of_laplace_noise_from_above(scale: str, j: int) -> None:
    """q^j/(1 + q); from j = 0 down it is taken as that of 0, which is more than the truth."""
    with mpmath.workdps(120):
        q = mpmath.exp(-1 / real(Fraction(scale)))
        truth, found = q ** max(j, 0) / (1 + q), real(laplace_tail(Fraction(scale), j))
        assert truth <= found <= truth * (1 + mpmath.mpf(10) ** -50)


def test_the_tail_of_noise_of_next_to_no_size() -> None:
    """Beyond e^−1000000 a power of two stands for it, which is more; up to there it is worked out."""
    beyond = Fraction(1, 1 << 1_000_000)
    assert laplace_tail(Fraction(1, 10**6), 1) < beyond
    assert laplace_tail(Fraction(1, 10**6 + 1), 1) == laplace_tail(Fraction(1, 1000), 1001) == beyond
    assert 1 < laplace_tail(Fraction(1, 10**7), 0) < 1 + Fraction(1, 1 << 190)


@pytest.mark.parametrize("sigma", ["0.3", "2", "500"])
@pytest.mark.parametrize("j", [1, 3, 60])
def test_the_tail_of_gaussian_noise_from_above(sigma: str, j: int) -> None:
    """Φ(−(j − 1/2)/sigma), to within far less than the share that it is compared with."""
    share = Fraction(1, 10**12)
    with mpmath.workdps(60):
        truth = mpmath.ncdf(-(j - mpmath.mpf("0.5")) / real(Fraction(sigma)))
        assert truth <= real(gaussian_tail(Fraction(sigma), j, share)) <= truth + real(share) / 2**60


def test_the_least_that_is_safe_is_found_by_halving() -> None:
    for least in (*range(1, 70), 10**30 + 7):
        asked: list[int] = []

        def safe(j: int, least: int = least, asked: list[int] = asked) -> bool:
            asked.append(j)
            return j >= least

        assert _least(safe) == least
        assert len(asked) <= 2 * least.bit_length() + 2
        assert min(asked) == 1


SURE = [Threshold(noise, 3, 1, MILLE) for noise in (Laplace(HARDLY), Gaussian(HARDLY))]


@pytest.mark.parametrize("made", SURE)
def test_groups_are_shown_from_the_threshold_on(made: Threshold) -> None:
    assert made.counts([1, 2, 3, 4, 50]) == [None, None, 3, 4, 50]


@pytest.mark.parametrize("made", SURE)
@pytest.mark.parametrize("persons", [0, -1])
def test_groups_that_nobody_touches_are_refused(made: Threshold, persons: int) -> None:
    with pytest.raises(ValueError, match="at least one person"):
        made.counts([5, persons, 5])


def test_the_noise_of_a_threshold_is_the_one_that_is_charged() -> None:
    laplace, gaussian = MADE
    assert laplace.noise == Laplace(Fraction(3, 2))
    assert laplace.loss() == Approximate(Fraction(2), MILLE)
    assert gaussian.noise == Gaussian(sqrt_ceiling(Fraction(3, 2)))
    assert gaussian.loss() == EquivalentGaussian(sqrt_ceiling(3 / gaussian.noise.sigma**2), MILLE)
