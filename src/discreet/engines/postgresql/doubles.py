"""Sums, differences, products and quotients of doubles on PostgreSQL, which raises where IEEE 754 gives an infinity,
and where a product or quotient that is not 0 becomes 0.

In all other cases its `+ - * /` are those of IEEE, and denormal results come as they are. So each form here finds out,
by comparisons that are exact, which of the two PostgreSQL would raise, and gives what IEEE gives. Numbers are scaled by
powers of two, and only where that is exact.

A CASE computes a branch only where the conditions before it say so, but what is constant in it may be computed before
any row is read, unless a constant condition rules the branch out. So where an operand is a constant, the form is made
for it (`with_constant`), and where it is scaled, that stands behind a condition of its size alone.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable

MOST = sys.float_info.max
_LARGEST_ADDED = 2.0**960
"""What is added to the largest double without a change."""


def double(value: float) -> str:
    """A double as a constant."""
    words = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return f"CAST('{words.get(value, repr(value))}' AS DOUBLE PRECISION)"


INFINITE, MINUS_INFINITE, NAN = double(math.inf), double(-math.inf), "CAST('NaN' AS DOUBLE PRECISION)"


def _power(exponent: int) -> str:
    return double(math.ldexp(1.0, exponent))


def _sum(sign: str) -> str:
    """Two numbers below 2^1023 are safe, and so is one below 1 with any. Of others half of the sum tells."""
    half, most = _power(-1), _power(1023)
    return (
        f"CASE WHEN ABS({{0}}) < {most} AND ABS({{1}}) < {most} THEN {{0}} {sign} {{1}} "
        f"WHEN ABS({{0}}) < {_power(0)} OR ABS({{1}}) < {_power(0)} "
        f"OR ABS({{0}}) >= {INFINITE} OR ABS({{1}}) >= {INFINITE} THEN {{0}} {sign} {{1}} "
        f"WHEN ABS({{0}} * {half} {sign} {{1}} * {half}) >= {most} THEN {{0}} * {INFINITE} "
        f"ELSE {{0}} {sign} {{1}} END"
    )


def _middle(place: int) -> str:
    return f"ABS({{{place}}}) > {_power(-500)} AND ABS({{{place}}}) < {_power(500)}"


def _mantissa(number: str) -> str:
    """The 53 bits of a number that is not denormal, as a whole number."""
    bits = f"CAST(CAST('x' || ENCODE(FLOAT8SEND({number}), 'hex') AS BIT(64)) AS BIGINT)"
    return f"CAST({bits} & {2**52 - 1} | {2**52} AS NUMERIC)"


def _product() -> str:
    """A product of numbers from 1 on is infinite if that of both divided by 2^520 is 2^-16 or more. One of numbers up
    to 1 is 0 if it is 2^-1075 at most, half of the least number: if that of both made larger, by 2^1075 together, is 1
    at most. Where this one is rounded to 1, the bits of both say on which side of 1 it lies: their product is 2^104
    where both are powers of two, and else lies next to 2^105."""
    first, second = f"ABS({{0}}) * {_power(537)}", f"ABS({{1}}) * {_power(538)}"
    scaled = f"({first}) * ({second})"
    exact = f"{_mantissa(first)} * {_mantissa(second)} <= {2**105}"
    zero = f"{{0}} * {double(0.0)} * {{1}}"
    return (
        f"CASE WHEN {_middle(0)} AND {_middle(1)} THEN {{0}} * {{1}} "
        f"WHEN {{0}} = {double(0.0)} OR {{1}} = {double(0.0)} "
        f"OR ABS({{0}}) >= {INFINITE} OR ABS({{1}}) >= {INFINITE} THEN {{0}} * {{1}} "
        f"WHEN ABS({{0}}) >= {_power(0)} AND ABS({{1}}) >= {_power(0)} THEN "
        f"CASE WHEN ABS(({{0}} * {_power(-520)}) * ({{1}} * {_power(-520)})) >= {_power(-16)} "
        f"THEN {{0}} * ({{1}} * {INFINITE}) ELSE {{0}} * {{1}} END "
        f"WHEN ABS({{0}}) <= {_power(0)} AND ABS({{1}}) <= {_power(0)} THEN "
        f"CASE WHEN {scaled} > {_power(0)} THEN {{0}} * {{1}} WHEN {scaled} < {_power(0)} THEN {zero} "
        f"WHEN {exact} THEN {zero} ELSE {{0}} * {{1}} END "
        f"ELSE {{0}} * {{1}} END"
    )


def _quotient() -> str:
    """A quotient is infinite if the first number is 2^1024 times the second or more, as no double lies between 1 and
    the next below it; and 0 if it is 2^-1075 times the second at most. Both sides of these are scaled exactly."""
    endless = f"CASE WHEN CAST({{1}} AS TEXT) = '-0' THEN {MINUS_INFINITE} ELSE {INFINITE} END"
    return (
        f"CASE WHEN {_middle(0)} AND {_middle(1)} THEN {{0}} / {{1}} "
        f"WHEN {{1}} = {double(0.0)} THEN {{0}} * {endless} "
        f"WHEN {{0}} = {double(0.0)} OR ABS({{0}}) >= {INFINITE} OR ABS({{1}}) >= {INFINITE} THEN {{0}} / {{1}} "
        f"WHEN ABS({{0}}) > {_power(-51)} AND ABS({{1}}) < {_power(0)} THEN "
        f"CASE WHEN ABS({{0}}) * {_power(-520)} >= ABS({{1}}) * {_power(504)} "
        f"THEN {{0}} * ({{1}} * {INFINITE}) ELSE {{0}} / {{1}} END "
        f"WHEN ABS({{0}}) < {_power(-50)} AND ABS({{1}}) > {_power(0)} THEN "
        f"CASE WHEN ABS({{0}}) * {_power(537)} <= ABS({{1}}) * {_power(-538)} "
        f"THEN {{0}} * {double(0.0)} * {{1}} ELSE {{0}} / {{1}} END "
        f"ELSE {{0}} / {{1}} END"
    )


SUM, DIFFERENCE, PRODUCT, QUOTIENT = _sum("+"), _sum("-"), _product(), _quotient()
"""Of two doubles {0} and {1}, each of which stands in them several times."""


def with_constant(name: str, constant: float, *, first: bool) -> str | None:
    """The form of `number_…` with a constant, of one double {0}; `first` says that the constant is the first operand.
    None where no form is shorter than that of two doubles."""
    if name in ("number_sum", "number_difference"):
        if not abs(constant) <= _LARGEST_ADDED and math.isfinite(constant):
            return None
        sign = "+" if name == "number_sum" else "-"
        return f"({double(constant)} {sign} {{0}})" if first else f"({{0}} {sign} {double(constant)})"
    if name == "number_product":
        return _times(constant)
    return None if first else _divided(constant)


def _times(constant: float) -> str:
    """Nothing becomes 0 that is multiplied by 1 or more, and nothing infinite by 1 or less."""
    plain = f"{{0}} * {double(constant)}"
    size = abs(constant)
    if constant == 0 or size == 1 or not math.isfinite(constant):
        return f"({plain})"
    if size > 1:
        most = last(lambda number: number * size <= MOST, 0.0, MOST)
        endless = f"{{0}} * {double(math.copysign(math.inf, constant))}"
        return f"CASE WHEN ABS({{0}}) <= {double(most)} THEN {plain} ELSE {endless} END"
    least = last(lambda number: number * size == 0, 0.0, 1.0)
    nothing = f"{{0}} * {double(math.copysign(0.0, constant))}"
    return f"CASE WHEN ABS({{0}}) > {double(least)} THEN {plain} ELSE {nothing} END"


def _divided(constant: float) -> str:
    plain = f"{{0}} / {double(constant)}"
    size = abs(constant)
    if constant == 0:
        return f"({{0}} * {double(math.copysign(math.inf, constant))})"
    if size == 1 or not math.isfinite(constant):
        return f"({plain})"
    if size < 1:
        most = last(lambda number: number / size <= MOST, 0.0, MOST)
        endless = f"{{0}} * {double(math.copysign(math.inf, constant))}"
        return f"CASE WHEN ABS({{0}}) <= {double(most)} THEN {plain} ELSE {endless} END"
    least = last(lambda number: number / size == 0, 0.0, 1.0)
    nothing = f"{{0}} * {double(math.copysign(0.0, constant))}"
    return f"CASE WHEN ABS({{0}}) > {double(least)} THEN {plain} ELSE {nothing} END"


def rounded_product(constant: float) -> str:
    """A double {0} times a constant above 0, where only what is below 2^62 matters: larger ones stay larger. NULL does
    not stay NULL."""
    if constant == 1:
        return "{0}"
    if constant < 1:
        return _small(f"{{0}} * {double(constant)}", 2.0**-1000 / constant)
    ends = double(2.0**900 / constant), double(-(2.0**900) / constant)
    return f"(GREATEST(LEAST({{0}}, {ends[0]}), {ends[1]}) * {double(constant)})"


def rounded_quotient(constant: float) -> str:
    """A double {0} through a constant above 0, as of `rounded_product`; and what is next to nothing is 0."""
    if constant == 1:
        return "{0}"
    if constant < 1:
        ends = double(2.0**900 * constant), double(-(2.0**900) * constant)
        return f"(GREATEST(LEAST({{0}}, {ends[0]}), {ends[1]}) / {double(constant)})"
    return _small(f"{{0}} / {double(constant)}", 2.0**-1000 * constant)


def _small(result: str, least: float) -> str:
    return f"CASE WHEN ABS({{0}}) < {double(least)} THEN {double(0.0)} ELSE {result} END"


def last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest double from low to high for which it holds. It holds for all below one for which it does; low itself
    is not asked."""
    first, end = _place(low), _place(high)
    while first < end:
        middle = (first + end + 1) // 2
        if holds(_double(middle)):
            first = middle
        else:
            end = middle - 1
    return _double(first)


def _place(number: float) -> int:
    """Doubles in their order."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits if bits >= 0 else -(bits & 2**63 - 1)


def _double(place: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return math.copysign(number, place)
