"""Intervals with integer ends, so that a formula computed with them encloses its true value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.exact import exp_bounds, normal_cdf_bounds


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from low/2^bits to high/2^bits. Every operation rounds outward by at most one unit."""

    low: int
    high: int
    bits: int

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high, self.bits)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low, self.bits)

    def __mul__(self, other: Interval) -> Interval:
        products = (
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        )
        return Interval(min(products) >> self.bits, -(-max(products) >> self.bits), self.bits)

    def __truediv__(self, other: Interval) -> Interval:
        """Only by an interval of positive numbers."""
        if other.low <= 0:
            raise ZeroDivisionError("division by an interval that is not positive")
        low = (self.low << self.bits) // (other.high if self.low >= 0 else other.low)
        high = -((-self.high << self.bits) // (other.low if self.high >= 0 else other.high))
        return Interval(low, high, self.bits)

    def below(self, other: Interval) -> bool:
        """Whether every number here is at most every number there."""
        return self.high <= other.low


def around(low: Fraction, high: Fraction, bits: int) -> Interval:
    """The smallest interval of this precision that holds both numbers and all between them."""
    return Interval((low.numerator << bits) // low.denominator, -((-high.numerator << bits) // high.denominator), bits)


def point(value: Fraction | int, bits: int) -> Interval:
    """The smallest interval of this precision around one rational."""
    return around(Fraction(value), Fraction(value), bits)


def exponential(x: Fraction, bits: int) -> Interval:
    """An interval around e^x."""
    return around(*exp_bounds(x, bits), bits)


def tail(x: Fraction, bits: int) -> Interval:
    """An interval around 2Φ(−x), which is P[|N(0,1)| ≥ x] for x ≥ 0."""
    low, high = normal_cdf_bounds(-x, bits)
    return around(2 * low, 2 * high, bits)
