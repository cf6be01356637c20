"""Decimals as written, rounding to a stated side, and bounds that enclose the truth."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting_tools import real
from discreet.trusted.ring_a import exact
from discreet.trusted.ring_a.exact import (
    _inverse_sqrt_two_pi,
    ceiling,
    exp_bounds,
    figure,
    floor,
    fraction,
    log_bounds,
    normal_cdf_bounds,
    show,
    sqrt_ceiling,
)
from kinds import examples

KIND = "exact"

POSITIVE = st.fractions(min_value=Fraction(1, 10**40), max_value=10**40).filter(lambda value: value > 0)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (1e-6, Fraction(1, 10**6)),
        ("1e-6", Fraction(1, 10**6)),
        (-2.5, Fraction(-5, 2)),
        (3, Fraction(3)),
        (2**70, Fraction(2**70)),
        (1e300, Fraction(10**300)),
        (5e-324, Fraction(5, 10**324)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(7), Fraction(7)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
    ],
)
def test_numbers_mean_what_is_written(written: Any, expected: Fraction) -> None:
    assert fraction(written) == expected


@pytest.mark.parametrize(
    "written", [True, False, "", "x", "inf", "nan", math.inf, math.nan, "1/3", "--1", None, [], "0x10"]
)
def test_what_is_no_finite_number_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="not"):
        fraction(written)


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        ("0", 6, "0"),
        ("0.5", 6, "0.5"),
        ("1/3", 6, "0.333333"),
        ("2/3", 3, "0.667"),
        ("1e-9", 6, "1e-9"),
        ("123456789", 6, "123457000"),
    ],
)
def test_short_decimals_for_people(value: str, digits: int, expected: str) -> None:
    assert show(Fraction(value), digits) == expected


@pytest.mark.parametrize("written", ["1e5000", "-1e5000", "9.99e5000", "1e-5000", Decimal("1e-5000")])
def test_numbers_of_five_thousand_digits_are_the_longest(written: Any) -> None:
    assert fraction(written) == Fraction(written)
    longer = str(written).lower().replace("5000", "5001").replace("e+", "e")
    with pytest.raises(ValueError, match="too long to compute with"):
        fraction(longer)


@pytest.mark.parametrize(
    ("value", "shown", "with_thousands"),
    [
        ("0", "0", "0"),
        ("0.0001", "0.0001", "0.0001"),
        ("0.00012345678", "0.000123457", "0.000123457"),
        ("0.00001", "1e-5", "1e-5"),
        ("0.000099999999", "0.0001", "0.0001"),
        ("-2/3", "-0.666667", "-0.666667"),
        ("1234567.8", "1234570", "1,234,570"),
        ("12345678", "12345700", "12,345,700"),
        ("123456789", "123457000", "123,457,000"),
        ("1234567891", "1.23457e+9", "1,234,570,000"),
        ("123456789123456", "1.23457e+14", "123,457,000,000,000"),
        ("1e14", "1e+14", "100,000,000,000,000"),
        ("1e15", "1e+15", "1e+15"),
        ("1e16", "1e+16", "1e+16"),
        ("0.000001", "1e-6", "1e-6"),
        ("1", "1", "1"),
        ("-1", "-1", "-1"),
    ],
)
def test_figures_for_people(value: str, shown: str, with_thousands: str) -> None:
    """Six digits; powers of ten from 10^9 on, or 10^15, and below 10^−4."""
    assert show(Fraction(value)) == shown
    assert figure(Fraction(value)) == with_thousands


def test_figures_of_other_lengths() -> None:
    for value, digits, expected in (("1/3", 2, "0.33"), ("2/3", 9, "0.666666667"), ("98765", 2, "99,000")):
        assert figure(Fraction(value), digits) == expected
        assert show(Fraction(value), digits) == expected.replace(",", "")


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(value=POSITIVE, digits=st.integers(1, 60))
def test_ceiling_and_floor_are_the_nearest_decimals_on_their_side(value: Fraction, digits: int) -> None:
    up, down = ceiling(value, digits), floor(value, digits)
    assert down <= value <= up
    exponent = math.floor(math.log10(value))  # of the first digit, give or take one
    unit = Fraction(10) ** (exponent - digits + 2)
    assert up - value < unit
    assert value - down < unit
    for rounded in (up, down):
        assert ceiling(rounded, digits) == rounded == floor(rounded, digits)


def test_ceiling_and_floor_keep_short_decimals_and_zero() -> None:
    for text in ("0", "0.1", "12345.678", "1e-300"):
        assert ceiling(Fraction(text)) == Fraction(text) == floor(Fraction(text))
    assert ceiling(Fraction(1, 3), 3) == Fraction("0.334")
    assert floor(Fraction(2, 3), 3) == Fraction("0.666")
    assert ceiling(Fraction(1, 3)) == Fraction("0." + "3" * 39 + "4")
    assert floor(Fraction(2, 3)) == Fraction("0." + "6" * 40)


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(value=POSITIVE)
def test_a_square_root_is_rounded_up_and_hardly(value: Fraction) -> None:
    root = sqrt_ceiling(value)
    assert root * root >= value
    assert root * root <= value * (1 + Fraction(1, 2**61))


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(value=POSITIVE, bits=st.integers(1, 80))
def test_a_square_root_has_so_many_bits_and_no_finer_one_is_above(value: Fraction, bits: int) -> None:
    """A unit of its last place less, and it would be below the root."""
    root = sqrt_ceiling(value, bits)
    assert value <= root * root <= value * (1 + Fraction(2, 1 << bits)) ** 2
    assert (root - Fraction(1, root.denominator)) ** 2 < value


def test_roots_of_squares_and_zero() -> None:
    assert sqrt_ceiling(Fraction(0)) == 0
    assert sqrt_ceiling(Fraction(1)) == 1
    assert sqrt_ceiling(Fraction(9, 16)) == Fraction(3, 4)
    assert sqrt_ceiling(Fraction(10**80)) == 10**40


EXPONENTS = ["0", "1", "-1", "1/3", "-1e-30", "1e-9", "30", "-200.5", "600", "-5000", "99999.5"]


@pytest.mark.parametrize("text", EXPONENTS)
@pytest.mark.parametrize("bits", [40, 160, 500])
def test_bounds_of_the_exponential(text: str, bits: int) -> None:
    x = Fraction(text)
    low, high = exp_bounds(x, bits)
    with mpmath.workdps(400):
        truth = mpmath.exp(real(x))
        assert real(low) <= truth <= real(high)
        assert real(high - low) <= truth / mpmath.mpf(2) ** bits


def test_the_exponential_has_an_end() -> None:
    for sign in (1, -1):
        low, high = exp_bounds(Fraction(sign * 1_000_000), 50)
        assert low < high
        for beyond in (Fraction(1_000_001), Fraction(1_000_000) + Fraction(1, 9)):
            with pytest.raises(ValueError, match="too large"):
                exp_bounds(sign * beyond, 50)


@pytest.mark.parametrize("text", ["1", "2", "1/3", "1e-30", "1e30", "1.0000000000000000000001", "12345.678"])
def test_bounds_of_the_logarithm(text: str) -> None:
    low, high = log_bounds(Fraction(text))
    assert real(low) <= mpmath.log(real(text)) <= real(high)
    assert high - low < Fraction(1, 10**35) * (1 + abs(high))


POINTS = ["0", "1e-20", "1/3", "1", "2.5", "5", "8.5", "11", "17.25", "38", "60", "1e6"]


@pytest.mark.parametrize("text", POINTS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("bits", [30, 160, 1000])
def test_bounds_of_the_normal_distribution(text: str, sign: int, bits: int) -> None:
    """Φ from its own definition at four hundred digits: enclosed, and within 2^−bits."""
    x = sign * Fraction(text)
    low, high = normal_cdf_bounds(x, bits)
    with mpmath.workdps(400):
        truth = mpmath.erfc(-real(x) / mpmath.sqrt(2)) / 2
        assert real(low) <= truth <= real(high)
    assert high - low <= Fraction(1, 2**bits)
    assert 0 <= low <= high <= 1


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(x=st.fractions(min_value=-30, max_value=30), bits=st.sampled_from([60, 200]))
def test_bounds_of_the_normal_distribution_anywhere(x: Fraction, bits: int) -> None:
    low, high = normal_cdf_bounds(x, bits)
    with mpmath.workdps(120):
        assert real(low) <= mpmath.erfc(-real(x) / mpmath.sqrt(2)) / 2 <= real(high)
    assert high - low <= Fraction(1, 2**bits)
    assert 0 <= low <= high <= 1


def test_probabilities_close_to_one_are_no_larger() -> None:
    """Just below where a tail is taken to be nothing."""
    for bits in (60, 160, 200):
        point = Fraction(math.isqrt(1400 * (bits + 8) // 1000))
        for x in (point, point - Fraction(1, 3)):
            low, high = normal_cdf_bounds(x, bits)
            assert low <= high <= 1
            assert high - low <= Fraction(1, 2**bits)


def test_bounds_of_the_density_at_zero() -> None:
    """1/√(2π), with every number of bits: the bounds are rounded to each side, whatever their last place."""
    with mpmath.workdps(200):
        truth = 1 / mpmath.sqrt(2 * mpmath.pi)
        for bits in range(1, 300):
            low, high = _inverse_sqrt_two_pi.__wrapped__(bits)
            assert real(low) < truth < real(high)
            assert high - low < Fraction(1, 1 << bits)


@pytest.mark.parametrize("digits", [1, 2, 5, 20, 60])
def test_logarithms_have_so_many_digits(digits: int) -> None:
    for x in (Fraction(1), Fraction(1, 3), Fraction(10**30), Fraction(1, 10**30), Fraction(10**9 + 1, 10**9)):
        low, high = log_bounds(x, digits)
        with mpmath.workdps(100):
            truth = mpmath.log(real(x))
            assert real(low) <= truth <= real(high)
            assert real(high - low) <= 2 * (abs(truth) + 5) / mpmath.mpf(10) ** digits
    assert log_bounds(Fraction(2)) == log_bounds(Fraction(2), 40)


@pytest.mark.parametrize("bits", [1, 2, 3, 8, 30])
def test_exponentials_have_so_many_bits(bits: int) -> None:
    for x in (Fraction(0), *(sign * Fraction(place, 7) ** 3 for place in range(1, 60) for sign in (1, -1))):
        low, high = exp_bounds(x, bits)
        with mpmath.workdps(100):
            truth = mpmath.exp(real(x))
            assert real(low) <= truth <= real(high)
            assert real(high - low) <= truth / 2**bits


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(x=st.fractions(min_value=0, max_value=12), bits=st.integers(1, 12))
def test_bounds_of_the_normal_distribution_are_rounded_to_each_side(x: Fraction, bits: int) -> None:
    """The lower one is made of what is rounded down alone; the upper one has little to spare beside 2^−bits: 2^−20."""
    low, high = normal_cdf_bounds(x, bits)
    with mpmath.workdps(60):
        truth = mpmath.erfc(-real(x) / mpmath.sqrt(2)) / 2
        assert real(low) <= truth <= real(high)
        if x * x <= 2 * bits:
            assert real(high) - truth < mpmath.mpf(2) ** -(bits + 16)
            assert truth - real(low) < mpmath.mpf(2) ** -(bits + 16)


def test_the_density_at_zero_is_enclosed_by_what_pi_may_be_wrong_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """With roots that are hardly rounded, the bounds of π alone enclose it, for every number of bits."""
    monkeypatch.setattr(exact, "sqrt_ceiling", lambda value, bits: sqrt_ceiling(value, bits + 200))
    with mpmath.workdps(200):
        truth = 1 / mpmath.sqrt(2 * mpmath.pi)
        for bits in range(1, 200):
            low, high = _inverse_sqrt_two_pi.__wrapped__(bits)
            assert real(low) < truth < real(high)
            assert high - low < Fraction(1, 1 << (bits + 10))


@pytest.mark.parametrize("bits", [1, 40, 160, 500])
@pytest.mark.parametrize("text", ["0", "1", "-1/3", "30", "-200.5", "9999"])
def test_bounds_of_the_exponential_have_digits_to_spare(text: str, bits: int) -> None:
    """Twenty more than the bits and x itself take; of these digits all but two count, for each unit of |x| + 2."""
    x = Fraction(text)
    digits = math.floor(bits * Fraction("0.30103")) + 20 + len(str(math.floor(abs(x))))
    low, high = exp_bounds(x, bits)
    assert (high - low) / (high + low) == (abs(x) + 2) / 10 ** (digits - 2)


@pytest.mark.parametrize("digits", [1, 5, 40])
@pytest.mark.parametrize("text", ["2", "1/3", "1e30", "1e-30", "1.000001"])
def test_bounds_of_the_logarithm_have_digits_to_spare(text: str, digits: int) -> None:
    """Ten are computed beyond those that count, for each unit of |ln x| + 4."""
    low, high = log_bounds(Fraction(text), digits)
    middle = (low + high) / 2
    assert high - low == 2 * (abs(middle) + 4) / 10**digits
    with mpmath.workdps(100):
        assert abs(real(middle) - mpmath.log(real(text))) <= abs(mpmath.log(real(text))) * mpmath.mpf(10) ** -(
            digits + 8
        )


@pytest.mark.parametrize("bits", [1, 2, 10, 60, 160, 300])
def test_no_tail_is_nothing_that_is_larger_than_the_last_bit(bits: int) -> None:
    """From where the tail is thousands of last bits to where it is far below one."""
    for share in (Fraction(1), Fraction(11, 10), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(9, 4)):
        x = sqrt_ceiling(share * bits) + Fraction(1, 100)
        for point in (x, -x):
            low, high = normal_cdf_bounds(point, bits)
            with mpmath.workdps(800):
                assert real(low) <= mpmath.erfc(-real(point) / mpmath.sqrt(2)) / 2 <= real(high)
            assert 0 <= high - low <= Fraction(1, 2**bits)


@pytest.mark.parametrize("bits", [20, 60, 160])
@pytest.mark.parametrize("text", ["0", "1/7", "1", "2.5", "5", "6.25"])
def test_the_series_of_the_normal_distribution_has_its_slack(
    text: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With φ told as 2^−80, at 32 bits more: as many units as there are terms and four more, for each of 4 + ⌊x⌋². The
    last term is the first of less than two units."""
    x, work, told = Fraction(text), bits + 32, Fraction(1, 1 << 40)
    asked: list[int] = []
    monkeypatch.setattr(exact, "exp_bounds", lambda _, bits: (asked.append(bits), (told, told))[1])
    monkeypatch.setattr(exact, "_inverse_sqrt_two_pi", lambda bits: (asked.append(bits), (told, told))[1])
    low, high = normal_cdf_bounds.__wrapped__(x, bits)
    if x * x <= 2 * bits:
        term, total, k = x, x, 0
        while term * (1 << work) >= 2:
            k += 1
            term = term * x * x / (2 * k + 1)
            total += term
        assert asked == [work, work]
        assert high - low == Fraction((k + 5) * (4 + math.floor(x) ** 2), 1 << work)
        assert 0 <= Fraction(1, 2) + total * told**2 - low <= (k + 5) * 6**k * told**2 / (1 << work)


def test_the_root_of_pi_has_sixteen_bits_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(exact, "sqrt_ceiling", lambda value, bits: (asked.append(bits), sqrt_ceiling(value, bits))[1])
    _inverse_sqrt_two_pi.__wrapped__(100)
    assert asked == [116, 116]
