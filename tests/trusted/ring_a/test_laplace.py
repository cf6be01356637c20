"""Discrete Laplace noise: exact weights, all bit strings at small word sizes, and draws."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.noise import discrete_laplace
from discreet.trusted.ring_a import inversion as table_module
from discreet.trusted.ring_a import laplace
from discreet.trusted.ring_a.exact import exp_bounds
from discreet.trusted.ring_a.inversion import BitSizes, Digits
from discreet.trusted.ring_a.laplace import build, digit_weights, powers
from discreet.trusted.ring_a.sampler import sample
from kinds import examples
from noise_tools import DIGITS, fit, laplace_cdf, laplace_pmf, real
from random_words import SeededWords, every_outcome

KIND = "exact"

FULL = 192


def masses(digits: Digits) -> dict[int, int]:
    """The distribution of the sum of the digits, in units of 2^−(full · tables), by exact convolution."""
    found = {digits.low: 1}
    for place, table in enumerate(digits.tables):
        ends = [0, *table.cuts, 1 << table.sizes.full]
        step = 1 << (digits.bits * place)
        following: dict[int, int] = defaultdict(int)
        for value, mass in found.items():
            for outcome, (low, high) in enumerate(pairwise(ends)):
                following[value + outcome * step] += mass * (high - low)
        found = following
    return found


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(1, 2), Fraction(1), Fraction(10), Fraction(151, 10)])
def test_one_table_holds_the_distribution(scale: Fraction) -> None:
    """Every threshold lies within 2 units of 2^−192 of the closed form, computed with 80 digits."""
    digits = build(scale)
    (table,) = digits.tables
    with mpmath.workdps(DIGITS):
        q = mpmath.exp(-1 / real(scale))
        for place, cut in enumerate(table.cuts):
            x = digits.low + place
            below = q ** (-x) / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)
            assert abs(cut - below * 2**FULL) < 2


@pytest.mark.parametrize(("scale", "digit"), [(Fraction(3), 2), (Fraction(20), 3), (Fraction(7, 3), 1)])
def test_digits_add_up_to_the_closed_form(scale: Fraction, digit: int) -> None:
    """Three or more digits of a difference of two geometric values, put together: within 2^−175 of q^|x|."""
    digits = build(scale, digit=digit, widest=8)
    assert len(digits.tables) >= 3
    found = masses(digits)
    assert all(-value in found for value in found)
    with mpmath.workdps(DIGITS):
        whole = mpmath.mpf(2) ** (FULL * len(digits.tables))
        distance = sum(abs(mass / whole - laplace_pmf(value, scale)) for value, mass in found.items()) / 2
        # what the tables leave out
        outside = mpmath.mpf(1) - sum(laplace_pmf(value, scale) for value in found)
        assert distance + abs(outside) < mpmath.mpf(2) ** -175


@pytest.mark.parametrize("base", [2, 4, 8])
def test_digit_weights_are_those_of_two_geometric_digits(base: int) -> None:
    """With ratio 1/2 everything is exact: compare with the sum over all pairs of digits."""
    bits = 8 * base
    weights = digit_weights([1 << (bits - place) for place in range(2 * base - 1)])
    pairs: dict[int, Fraction] = defaultdict(Fraction)
    for first in range(base):
        for second in range(base):
            pairs[first - second] += Fraction(1, 1 << (first + second))
    assert [Fraction(weight, 1 << (2 * bits)) for weight in weights] == [
        pairs[place] for place in range(1 - base, base)
    ]


@settings(max_examples=examples(30), deadline=None)
@given(st.fractions(Fraction(1, 10**30), 200), st.integers(1, 60), st.integers(20, 300))
def test_powers_err_as_stated(rate: Fraction, count: int, bits: int) -> None:
    with mpmath.workdps(150):
        for place, power in enumerate(powers(rate, count, bits)):
            below = mpmath.exp(-real(rate) * place) * mpmath.mpf(2) ** bits - power
            assert -(mpmath.mpf(10) ** -40) <= below <= 3 * place


@pytest.mark.parametrize("small", [0, 512])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(3, 2)])
def test_all_bit_strings_at_small_word_sizes(scale: Fraction, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two or three digits of 5 bits: every value has exactly the share that its thresholds state."""
    monkeypatch.setattr(table_module, "SMALL", small)
    digits = build(scale, sizes=BitSizes(2, 3, 5), digit=1, tail=4, widest=2)
    found = every_outcome(lambda tape: int(digits.draw(tape, 1)[0]))
    expected = {value: mass for value, mass in masses(digits).items() if mass}
    assert {value: mass * (1 << (5 * len(digits.tables))) for value, mass in found.items()} == expected


