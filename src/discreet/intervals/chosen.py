"""Intervals of questions that are asked after the noise was drawn which answers them.

Whoever has seen noisy numbers can ask for those that lie furthest out, so the interval of an independent number holds
for them too seldom. What is said here holds for every answer that stored noise can give, at once, whichever is asked
for, and in whatever order:

Each answer that could ever be made has a share of the failures. The shares are fixed before any noise is drawn, by
what is asked alone, and add up to at most 1. An interval that is exceeded with probability miss·share, of noise whose
law is known, is exceeded by any answer at all with probability at most miss (the union bound over all answers). So it
does not matter how the one that is printed was chosen.

An answer is told apart by

* the number k of the stored release that it is made of, in the order in which these became free for whoever asks:
  3/(π²·k²), which adds up to 1/2. Those that are another's, and were met as the same measurement, have the other half,
  numbered in the order of the ledger;
* the set of values of each stored key that is added up (`values`);
* which number of the release it is: of v vectors at most 4·v different counts, sums and means are made.

That more is shared out than is ever asked for makes intervals wider than they need be, by little: the width of a
Gaussian interval grows with the square root of the logarithm of 1/share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def release(number: int) -> float:
    """The share of the release of this number, from 1 on; those of all releases add up to 1/2."""
    return 3 / (math.pi * number) ** 2


def values(places: Sequence[int], count: int) -> float:
    """The share of a set of values of a key that has `count`: by the places where they stand, in order.

    One value has its part of a half; all have a quarter; a range of neighbours an equal part of an eighth among all
    ranges; any other set of s values an eighth, divided by how many numbers s there are and by how many sets of s
    values. Over all sets this adds up to at most 1, as each set is counted once.
    """
    size = len(places)
    if not 0 < size <= count:
        raise ValueError("a set of values of a key has some of them")
    if count == 1:
        return 1.0
    if size == 1:
        return 1 / (2 * count)
    if size == count:
        return 1 / 4
    if places[-1] - places[0] == size - 1:
        return 1 / (4 * count * (count + 1))  # there are count·(count + 1)/2 ranges
    return 1 / (8 * count * math.comb(count, size)) if count < 1_000 else _of_many(size, count)


def _of_many(size: int, count: int) -> float:
    """The same where the sets may be more than a floating-point number holds; 0 where the share is less than any."""
    sets = math.lgamma(count + 1) - math.lgamma(size + 1) - math.lgamma(count - size + 1)
    return math.exp(-sets) / (8 * count) if sets < 700 else 0.0


def numbers(vectors: int) -> float:
    """The share of one number of a release with so many vectors."""
    return 1 / (4 * vectors)


SMALLEST = 1e-280
"""No share is less: what would have less has no interval, and is not answered from what is stored."""
