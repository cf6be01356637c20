"""The threshold for private keys: who is alone in a group is shown with the probability that was paid for, no more."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from scipy import stats

from discreet.accounting import Approximate
from discreet.mechanisms import Laplace, Threshold, laplace_threshold

KIND = "exact"

mpmath.mp.dps = 60
LEVEL = 1e-6
CASES = [
    (Fraction(epsilon), Fraction(delta), cells)
    for epsilon, delta, cells in itertools.product(
        ("0.01", "0.5", "1", "7"), ("0.3", "1e-2", "1e-6", "1e-12"), (1, 3, 50)
    )
]


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def shown(persons: int, scale: Fraction, threshold: int) -> mpmath.mpf:
    """P(persons + X ≥ threshold) for discrete Laplace noise X."""
    q, least = mpmath.exp(-1 / real(scale)), threshold - persons
    return q**least / (1 + q) if least >= 1 else 1 - q ** (1 - least) / (1 + q)


def test_the_formula_is_the_sum_of_the_distribution() -> None:
    q = mpmath.exp(-mpmath.mpf(1) / 3)
    for persons, threshold in ((1, 5), (4, 4), (9, 2), (1, 1)):
        total = sum((1 - q) / (1 + q) * q ** abs(x) for x in range(threshold - persons, 600))
        assert abs(shown(persons, Fraction(3), threshold) - total) < mpmath.mpf(10) ** -50


@pytest.mark.parametrize(("epsilon", "delta", "cells"), CASES)
def test_a_lone_person_is_shown_with_at_most_delta(epsilon: Fraction, delta: Fraction, cells: int) -> None:
    """In one group with at most delta/cells, in any of `cells` groups with at most delta; a threshold lower by one
    would show too many; and the loss is what was asked for."""
    mechanism = laplace_threshold(epsilon, delta, cells)
    alone = shown(1, mechanism.noise.scale, mechanism.threshold)
    assert alone <= real(delta) / cells
    assert 1 - (1 - alone) ** cells <= real(delta)
    if mechanism.threshold > 2:
        assert shown(1, mechanism.noise.scale, mechanism.threshold - 1) > real(delta) / cells
    assert mechanism.loss() == Approximate(epsilon, delta)
    assert mechanism.noise.scale == cells / epsilon


@pytest.mark.parametrize(("epsilon", "delta", "cells"), CASES)
def test_groups_of_others_are_shown_or_not_with_a_ratio_of_the_loss(
    epsilon: Fraction, delta: Fraction, cells: int
) -> None:
    """One person more in each of `cells` groups: the odds of every pattern of shown groups change by at most e^ε."""
    mechanism = laplace_threshold(epsilon, delta, cells)
    most = mpmath.exp(real(epsilon) / cells) * (1 + mpmath.mpf(10) ** -40)
    for persons in {1, 2, max(1, mechanism.threshold - 1), mechanism.threshold, mechanism.threshold + 5}:
        one, two = (shown(n, mechanism.noise.scale, mechanism.threshold) for n in (persons, persons + 1))
        for first, second in ((one, two), (1 - one, 1 - two)):
            assert first <= most * second
            assert second <= most * first


@pytest.mark.parametrize(
    ("epsilon", "delta", "cells"), [(Fraction(1), Fraction("1e-5"), 1), (Fraction(4), Fraction("2e-6"), 4)]
)
def test_rounding_the_continuous_threshold_would_not_do(epsilon: Fraction, delta: Fraction, cells: int) -> None:
    """The threshold for continuous noise, 1 − scale·ln(2·delta/cells), rounded to the nearest integer, is caught."""
    mechanism = laplace_threshold(epsilon, delta, cells)
    rounded = round(1 - float(mechanism.noise.scale) * math.log(2 * float(delta / cells)))
    assert rounded < mechanism.threshold
    assert shown(1, mechanism.noise.scale, rounded) > real(delta) / cells


def test_known_thresholds() -> None:
    """At (1, 1e-5) the smallest j with q^j/(1 + q) ≤ 1e-5 is 12, so 13 persons and noise are wanted."""
    assert laplace_threshold(Fraction(1), Fraction(1, 10**5), 1).threshold == 13
    assert laplace_threshold(Fraction(1000), Fraction(1, 10**5), 1).threshold == 2
    assert laplace_threshold(Fraction(1), Fraction(1, 2), 1).threshold == 2


def test_a_tiny_price_is_worked_out_at_once() -> None:
    """Scales up to 10^20: by halving, not by counting."""
    mechanism = laplace_threshold(Fraction(1, 10**9), Fraction(1, 10**9), 2**31)
    assert shown(1, mechanism.noise.scale, mechanism.threshold) <= real(Fraction(1, 10**9)) / 2**31
    assert shown(1, mechanism.noise.scale, mechanism.threshold - 1) > real(Fraction(1, 10**9)) / 2**31


def test_released_groups_follow_the_probabilities() -> None:
    """20,000 releases of groups of 1 and of threshold persons, binomial, p < 1e-6.

    Power: a threshold that is lower by one, or noise of half the scale, is found with certainty.
    """
    mechanism, size = Threshold(Laplace(Fraction(1)), 4, 1, Fraction(1, 20)), 20_000
    for persons in (1, 2, 4):
        seen = sum(count is not None for count in mechanism.counts([persons] * size))
        probability = float(shown(persons, mechanism.noise.scale, mechanism.threshold))
        assert stats.binomtest(seen, size, probability).pvalue > LEVEL


@pytest.mark.parametrize("delta", ["0", "1", "-1e-6"])
def test_a_threshold_needs_a_delta(delta: str) -> None:
    with pytest.raises(ValueError, match="delta"):
        laplace_threshold(Fraction(1), Fraction(delta), 1)


def test_groups_that_nobody_touches_have_no_key() -> None:
    with pytest.raises(ValueError, match="at least one person"):
        laplace_threshold(Fraction(1), Fraction(1, 10**6), 1).counts([5, 0])
