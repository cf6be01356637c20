"""Exact Bernoulli draws, weighted choice and random permutation, decided in integers.

What is chosen among depends on private scores: so nothing here is cached but public constants, and every candidate
takes the same steps whatever its score.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.bits import Unsigned, Words
from discreet.trusted.ring_a.inversion import STANDARD, BitSizes
from discreet.trusted.ring_a.laplace import powers

CERTAIN = 1 << STANDARD.full  # chances and weights count units of 2^−192
INDEX = 384  # bits of the uniform number that picks a place

_WORK, _DIGIT, _LEVELS = 224, 12, 7
_TOP = _WORK + 8  # exponents below 2^8, with _WORK fractional bits
_LOW = _TOP - _DIGIT * _LEVELS  # what the digits leave of an exponent: below 2^−76
_ONE, _LIMIT = 1 << _WORK, (1 << _TOP) - 1


def decays(rate: Fraction, below: Sequence[int | Fraction]) -> list[int]:
    """2^192·e^(−rate·d) for each d ≥ 0 of `below`: at most the truth, by less than 2; for d = 0 exactly 2^192.

    The exponent is rounded up to m units of 2^−224, and cut off just below 256, where 2^192·e^(−256) < 1. The highest
    84 bits of m are seven digits of 12 bits, each with its table of powers of e: below the truth by less than 2 units
    of 2^−224, as are the powers by 3·4095 units of 2^−240 before rounding. With t < 2^−76 for the other bits, 1 − t +
    t²/2 is above e^(−t) by less than t³/6 < 2^−230, and one unit is taken off. A product of numbers ≤ 1 errs by at most
    the sum of their errors, and by one more for rounding: in all less than 7·2 + 3 + 7 units, and one for m, below
    2^−219. Cutting the result to 192 bits takes less than 1.
    """
    tables, mask, rest = _tables(), (1 << _DIGIT) - 1, (1 << _LOW) - 1
    above, under = rate.numerator << _WORK, rate.denominator
    found = []
    for distance in below:
        exponent = min(_LIMIT, -(-above * distance.numerator // (under * distance.denominator)))
        shift, t = _TOP - _DIGIT, exponent & rest
        weight = _ONE - t + (t * t >> (_WORK + 1)) - min(t, 1)
        for table in tables:
            weight = weight * table[exponent >> shift & mask] >> _WORK
            shift -= _DIGIT
        found.append(weight >> (_WORK - STANDARD.full))
    return found


@lru_cache(maxsize=1)
def _tables() -> tuple[tuple[int, ...], ...]:
    """The powers e^(−d·2^(12·(LEVELS − 1 − level) + LOW − WORK)), 0 ≤ d < 2^12, the highest digit first."""
    steps = [Fraction(1 << (_LOW + _DIGIT * level), _ONE) for level in reversed(range(_LEVELS))]
    return tuple(tuple(power >> 16 for power in powers(step, 1 << _DIGIT, _WORK + 16)) for step in steps)


def coins(words: Words, chances: Sequence[int], sizes: BitSizes = STANDARD) -> NDArray[np.bool_]:
    """Independent coins: coin i shows heads with probability exactly chances[i]/2^full.

    Heads is U < chance for a uniform U of `full` bits; its first `word` bits decide unless they agree with the
    chance's, and then the others are drawn.
    """
    if any(not 0 <= chance <= 1 << sizes.full for chance in chances):
        raise ValueError("a probability must lie between 0 and 1")
    rest, last = sizes.full - sizes.word, (1 << sizes.word) - 1
    tops = np.array([min(chance >> rest, last) for chance in chances], np.uint64)
    drawn = words.integers(sizes.word, len(chances)).astype(np.uint64)
    heads: NDArray[np.bool_] = drawn < tops
    for place in np.flatnonzero(drawn == tops):
        heads[place] = (int(drawn[place]) << rest | words.big(rest)) < chances[int(place)]
    return heads


def weighted(words: Words, weights: Sequence[int], bits: int = INDEX) -> int:
    """A place i with probability weights[i]/Σ weights: see `places`."""
    (place,) = places(words, weights, 1, bits)
    return place


def places(words: Words, weights: Sequence[int], size: int, bits: int = INDEX) -> list[int]:
    """`size` independent places, each i with probability weights[i]/Σ weights.

    ⌊U·Σ/2^bits⌋, U uniform of `bits` bits, takes each of the Σ values ⌊2^bits/Σ⌋ or ⌈2^bits/Σ⌉ times: within Σ/2^bits
    of uniform in total variation, below 2^−160 for up to 2^32 weights of at most 2^192.
    """
    *sums, total = accumulate(weights)
    if total <= 0:
        raise ValueError("at least one weight must be above 0")
    return [bisect_right(sums, words.big(bits) * total >> bits) for _ in range(size)]


def order(words: Words, size: int, bits: int = 64) -> Unsigned:
    """Distinct numbers whose order is uniform over all orders: drawn until no two agree, which the order is free of."""
    while True:
        keys = words.integers(bits, size)
        if len(np.unique(keys)) == size:
            return keys
