"""The public lattice on which rows become integers before anything is added up.

A row's number x becomes round(x/step), clamped to [low, high]. The lattice comes from declarations and the question, so
it says nothing about anybody; sums of integers are exact in any order, so sensitivity is an exact integer, and neither
re-ordering nor rounding of floating-point sums can give a person away (Casacuberta, Shoemate, Vadhan & Wagaman 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

ROW_LIMIT = 2**53
"""No row counts for more steps than this, so 2^63 rows still add up within 128 bits."""


@dataclass(frozen=True)
class Lattice:
    """Multiples of `step`; a row's value lies in [low, high] steps, which are ROW_LIMIT at most in size.

    However a lattice was made, it has no larger numbers: they are refused here, in the one place where all are made,
    and so before anything is paid. A double holds each of them, so the engine clamps a row to them without error; the
    cast to 64 bits that follows cannot overflow, whatever stands in the row; nor can the sum of all rows in 128 bits.
    """

    step: Fraction
    low: int
    high: int

    def __post_init__(self) -> None:
        if type(self.low) is not int or type(self.high) is not int:
            raise ValueError("a lattice counts its steps in integers")
        if self.step <= 0 or not -ROW_LIMIT <= self.low <= self.high <= ROW_LIMIT:
            raise ValueError("a lattice has steps above 0, from low to high, which a double holds")

    def fits(self, size: int) -> bool:
        """Whether all its numbers are smaller than this, whatever their sign."""
        return -size < self.low and self.high < size

    @property
    def width(self) -> int:
        """How far apart two rows' numbers can be, in steps."""
        return self.high - self.low
