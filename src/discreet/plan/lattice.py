"""The public lattice on which rows become integers before anything is added up.

A row's number x becomes round(x/step), clamped to [low, high]. The lattice comes from declarations and the question, so
it says nothing about anybody; sums of integers are exact in any order, so sensitivity is an exact integer, and neither
re-ordering nor rounding of floating-point sums can give a person away (Casacuberta, Shoemate, Vadhan & Wagaman 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.plan.expressions import Interval

FINENESS = 30
"""A lattice without a declared step has about 2^30 steps between zero and the larger bound."""

ROW_LIMIT = 2**53
"""No row counts for more steps than this, so 2^63 rows still add up within 128 bits."""


@dataclass(frozen=True)
class Lattice:
    """Multiples of `step`; a row's value lies in [low, high] steps."""

    step: Fraction
    low: int
    high: int

    @property
    def width(self) -> int:
        return self.high - self.low


def lattice(bounds: Interval, step: Fraction | None, *, scale: Fraction | None = None) -> Lattice:
    """The lattice for values in `bounds`: of the declared `step` where that is not too fine, else a power of two.

    Without `bounds`, rows may lie anywhere within ROW_LIMIT steps, and `scale` says what size matters (the bound that
    the question puts on a person's total in a group).
    """
    largest = max(abs(bounds[0]), abs(bounds[1])) if bounds else (scale or Fraction(1))
    if step is None or largest / step > 2**50:
        step = _power_of_two_below(largest / 2**FINENESS) if largest else Fraction(1)
    if bounds is None:
        return Lattice(step, -ROW_LIMIT, ROW_LIMIT)
    low = bounds[0] // step
    high = -(-bounds[1] // step)
    return Lattice(step, low, max(high, low + 1))


def _power_of_two_below(value: Fraction) -> Fraction:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power / 2 if power > value else power
