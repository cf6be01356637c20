"""Discrete Laplace noise, P(X = x) ∝ e^(−|x|/scale), digit by digit from small tables."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.trusted.ring_a.exact import Number
from discreet.trusted.ring_a.inversion import (
    GUARD,
    STANDARD,
    BitSizes,
    Digits,
    InversionTable,
    Whole,
    exp_floor,
    thresholds,
)
from discreet.trusted.ring_a.sampler import positive, sample

TAIL = 134  # e^−134 < 2^−193
DIGIT = 10
WIDEST = 2048


def discrete_laplace(scale: Number, size: int) -> Whole:
    """Independent values with P(X = x) = (1 − q)/(1 + q) · q^|x| for all integers x, q = e^(−1/scale).

    `scale` is taken as written, 0 < scale ≤ 10^60. The result is an int64 array, or an object array of Python
    integers where a value might not fit (scales from about 10^16). Every decision compares random bits with
    integers: floating point takes no part. The distribution of each value is within 2^−128 of the stated one
    in total variation (see `build`), so a vector of up to 2^28 values is within 2^−100: a privacy loss of ε
    holds up to a δ of (1 + e^ε)·2^−100. Nothing is drawn and rejected, so how much is drawn does not depend
    on the noise, apart from the look-ups that `InversionTable` describes.
    """
    return sample(sampler(positive(scale, "scale")), size)


@lru_cache(maxsize=32)
def sampler(scale: Fraction) -> Digits:
    """The tables for this scale. The last 32 are kept."""
    return build(scale)


def build(
    scale: Fraction, sizes: BitSizes = STANDARD, digit: int = DIGIT, tail: int = TAIL, widest: int = WIDEST
) -> Digits:
    """The tables whose outcomes add up to a discrete Laplace value.

    Let G and G′ be independent with P(G = g) = (1 − q)·q^g on g = 0, 1, 2, …. Then X = G − G′ is discrete
    Laplace: P(X = x) = (1 − q)²·Σ_g q^(g + g + |x|) = (1 − q)/(1 + q)·q^|x|. Write G = D + B·H with the digit
    0 ≤ D < B = 2^digit. As q^g = q^d·(q^B)^h, D and H are independent, and H is geometric with ratio q^B.
    Hence X = E + B·Y, where the difference of two digits E = D − D′ and the discrete Laplace Y = H − H′ of
    scale/B are independent. Y is split again until it needs a table of at most `widest` atoms on a side.

    E has P(E = e) ∝ Σ_{d < B − |e|} q^(2d + |e|) = q^|e|·Σ_{d < B − |e|} q^(2d). The last Y, of ratio r, is
    cut to |y| ≤ N with r^N ≤ e^−134, which leaves out 2·r^(N + 1)/(1 + r) ≤ 2·e^−134 < 2^−192.

    Total variation error. Powers of a ratio come from `powers` in integers of W = full + 64 bits. Their
    exponents are at most 2^11, so each is below the truth by less than 2^13 units of 2^−W. A weight of E is
    one power times a sum of at most 2^10 powers, so it is wrong by less than 2·2^10·2^13 = 2^24 units; all of
    them, fewer than 2^11, by less than 2^35. They sum to at least 1, so after normalising they are within
    2^36 units of the truth, 2^−220. The weights of the last Y are closer still. The thresholds add less than
    2^12·2^−192 for each table (`thresholds`). There are at most 21 tables for a scale up to 10^60, so the sum
    of all errors is below 21·(2^−220 + 2^−180) + 2^−192 < 2^−175.
    """
    if 200 * scale < 1:  # P(X ≠ 0) = 2q/(1 + q) < 2·e^−200 < 2^−287
        return Digits((), digit, 0)
    base, unit, low = 1 << digit, 1, 0
    tables = []
    while tail * scale > widest * unit:
        weights = digit_weights(powers(unit / scale, 2 * base - 1, sizes.full + GUARD))
        tables.append(InversionTable.build(thresholds(weights, sizes.full), sizes))
        low -= (base - 1) * unit
        unit *= base
    reach = -(-tail * scale // unit)
    side = powers(unit / scale, reach + 1, sizes.full + GUARD)
    tables.append(InversionTable.build(thresholds([*side[:0:-1], *side], sizes.full), sizes))
    return Digits(tuple(tables), digit, low - reach * unit)


def powers(rate: Fraction, count: int, bits: int) -> list[int]:
    """e^(−rate·i)·2^bits for i < count, each below the truth by at most 3·i.

    The ratio is below the truth by less than 2. If p_i is below by e_i, then p_i·ratio/2^bits is below by at
    most e_i + 2, and rounding down adds less than 1.
    """
    ratio = exp_floor(rate, bits)
    powers = [1 << bits]
    for _ in range(count - 1):
        powers.append((powers[-1] * ratio) >> bits)
    return powers


def digit_weights(powers: list[int]) -> list[int]:
    """The weights of D − D′, from −(B − 1) to B − 1, given the powers q^0 … q^(2B − 2)."""
    total, sums = 0, []
    for power in powers[::2]:
        total += power
        sums.append(total)
    side = [powers[distance] * sums[-1 - distance] for distance in range(len(sums))]
    return [*side[:0:-1], *side]