def test_small_words_stay_close_to_the_distribution() -> None:
    """The total variation error is at most (atoms of all tables)·2^−full plus the tail, with full = 12."""
    scale, tail = Fraction(2), 6
    digits = build(scale, sizes=BitSizes(4, 8, 12), digit=2, tail=tail, widest=4)
    atoms = sum(len(table.cuts) for table in digits.tables)
    whole = 1 << (12 * len(digits.tables))
    found = masses(digits)
    far = sum(laplace_pmf(value, scale) for value in range(-400, 401) if value not in found)
    distance = sum(abs(mass / mpmath.mpf(whole) - laplace_pmf(value, scale)) for value, mass in found.items())
    assert (distance + far) / 2 <= atoms * 2.0**-12 + 2 * np.exp(-tail)


SCALES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(10),
    Fraction(100),
    Fraction(1000),
    Fraction(10**6),
    Fraction(10**18),
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_fit(scale: Fraction) -> None:
    """Chi-square on 10^6 draws, on 10^5 where they are Python integers (p < 1e-6 fails).

    At 10^6 draws, a scale that is wrong by 2 % is found with probability above .99 (see the next test).
    """
    values = discrete_laplace(scale, 10**6 if scale < 10**15 else 10**5)
    assert fit(values, laplace_cdf(float(scale)), float(scale)) > 1e-6


@pytest.mark.parametrize("scale", [1, 10, 1000])
def test_a_smaller_scale_is_caught(scale: int) -> None:
    """Noise of 0.9 of the scale must fail the test above; with fixed words, so that it always does."""
    for wrong in (Fraction(9, 10), Fraction(98, 100)):
        values = sample(build(scale * wrong), 10**6, SeededWords(3))
        assert fit(values, laplace_cdf(scale), scale) < 1e-6
    values = sample(build(Fraction(scale)), 10**6, SeededWords(3))
    assert fit(values, laplace_cdf(scale), scale) > 1e-3


def test_low_digits_of_a_large_scale_are_uniform() -> None:
    """The lowest 10 bits at scale 10^9, biased by less than 10^−12: chi-square, p < 1e-6 fails."""
    values = discrete_laplace(10**9, 10**6)
    seen = np.bincount(values & 1023, minlength=1024)
    assert stats.chisquare(seen).pvalue > 1e-6


@pytest.mark.parametrize("scale", ["1e-25", Decimal("0.004"), Fraction(1, 201)])
def test_a_tiny_scale_is_no_noise(scale: Decimal | Fraction | str) -> None:
    values = discrete_laplace(scale, 1000)
    assert values.dtype == np.int64
    assert not values.any()


@pytest.mark.parametrize("scale", ["1e17", "1e20", "1e40", 10**60])
def test_a_huge_scale_gives_python_integers(scale: str | int) -> None:
    """2,000 draws: the mean of |X| lies within 20 % of the scale, nine standard deviations."""
    values = discrete_laplace(scale, 2000)
    assert values.dtype == object
    assert all(type(value) is int for value in values)
    assert abs(float(np.abs(values).mean()) / float(scale) - 1) < 0.2
    assert len({value % 1000 for value in values}) > 700


def test_the_type_follows_from_the_scale_alone() -> None:
    assert discrete_laplace("1e16", 5).dtype == np.int64
    assert discrete_laplace("1e17", 5).dtype == object


@settings(max_examples=25, deadline=None)
@given(st.fractions(Fraction(1, 10**25), 10**40), st.integers(0, 20))
def test_any_scale_can_be_drawn(scale: Fraction, size: int) -> None:
    values = discrete_laplace(scale, size)
    assert values.shape == (size,)
    assert all(abs(int(value)) <= 135 * scale + 2048 for value in values)


@settings(max_examples=15, deadline=None)
@given(st.fractions(Fraction(1, 100), 10**12))
def test_tables_are_symmetric_and_reach_far_enough(scale: Fraction) -> None:
    digits = build(scale)
    spread = sum(len(table.cuts) << (digits.bits * place) for place, table in enumerate(digits.tables))
    assert digits.low + spread == -digits.low
    assert -digits.low >= 134 * scale
    assert all(len(table.cuts) <= 4096 for table in digits.tables)


def test_the_tables_are_of_the_sizes_that_their_errors_count_on() -> None:
    """Tails that are left out lie below 2^−193 on either side, and exponents are at most 2^11."""
    assert exp_bounds(Fraction(-laplace.TAIL), 20)[1] < Fraction(1, 2**193)
    assert max(2 * 2**laplace.DIGIT - 2, laplace.WIDEST) <= 2**11


def test_at_their_edges_there_is_no_table_or_one() -> None:
    for scale, tables in (
        (Fraction(1, 201), 0),
        (Fraction(1, 200), 1),
        (Fraction(2048, 134), 1),
        (Fraction(2049, 134), 2),
    ):
        assert len(build(scale).tables) == tables


def test_a_scale_is_built_once() -> None:
    assert laplace.sampler(Fraction(123, 7)) is laplace.sampler(Fraction(246, 14))
