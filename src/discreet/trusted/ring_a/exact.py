"""Decimals as written, rounding in a stated direction, and certified values of exp and of the normal distribution.

Nothing here uses floating point. Every function says on which side of the truth its result lies, so that a loss can be
rounded up and a budget down.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from numbers import Integral

_MOST_DIGITS = 5_000

Number = int | float | str | Decimal | Fraction


def fraction(value: Number) -> Fraction:
    """The number as written: 0.1 is one tenth. A float stands for the shortest decimal that prints the same.

    Raises ValueError on what is no finite number.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise ValueError("not a number")
    if isinstance(value, Integral):
        return Fraction(int(value))
    try:
        written = Decimal(float.__repr__(value) if isinstance(value, float) else value)
    except (decimal.InvalidOperation, TypeError, ValueError) as error:
        raise ValueError("not a number") from error
    if not written.is_finite() or abs(written.adjusted()) > _MOST_DIGITS:
        raise ValueError("not finite, or too long to compute with")
    return Fraction(written)


def show(value: Fraction, digits: int = 6) -> str:
    """A short decimal for people: exact where it fits in `digits` significant digits, rounded to nearest elsewhere."""
    written = decimal.Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator))
    plain = written.normalize()
    return f"{plain:f}" if -4 <= plain.adjusted() < digits + 3 else f"{plain:e}"


def figure(value: Fraction, digits: int = 6) -> str:
    """The same with thousands apart, and without powers of ten below 10^15."""
    written = decimal.Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return f"{written:,f}" if -5 < written.adjusted() < 15 else f"{written:e}"


def ceiling(value: Fraction, digits: int = 40) -> Fraction:
    """The smallest decimal with `digits` significant digits that is not below `value` (value ≥ 0)."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def floor(value: Fraction, digits: int = 40) -> Fraction:
    """The largest decimal with `digits` significant digits that is not above `value` (value ≥ 0)."""
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def _rounded(value: Fraction, digits: int, rounding: str) -> Fraction:
    context = decimal.Context(prec=digits, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def sqrt_ceiling(value: Fraction, bits: int = 64) -> Fraction:
    """A rational not below √value, and above it by a factor of at most 1 + 2^(1−bits)."""
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 2 * bits - size)
    shift += shift % 2
    scaled = -(-(value.numerator << shift) // value.denominator)
    root = isqrt(scaled)
    root += root * root < scaled
    return Fraction(root, 1 << (shift // 2))


@lru_cache(maxsize=4096)
def exp_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals (low, high) with low ≤ e^x ≤ high and high − low ≤ 2^−bits · e^x (for |x| below 10^6).

    The `decimal` module's exp is correctly rounded, so the truth lies within one unit in the last place; the rounding
    of x itself to the working precision adds a relative error of at most |x|·10^−digits.
    """
    if abs(x) > 1_000_000:
        raise ValueError("exp_bounds: argument too large")
    digits = int(bits * 0.30103) + 20 + len(str(abs(int(x))))
    context = decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    argument = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    value = Fraction(context.exp(argument))
    slack = value * (abs(x) + 2) / Fraction(10) ** (digits - 2)
    return value - slack, value + slack


@lru_cache(maxsize=4096)
def log_bounds(x: Fraction, digits: int = 40) -> tuple[Fraction, Fraction]:
    """Rationals (low, high) around ln x, x > 0, from the correctly rounded logarithm of the `decimal` module."""
    context = decimal.Context(prec=digits + 10, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    argument = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    value = Fraction(context.ln(argument))
    slack = (abs(value) + 4) / Fraction(10) ** digits
    return value - slack, value + slack


@lru_cache(maxsize=4096)
def normal_cdf_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals (low, high) with low ≤ Φ(x) ≤ high and high − low ≤ 2^−bits, Φ the standard normal distribution.

    For x ≥ 0, Φ(x) = 1/2 + φ(x)·S(x) with S(x) = Σ x^(2k+1) / (1·3·5⋯(2k+1)), all terms positive (Abramowitz & Stegun
    26.2.11). S is summed in integers with W fractional bits. Each term is rounded down, so an error enters once a term
    and is then multiplied by the same factors as the terms themselves: the computed S is below the truth by at most
    (terms)·e^(x²/2) units of 2^−W. As long as 2k + 3 ≤ 2x² terms are above 1/2 (by Stirling's bounds), later ones fall
    by more than half each: the tail after a term of at most one unit is below that term. As φ(x)·e^(x²/2) < 1/2, the
    error of φ·S is below (terms + 2)·2^−W, and φ comes from `exp_bounds`.
    """
    if x < 0:
        low, high = normal_cdf_bounds(-x, bits)
        return 1 - high, 1 - low
    if x * x > 2 * bits:  # then 1 − Φ(x) < e^(−x²/2)/2 < 2^−bits
        return 1 - Fraction(1, 1 << bits), Fraction(1)
    work = bits + 32
    point = (x.numerator << work) // x.denominator
    square = (point * point) >> work
    term, total, k = point, point, 0
    while term > 1:
        k += 1
        term = (term * square // (2 * k + 1)) >> work
        total += term
    # φ is known relatively; S·φ < 1/2, so a relative error of 2^−work is an absolute one
    low_exp, high_exp = exp_bounds(-x * x / 2, work)
    low_root, high_root = _inverse_sqrt_two_pi(work)
    # of k + 1 terms; rounding x down to `point` loses at most 2^−work per unit of S′ = 1 + x·S more
    slack = Fraction((k + 5) * (4 + int(x) ** 2), 1 << work)
    product, half = Fraction(total, 1 << work), Fraction(1, 2)
    return half + product * low_exp * low_root, min(Fraction(1), half + product * high_exp * high_root + slack)


@lru_cache(maxsize=64)
def _inverse_sqrt_two_pi(bits: int) -> tuple[Fraction, Fraction]:
    """Rationals around 1/√(2π), with π by Machin's formula in integers."""
    unit = 1 << (bits + 32)

    def arctan_inverse(n: int) -> int:
        power = total = unit // n
        k, sign = 1, -1
        while power:
            power //= n * n
            k += 2
            total += sign * (power // k)
            sign = -sign
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))  # below 2·(bits + 40) units wrong
    slack = 40 * (bits + 40)
    high = sqrt_ceiling(Fraction(unit, 2 * (pi - slack)), bits + 16)
    low = 1 / sqrt_ceiling(Fraction(2 * (pi + slack), unit), bits + 16)
    return low, high
