"""Chooses the lattice of a question's sums: from declared bounds and steps, or from those that the question names."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.dialect.cases import Interval
from discreet.errors import QuestionError
from discreet.trusted.ring_a.lattice import ROW_LIMIT, Lattice

FINENESS = 30
"""A lattice without a declared step has about 2^30 steps between zero and the larger bound."""

_FINEST = 2**50
"""A bound is at most so many steps from zero; where a declared step is finer than that, a coarser one is taken."""


def lattice(bounds: Interval, step: Fraction | None, *, scale: Fraction | None = None) -> Lattice:
    """The lattice for values in `bounds`: of the declared `step` where that is not too fine, else a power of two.

    Without `bounds`, rows may lie anywhere within ROW_LIMIT steps, and `scale` says what size matters (the bound that
    the question puts on a person's total in a group).
    """
    largest = max(abs(bounds[0]), abs(bounds[1])) if bounds else (scale or Fraction(1))
    if step is None or largest / step > _FINEST:
        step = _power_of_two_below(largest / 2**FINENESS) if largest else Fraction(1)
    if bounds is None:
        return Lattice(step, -ROW_LIMIT, ROW_LIMIT)
    low = bounds[0] // step
    high = -(-bounds[1] // step)
    return Lattice(step, low, max(high, low + 1))


def clamping(bounds: tuple[Fraction, Fraction], step: Fraction | None) -> Lattice:
    """The lattice for a clamp to `bounds` that the question names: both lie on it, with the declared `step`, so that
    nothing is clamped to less or more than was asked; within 2^−29 of that where the step would be too fine."""
    unit = step
    for bound in bounds:
        unit = common(unit, bound) if unit is not None else None
    if unit is None or max(abs(bounds[0]), abs(bounds[1])) / unit > _FINEST:
        return lattice(bounds, None)
    return Lattice(unit, int(bounds[0] / unit), int(bounds[1] / unit))


def buckets(bounds: tuple[Fraction, Fraction], step: Fraction | None, most: int) -> Lattice:
    """The lattice of what is chosen by rank: the declared step, or a power of two, doubled until there are `most`
    buckets or few more, and until both bounds are so few steps from zero that doubles tell them apart."""
    width, largest = bounds[1] - bounds[0], max(abs(bounds[0]), abs(bounds[1]))
    fine = width / most or Fraction(1)
    if step is None:
        exponent = fine.numerator.bit_length() - fine.denominator.bit_length()
        step = Fraction(2) ** exponent
    while width / step > most or 2 * largest / step > ROW_LIMIT:
        step *= 2
    low = bounds[0] // step
    return Lattice(step, low, max(-(-bounds[1] // step), low + 1))


def sized(bounds: tuple[Fraction, Fraction], where: str) -> tuple[Fraction, Fraction]:
    """The bounds, if they and sums of what lies in them can be written as floating-point numbers."""
    largest = max(abs(bounds[0]), abs(bounds[1]))
    if largest and not Fraction(1, 10**240) < largest < 10**240:
        fix = "scale the values to between 1e-240 and 1e240"
        raise QuestionError("number", f"the values of {where} are out of range", where=where, fix=fix)
    return bounds


def common(one: Fraction, other: Fraction) -> Fraction:
    """The largest number of which both are multiples."""
    numerator = math.gcd(one.numerator * other.denominator, other.numerator * one.denominator)
    return Fraction(numerator, one.denominator * other.denominator)


def _power_of_two_below(value: Fraction) -> Fraction:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power / 2 if power > value else power
