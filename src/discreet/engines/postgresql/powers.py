"""Powers with a constant on PostgreSQL, which raises where a power is infinite, or is not 0 and becomes 0.

Both happen beyond a number that follows from the constant, as a power grows or falls all the way. It is found here with
50 digits, and the server is asked for powers where neither happens. Next to the least double the result is written
down, so that it does not matter how the server's library rounds there. Where the largest double is so near that this
could matter, there is no such form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache

from discreet.engines.postgresql.doubles import INFINITE, MINUS_INFINITE, MOST, double, last

_DIGITS = 50
_LEAST = 5e-324
_NEAR = Decimal(2) ** -57
"""What a library's power may be wrong by, beside its rounding, as a share of it: 1/16 of the last bit."""


@cache
def of_constant_exponent(exponent: float) -> str | None:
    """A double {0} to the power of a constant; None where there is no such form. What is no number may be NULL."""
    if exponent == 0:
        return f"CASE WHEN {{0}} IS NOT NULL THEN {double(1.0)} END"
    if not math.isfinite(exponent):
        return None
    if exponent == 1:
        return "{0}"
    ends = _ends(lambda number: _logarithm(number) * Decimal(exponent), 0.0, rising=exponent > 0)
    if ends is None:
        return None
    odd, more = exponent % 2 in (1, -1), ">" if exponent > 0 else "<"
    sign = " * SIGN({0})" if exponent == math.floor(exponent) else ""  # C gives no sign to the others
    negative = f"{{0}} < {double(0.0)} OR CAST({{0}} AS TEXT) = '-0'"

    def signed(plus: str, minus: str) -> str:
        return f"CASE WHEN {negative} THEN {minus} ELSE {plus} END" if odd else plus

    return (
        f"CASE WHEN ABS({{0}}) >= {INFINITE} THEN POWER(ABS({{0}}){sign}, {double(exponent)}) "
        + ("" if exponent == math.floor(exponent) else f"WHEN {{0}} < {double(0.0)} THEN NULL ")
        + f"WHEN ABS({{0}}) {more} {double(ends[0])} THEN {signed(INFINITE, MINUS_INFINITE)} "
        f"WHEN ABS({{0}}) {more} {double(ends[1])} THEN POWER({{0}}, {double(exponent)}) "
        f"WHEN ABS({{0}}) {more} {double(ends[2])} THEN {signed(double(_LEAST), double(-_LEAST))} "
        f"WHEN {{0}} IS NOT NULL THEN {signed(double(0.0), double(-0.0))} END"
    )


@cache
def of_constant_base(base: float) -> str | None:
    """A constant above 0 to the power of a double {0}, as above."""
    if not 0 < base < math.inf:
        return None
    if base == 1:
        return f"CASE WHEN {{0}} IS NOT NULL THEN {double(1.0)} END"
    ends = _ends(lambda number: _logarithm(base) * Decimal(number), -math.inf, rising=base > 1)
    if ends is None:
        return None
    more = ">" if base > 1 else "<"
    return (
        f"CASE WHEN ABS({{0}}) >= {INFINITE} THEN POWER({double(base)}, {{0}}) "
        f"WHEN {{0}} {more} {double(ends[0])} THEN {INFINITE} "
        f"WHEN {{0}} {more} {double(ends[1])} THEN POWER({double(base)}, {{0}}) "
        f"WHEN {{0}} {more} {double(ends[2])} THEN {double(_LEAST)} WHEN {{0}} IS NOT NULL THEN {double(0.0)} END"
    )


def _ends(power: Callable[[float], Decimal], low: float, *, rising: bool) -> tuple[float, float, float] | None:
    """Beyond which numbers powers are infinite; at least 1.4 times the least double; and not 0. `power` gives their
    logarithms. None where the first is too near."""
    with localcontext() as context:
        context.prec = _DIGITS
        most = (Decimal(2) ** 1024 - Decimal(2) ** 970).ln()
        least, half = ((Decimal(share) * Decimal(2) ** -1074).ln() for share in ("1.4", "0.5"))
        half += Decimal(2) ** -53  # what is half of it in the library's doubles, is 0
        sign = 1 if rising else -1

        def end(value: Decimal) -> float:
            """The last number, from where powers are small on, whose power is below the value."""
            if rising:
                return last(lambda number: power(number) < value, low, MOST)
            return -last(lambda number: power(-number) < value, -math.inf, -low if low else -0.0)

        ends = end(most), end(least), end(half)
        beside = math.nextafter(ends[0], sign * math.inf)
        near = any(math.isfinite(one) and abs(power(one) - most) < _NEAR for one in (ends[0], beside))
        return None if near else ends


def _logarithm(number: float) -> Decimal:
    return Decimal(number).ln() if number > 0 else Decimal("-Infinity")
