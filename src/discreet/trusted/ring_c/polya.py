"""Distributed discrete Laplace noise: independent Pólya shares that add up to one discrete Laplace value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.bits import Words, whole
from discreet.trusted.ring_a.exact import Number, exp_bounds, log_bounds
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
from discreet.trusted.ring_a.laplace import TAIL
from discreet.trusted.ring_a.sampler import positive, sample
from discreet.trusted.ring_b import geometric

MOST_SHARES = 1 << 16
_AT_ONCE = 1 << 17  # parts drawn at a time, so that their arrays stay small
_RATE = 16


def polya(scale: Number, shares: int, size: int, words: Words | None = None) -> Whole:
    """Independent values N − N′ of independent negative binomial N, N′ with r = 1/shares: P(N = n) =
    Γ(n + r)/(Γ(r)·n!)·(1 − q)^r·q^n for n ≥ 0, q = e^(−1/scale).

    The sum of `shares` of them is discrete Laplace of that scale: the generating functions ((1 − q)/(1 − q·z))^r of N
    multiply to that of a geometric value, and the difference of two such is discrete Laplace (Goryczka & Xiong 2017,
    section 4). With more than `shares` of them, what is added is independent of that.

    `scale` is taken as written, 0 < scale ≤ 10^60, 1 ≤ shares ≤ 2^16. Every decision compares random bits with
    integers: floating point takes no part. Each value is within 2^−160 of the stated distribution in total variation
    (see `build`). How long a draw takes depends on proposals that are rejected, which say nothing about those accepted,
    and but for once in millions of draws not on how many parts the values are made of.
    """
    number = index(shares)
    if isinstance(shares, bool) or not 1 <= number <= MOST_SHARES:
        raise ValueError("shares must be a whole number from 1 to 2^16")
    return sample(sampler(positive(scale, "scale"), number), size, words)


@lru_cache(maxsize=32)
def sampler(scale: Fraction, shares: int) -> Polya:
    """The tables for this scale and number of shares. The last 32 are kept."""
    return build(scale, shares)


@dataclass(frozen=True, eq=False)
class Polya:
    """A Poisson number of parts, each a logarithmic value with either sign.

    `masks` holds 2^j − 1 for each block j of the logarithmic values; without blocks, values are always 0.
    """

    counts: Digits
    blocks: InversionTable
    masks: NDArray[Any]
    below: Digits
    rate: int
    """The mean number of parts of a value, in units of 2^−16."""

    @property
    def reach(self) -> int:
        """No value lies farther from 0."""
        return sum(len(table.cuts) for table in self.counts.tables) * (2 * int(self.masks[-1]) + 1)

    @property
    def wide(self) -> bool:
        """Whether values may leave the 64-bit integers; they are then Python integers."""
        return self.masks.dtype == object

    def draw(self, words: Words, size: int) -> Whole:
        """`size` independent values: int64, or Python integers where they are `wide`."""
        values: Whole = np.empty(size, self.masks.dtype)
        step = max(1, (_AT_ONCE << _RATE) // max(1, self.rate))
        for start in range(0, size, step):
            stop = min(start + step, size)
            values[start:stop] = self._some(words, stop - start)
        return values

    def _some(self, words: Words, size: int) -> Whole:
        """As many parts are drawn as are hardly ever needed, and those beyond the values' own left: so that how long
        it takes does not say how many these have."""
        ends = np.cumsum(np.asarray(self.counts.draw(words, size), np.int64))
        usual = (self.rate * size >> _RATE) + 1
        parts = self.parts(words, max(int(ends[-1]), usual + 6 * isqrt(usual) + 30))
        minus = words.integers(1, parts.size).astype(bool)
        parts[minus] = -parts[minus]
        sums = np.concatenate([np.zeros(1, parts.dtype), np.cumsum(parts)])[np.concatenate([[0], ends])]
        values: Whole = np.diff(sums)
        return values

    def parts(self, words: Words, size: int) -> Whole:
        """Independent logarithmic values, P(L = l) ∝ q^l/l for l ≥ 1."""
        values: Whole = np.empty(size, self.masks.dtype)
        filled = 0
        while filled < size:
            missing = size - filled
            found = self.attempt(words, missing + missing // 3 + 8)[:missing]
            values[filled : filled + len(found)] = found
            filled += len(found)
        return values

    def attempt(self, words: Words, size: int) -> Whole:
        """The accepted ones of `size` proposals, in the order in which they were drawn."""
        mask = self.masks[self.blocks.draw(words, size)]
        place: Any = self.below.draw(words, size).astype(self.masks.dtype, copy=False) & mask
        value: Whole = mask + 1 + place
        return value[accepted(words, place, mask, int(self.masks[-1]).bit_length())]


def accepted(words: Words, place: Whole, mask: Whole, bits: int) -> NDArray[np.bool_]:
    """Independent coins with chance 1/(1 + u/2^j), exactly, for u = `place` < 2^j and 2^j = `mask` + 1.

    A fair coin decides for acceptance; else a uniform V of j bits (the low ones of `bits`) decides against it if V <
    u; else it is tossed again: the chance a satisfies a = 1/2 + (1/2)·(1 − u/2^j)·a.
    """
    found = np.zeros(place.size, bool)
    open_ = np.arange(place.size)
    while open_.size:
        heads = words.integers(1, open_.size).astype(bool)
        found[open_[heads]] = True
        open_ = open_[~heads]
        uniform = whole(words, bits, open_.size) & mask[open_]
        open_ = open_[~(uniform < place[open_]).astype(bool)]
    return found


def build(scale: Fraction, shares: int, sizes: BitSizes = STANDARD, tail: int = TAIL) -> Polya:
    """The tables of which values are made.

    With Λ = −ln(1 − q) = Σ q^l/l, the generating function of N is exp(−r·Λ + r·Σ q^l·z^l/l): N is a sum of a Poisson
    number of mean r·Λ of logarithmic values, P(L = l) = q^l/(l·Λ) (Fisher, Corbet & Williams 1943; Quenouille 1949).
    So N − N′ is a sum of a Poisson number of mean λ = 2·r·Λ, each with a fair sign.

    Logarithmic values. Block j holds l = 2^j + u, 0 ≤ u < 2^j. Block j is proposed with a weight ∝ q^(2^j)·(1 −
    q^(2^j))/2^j, and u with a probability ∝ q^u: it is G mod 2^j for a geometric G of ratio q, as q^g = q^u·q^(g − u).
    These probabilities are q^u·(1 − q)/(1 − q^(2^j)), so l is proposed with a weight ∝ q^l/2^j. It is accepted with
    probability 2^j/l = 1/(1 + u/2^j), which is at least 1/2: out comes q^l/l.

    Total variation error, in the order of the lines below. W = full + GUARD ≥ 256 bits, and more for larger scales.
    * q ≤ e^−200 (scale < 1/200): P(N ≠ N′) ≤ 2q < 2^−287, and 0 is all that is drawn.
    * Blocks end at 2^J ≥ tail·scale + 2. What is left out has P(L ≥ 2^J) ≤ q^(2^J)/(2^J·(1 − q)·Λ). For scale ≥ 1, 1 −
      q ≥ 1/(2·scale) and Λ ≥ q ≥ 1/e, so it is below e^−134·2e/134 < 2^−193; for scale < 1, 1 − q > 1/2 and Λ ≥ q, so
      it is below q^(2^J − 1) ≤ e^−134.
    * A block's weight, divided by q, is wrong by less than 6 units of 2^−W: two numbers ≤ 1 that are wrong by less than
      2 units (`exp_floor`), and the rounding of the product. The first weight, 1 − q, is at least min(1/2, 1/(2·
      scale)), which W's further bits make at least 2^255 units; there are at most 210 blocks. So they are wrong by less
      than 2^−244 in all; the table's thresholds add less than 2^8·2^−192, G less than 2^−175 (`geometric.build`).
      Rejection makes of a distance at most twice it. A part is within 2^−173 of a logarithmic value.
    * λ is within 2^−250 of itself and a unit of 2^−W (`parts_mean`): that moves the Poisson weights λ^n/n! by a part of
      their sum e^λ below 2·280·2^−250. Rounding down adds at each step less than a unit, which the later steps multiply
      by at most Σ λ^i/i! = e^λ: a part below 2^−240. The weights end where at n ≥ 2λ one is a part below 2^−200 of the
      sum before it, and so is the rest. The thresholds add less than 2^10·2^−192.
    As the mean number of parts is at most 2·140, all is below 281·2^−173 + 2^−181 < 2^−160.
    """
    if 200 * scale < 1:
        never = Digits((), 0, 0)
        return Polya(never, InversionTable.build([], sizes), np.zeros(1, np.int64), never, 0)
    bits = sizes.full + GUARD + int(scale).bit_length()
    weights, unit, power = [], 1 << bits, 1
    while power < tail * scale + 2:
        first, gone = exp_floor((power - 1) / scale, bits), unit - exp_floor(power / scale, bits)
        weights.append(first * gone // (power << bits))
        power *= 2
    mean = parts_mean(scale, shares, bits)
    counts = InversionTable.build(thresholds(poisson(mean, bits), sizes.full), sizes)
    wide = 2 * len(counts.cuts) * power >= 1 << 63
    masks = np.array([(1 << place) - 1 for place in range(len(weights))], object if wide else np.int64)
    blocks = InversionTable.build(thresholds(weights, sizes.full), sizes)
    below = geometric.build(scale, sizes, tail=tail)
    return Polya(Digits((counts,), 0, 0), blocks, masks, below, mean >> (bits - _RATE))


def parts_mean(scale: Fraction, shares: int, bits: int) -> int:
    """λ = −(2/shares)·ln(1 − e^(−1/scale)) in units of 2^−bits, rounded down, for 1/200 ≤ scale ≤ 10^60; before that
    within 2^−250 of itself.

    Where q is near 1, 1 − q has lost as many bits as the scale has; where it is near 0, Λ has lost as many as 1/q has,
    at most 289. So 900 bits, and 200 decimal digits of the logarithm, leave more than 250.
    """
    q, _ = exp_bounds(-1 / scale, 900)
    low, _ = log_bounds(1 - q, 200)
    return int(-low * 2 * (1 << bits) / shares)


def poisson(mean: int, bits: int) -> list[int]:
    """Weights ∝ λ^n/n!, λ = mean/2^bits, from 2^bits for n = 0 on to where no more is needed."""
    weights = [1 << bits]
    total, place = weights[0], 0
    while place << bits < 2 * mean or weights[-1] << 200 >= total:
        place += 1
        weights.append((weights[-1] * mean >> bits) // place)
        total += weights[-1]
    return weights
