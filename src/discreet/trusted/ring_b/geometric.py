"""One-sided geometric noise, P(G = g) ∝ e^(−g/scale) on g = 0, 1, 2, …, digit by digit from small tables."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.trusted.ring_a.bits import Words
from discreet.trusted.ring_a.exact import Number
from discreet.trusted.ring_a.inversion import GUARD, STANDARD, BitSizes, Digits, InversionTable, Whole, thresholds
from discreet.trusted.ring_a.laplace import DIGIT, TAIL, WIDEST, powers
from discreet.trusted.ring_a.sampler import positive, sample


def geometric(scale: Number, size: int, words: Words | None = None) -> Whole:
    """Independent values with P(G = g) = (1 − q)·q^g for all integers g ≥ 0, q = e^(−1/scale).

    `scale` is taken as written, 0 < scale ≤ 10^60. No floating point takes part, nothing is rejected, and each value is
    within 2^−175 of the stated distribution in total variation (see `build`).
    """
    return sample(sampler(positive(scale, "scale")), size, words)


@lru_cache(maxsize=32)
def sampler(scale: Fraction) -> Digits:
    """The tables for this scale. The last 32 are kept."""
    return build(scale)


def build(
    scale: Fraction, sizes: BitSizes = STANDARD, digit: int = DIGIT, tail: int = TAIL, widest: int = WIDEST
) -> Digits:
    """The tables whose outcomes add up to a geometric value.

    G = D + B·H with the digit 0 ≤ D < B = 2^digit: as q^g = q^d·(q^B)^h, the two are independent, and H is geometric
    with ratio q^B. H is split again until it needs at most `widest` atoms, and is then cut where its ratio r has r^N ≤
    e^−134 < 2^−193.

    Total variation error. A table has fewer than 2^12 weights, which sum to at least 1, each below the truth by less
    than 2^14 units of 2^−256 (`powers`): 2^−230 in all; its thresholds add less than 2^12·2^−192 (`thresholds`). There
    are at most 21 tables for a scale up to 10^60, so all errors are below 21·(2^−230 + 2^−180) + 2^−193 < 2^−175.
    """
    if 200 * scale < 1:  # P(G ≠ 0) = q < e^−200 < 2^−288
        return Digits((), digit, 0)
    bits, unit, tables = sizes.full + GUARD, 1, []
    while tail * scale > widest * unit:
        tables.append(InversionTable.build(thresholds(powers(unit / scale, 1 << digit, bits), sizes.full), sizes))
        unit <<= digit
    reach = int(-(-tail * scale // unit))
    tables.append(InversionTable.build(thresholds(powers(unit / scale, reach + 1, bits), sizes.full), sizes))
    return Digits(tuple(tables), digit, 0)
