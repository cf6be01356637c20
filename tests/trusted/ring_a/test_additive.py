"""Discrete Laplace and rounded Gaussian noise: their whole distributions, enumerated, against what they promise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet import accounting
from discreet.mechanisms import Gaussian, Laplace, expected_error
from discreet.trusted.ring_a.curves import delta_bounds, mu_of_budget
from kinds import some

KIND = "exact"

mpmath.mp.dps = 60
SCALES = ["1/20", "0.3", "1", "10/3", "17", "250"]
LEVEL = 1e-6


def laplace_pmf(scale: Fraction, reach: int) -> list[mpmath.mpf]:
    """P(X = k) for |k| ≤ reach: (1 − q)/(1 + q)·q^|k|."""
    q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return [(1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)]


def tail(scale: Fraction, h: int) -> mpmath.mpf:
    """P(|X| > h)."""
    q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return 2 * q ** (h + 1) / (1 + q)


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sensitivity", some([1, 7, 2], pytest.mark.power, quick=2))
def test_no_outcome_is_likelier_by_more_than_the_loss(scale: str, sensitivity: int) -> None:
    """P(x + noise = k)/P(y + noise = k) for all k within 40 scales: at most e^ε, and e^ε is reached."""
    mechanism = Laplace(Fraction(scale))
    loss = mechanism.loss(sensitivity)
    assert loss == accounting.DiscreteLaplace(sensitivity / mechanism.scale, sensitivity)
    reach = 40 * max(1, int(mechanism.scale)) + sensitivity
    pmf = laplace_pmf(mechanism.scale, reach)
    ratios = [pmf[k] / pmf[k - sensitivity] for k in range(sensitivity, len(pmf))]
    most, bound = max(max(ratios), 1 / min(ratios)), mpmath.exp(real(loss.epsilon))
    assert abs(most / bound - 1) < mpmath.mpf(10) ** -50


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_samples_follow_the_distribution(scale: str) -> None:
    """50,000 draws against the enumerated distribution, chi-square, p < 1e-6.

    Power: at scale 1, noise of half the scale is found with certainty, of 0.9 of it with more than 99.9 %.
    """
    mechanism, size = Laplace(Fraction(scale)), 50_000
    drawn = np.array(mechanism.release([5] * size)) - 5
    reach = math.ceil(3 * float(mechanism.scale))
    middle = [float(p) for p in laplace_pmf(mechanism.scale, reach)]
    bins = max(1, (2 * reach + 1) // 60)
    expected = [sum(middle[start : start + bins]) for start in range(0, len(middle), bins)]
    seen = [
        np.count_nonzero((drawn >= start - reach) & (drawn < min(start + bins, len(middle)) - reach))
        for start in range(0, len(middle), bins)
    ]
    observed, wanted = [*seen, size - sum(seen)], [size * p for p in [*expected, 1 - sum(expected)]]
    kept = [(one, two) for one, two in zip(observed, wanted, strict=True) if two >= 5]
    rest = (size - sum(one for one, _ in kept), size - sum(two for _, two in kept))
    kept += [rest] if rest[1] > 1e-9 else []
    if len(kept) == 1:
        assert kept[0][0] == size
    elif kept[-1] is rest and rest[1] < 5:
        assert stats.poisson.sf(rest[0] - 1, rest[1]) > LEVEL
        kept.pop()
    if len(kept) > 1:
        chi = sum((one - two) ** 2 / two for one, two in kept)
        assert stats.chi2.sf(chi, len(kept) - 1) > LEVEL


@pytest.mark.parametrize("scale", some(SCALES, pytest.mark.power, quick=3))
def test_the_expected_error_is_the_mean_of_the_distribution(scale: str) -> None:
    mechanism = Laplace(Fraction(scale))
    reach = 80 * max(1, math.ceil(mechanism.scale))
    mean = sum(abs(k - reach) * p for k, p in enumerate(laplace_pmf(mechanism.scale, reach)))
    assert expected_error(mechanism) == pytest.approx(float(mean), rel=1e-12)


def test_known_expected_errors() -> None:
    for epsilon, error in ((1, 0.850918128239322), (3, 0.09982156966882273), (Fraction(1, 10), 9.98335275729610)):
        assert expected_error(Laplace(1 / Fraction(epsilon))) == pytest.approx(error, rel=1e-13)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("cells", [1, 40])
def test_the_half_width_is_the_least_with_its_confidence(scale: str, confidence: float, cells: int) -> None:
    """P(|X| > h) ≤ (1 − confidence)/cells < P(|X| > h − 1), in exact arithmetic."""
    mechanism = Laplace(Fraction(scale))
    half, miss = mechanism.half_width(confidence, cells), mpmath.mpf(1 - confidence) / cells
    assert half >= 0
    assert tail(mechanism.scale, half) <= miss * (1 + mpmath.mpf(10) ** -9)
    if half:
        assert tail(mechanism.scale, half - 1) > miss


def test_noise_of_no_width_has_no_error() -> None:
    mechanism = Laplace(Fraction(1, 10**12))
    assert mechanism.release([3, -4]) == [3, -4]
    assert mechanism.half_width(0.95) == 0
    assert expected_error(mechanism) == 0


SIGMAS = ["0.4", "1", "3.730631634815942", "40"]


def gaussian_pmf(sigma: Fraction, reach: int) -> list[mpmath.mpf]:
    """P(X = k) = Φ((k + 1/2)/sigma) − Φ((k − 1/2)/sigma) for |k| ≤ reach."""
    edges = [mpmath.ncdf((mpmath.mpf(k) - 0.5) / real(sigma)) for k in range(-reach, reach + 2)]
    return [high - low for low, high in itertools.pairwise(edges)]


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_rounding_tells_no_more_than_the_gaussian_curve(sigma: str, sensitivity: int) -> None:
    """The hockey-stick divergence of the enumerated noise from the same moved by the sensitivity lies on or below the
    curve of its loss for every ε, and comes close to it where a step is small beside sigma."""
    mechanism = Gaussian(Fraction(sigma))
    mu = mechanism.loss(sensitivity**2).mu
    assert real(mu) >= sensitivity / real(mechanism.sigma)
    reach = math.ceil(18 * float(mechanism.sigma)) + sensitivity
    pmf = gaussian_pmf(mechanism.sigma, reach)
    pairs = list(zip(pmf[sensitivity:], pmf, strict=False))
    for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(3), Fraction(8)):
        factor = mpmath.exp(real(epsilon))
        stick = sum(max(mpmath.mpf(0), p - factor * q) for p, q in pairs)
        low, high = delta_bounds(epsilon, mu)
        assert stick <= real(high)
        if mechanism.sigma > 20 * sensitivity and real(low) > 1e-20:
            assert stick >= real(low) * 0.97


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_samples_follow_the_distribution(sigma: str) -> None:
    """50,000 draws: variance within what 1e-6 allows, and a chi-square of the rounded middle, p < 1e-6.

    Power: sigma of 0.95 of what it should be is found with more than 99.9 % by the variance.
    """
    mechanism, size = Gaussian(Fraction(sigma)), 50_000
    drawn = np.array(mechanism.release([0] * size))
    reach = math.ceil(14 * float(mechanism.sigma))
    pmf = np.array([float(p) for p in gaussian_pmf(mechanism.sigma, reach)])
    places = np.arange(-reach, reach + 1)
    variance, fourth = float(pmf @ places**2.0), float(pmf @ places**4.0)
    spread = math.sqrt((fourth - variance**2) / size)
    assert abs(float(np.mean(drawn**2.0)) - variance) < stats.norm.isf(LEVEL / 2) * spread
    groups = np.array_split(np.flatnonzero(pmf * size >= 20), 20)
    seen = [np.count_nonzero((drawn >= places[one[0]]) & (drawn <= places[one[-1]])) for one in groups if one.size]
    wanted = [size * float(pmf[one].sum()) for one in groups if one.size]
    chi = sum((one - two) ** 2 / two for one, two in zip(seen, wanted, strict=True))
    assert stats.chi2.sf(chi, len(wanted)) > LEVEL


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.9999])
def test_the_gaussian_half_width_is_the_least_with_its_confidence(sigma: str, confidence: float) -> None:
    """|round(N)| > h exactly where |N| > h + 1/2."""
    mechanism = Gaussian(Fraction(sigma))
    half = mechanism.half_width(confidence)

    def miss(h: int) -> mpmath.mpf:
        return 2 * mpmath.ncdf(-(h + mpmath.mpf("0.5")) / real(mechanism.sigma))

    assert half >= 0
    assert miss(half) <= (1 - confidence) * (1 + 1e-9)
    if half:
        assert miss(half - 1) > 1 - confidence


def test_the_gaussian_expected_error_is_that_of_the_rounded_noise() -> None:
    for sigma in ("3.7", "40"):
        mechanism = Gaussian(Fraction(sigma))
        reach = math.ceil(15 * float(mechanism.sigma))
        mean = sum(abs(k - reach) * p for k, p in enumerate(gaussian_pmf(mechanism.sigma, reach)))
        assert expected_error(mechanism) == pytest.approx(float(mean), rel=0.01)


def test_the_loss_of_a_gaussian_is_rounded_up() -> None:
    """sigma from the budget's μ, and the μ of that sigma again: never below the true quotient."""
    for squared in (1, 2, 3, 10**30 + 1):
        for sigma in (Fraction("3.7306"), Fraction(10**18, 7)):
            mu = Gaussian(sigma).loss(squared).mu
            assert mu**2 >= squared / sigma**2
            assert mu**2 <= squared / sigma**2 * (1 + Fraction(1, 2**60))
    assert mu_of_budget(Fraction(1), Fraction(1, 10**5)) > 0


def test_noise_is_added_to_the_exact_integers_however_large() -> None:
    large = 2**90 + 1
    for mechanism in (Laplace(Fraction(2)), Gaussian(Fraction(2))):
        assert all(abs(value - large) < 2000 for value in mechanism.release([large] * 50))
