"""Integer noise that falls off with a norm: P(Z = z) ∝ e^(−‖z‖/scale) on blocks of coordinates.

A block of one coordinate has the norm |z|, a block (a, s) of two has |a| + |s|, and ‖z‖ is the largest of its blocks'.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.exact import Number
from discreet.trusted.ring_a.inversion import exp_floor
from discreet.trusted.ring_a.sampler import positive
from discreet.trusted.ring_b.geometric import geometric

_NARROW = 64
_BITS = 512
_SPARE = 192  # bits beyond those of a range, from which a uniform integer is made


def ball_noise(scale: Number, blocks: Sequence[int], size: int, words: Words | None = None) -> list[tuple[int, ...]]:
    """`size` independent vectors with P(Z = z) ∝ e^(−‖z‖/scale); `blocks` lists 1 or 2 for each block.

    With q = e^(−1/scale), q^r = (1 − q)·Σ_{m ≥ r} q^m. So Z is a uniform integer point of the ball of radius M, where
    P(M = m) ∝ q^m·V(m), and V(m) is the number of integer points of the ball: a product of 2m + 1 for each block of
    one and of 2m² + 2m + 1 for each block of two. With d coordinates, the sum of d + 1 geometric variables has
    P(m) ∝ q^m·Π_{i ≤ d}(m + i), and V(m) ≤ 2^b·Π_{i ≤ d}(m + i) for b blocks, since 2m + 1 ≤ 2(m + i) and
    2m² + 2m + 1 ≤ 2(m + i)(m + i + 1) for i ≥ 1. A proposal m is kept with the quotient's probability, which rises to
    1 as m grows: with scales of a million steps hardly ever is a proposal drawn in vain.

    Total variation: 2^−175 for each geometric variable, at most 2^−192 for each uniform integer (`_below`). A proposal
    is kept with probability at least 2^−b/d! whatever the scale, which bounds what conditioning multiplies the error
    by; with up to 12 coordinates a vector stays within 2^−130. Small scales, where hardly any proposal would be kept,
    draw M from its cumulated weights instead (`_cumulated`), within 2^−190.
    """
    width = positive(scale, "scale")
    source = SystemWords() if words is None else words
    if not blocks or any(block not in (1, 2) for block in blocks) or sum(blocks) > 12:
        raise ValueError("a ball has blocks of one or two coordinates, and at most 12 coordinates")
    if width <= _NARROW:
        sums = _cumulated(width, tuple(blocks))
        radii = (bisect_right(sums, _below(source, sums[-1])) for _ in range(size))
        return [tuple(value for block in blocks for value in _inside(source, block, radius)) for radius in radii]
    found: list[tuple[int, ...]] = []
    coordinates = sum(blocks)
    while len(found) < size:
        drawn = geometric(width, (size - len(found)) * (coordinates + 1), source).reshape(-1, coordinates + 1)
        for row in drawn.tolist():
            radius = sum(row)
            above = (1 << len(blocks)) * prod(radius + i for i in range(1, coordinates + 1))
            if _below(source, above) < prod(points(block, radius) for block in blocks):
                found.append(tuple(value for block in blocks for value in _inside(source, block, radius)))
    return found


@lru_cache(maxsize=64)
def _cumulated(width: Fraction, blocks: tuple[int, ...]) -> tuple[int, ...]:
    """Sums of ⌊2^512·q^m⌋·V(m) for m = 0, 1, …, q = e^(−1/width), until the remaining mass is below
    2^−192.

    Powers are rounded down, by fewer than 2m + 2 units in the last place; V(m) ≤ (2m + 1)^d. For widths up to 64 and 12
    coordinates that is below 2^−300 of the whole in all. From m = 4·d·width on, a weight is at most e^(−3/(4·width))
    times the one before, so all that follow one of them are less than 100 of it: the end leaves out at most 2^−192.
    """
    if width * 400 < 1:
        return (1,)  # q < e^−400
    q, unit, least = exp_floor(1 / width, _BITS), 1 << _BITS, 4 * sum(blocks) * width
    sums: list[int] = []
    power, total, radius = unit, 0, 0
    while True:
        weight = power * prod(points(block, radius) for block in blocks)
        total += weight
        sums.append(total)
        if radius >= least and weight << 200 < unit:
            return tuple(sums)
        power, radius = power * q >> _BITS, radius + 1


def points(block: int, radius: int) -> int:
    """How many integer points the block's ball of this radius has."""
    return 2 * radius + 1 if block == 1 else 2 * radius * (radius + 1) + 1


def _inside(words: Words, block: int, radius: int) -> tuple[int, ...]:
    """A uniform integer point of the block's ball.

    (a, s) with |a| + |s| ≤ m are the pairs u = a + s, v = a − s in [−m, m] of equal parity: (m + 1)² pairs that have
    the parity of m, and m² others.
    """
    place = _below(words, points(block, radius))
    if block == 1:
        return (place - radius,)
    if place < (radius + 1) ** 2:
        u, v = divmod(place, radius + 1)
        u, v = 2 * u - radius, 2 * v - radius
    else:
        u, v = divmod(place - (radius + 1) ** 2, radius)
        u, v = 2 * u - radius + 1, 2 * v - radius + 1
    return (u + v) // 2, (u - v) // 2


def _below(words: Words, count: int) -> int:
    """A uniform integer in [0, count): ⌊U·count/2^bits⌋ takes each value ⌊2^bits/count⌋ or ⌈2^bits/count⌉ times, so it
    is within 2^−192 of uniform. Nothing is drawn again, so how much is drawn does not depend on the noise."""
    bits = count.bit_length() + _SPARE
    return words.big(bits) * count >> bits
