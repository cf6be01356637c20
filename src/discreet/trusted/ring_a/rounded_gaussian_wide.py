"""Rounded Gaussian noise for large sigma: rejection from a staircase, decided by integers at every step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.bits import Words, whole
from discreet.trusted.ring_a.exact import exp_bounds
from discreet.trusted.ring_a.inversion import GUARD, STANDARD, BitSizes, InversionTable, Whole, exp_floor, thresholds

REACH = Fraction(33, 2)  # 2·(1 − Φ(16.5)) < e^(−16.5²/2) < 2^−196
FINENESS = 128  # a cell is at most sigma/128 wide, or one integer
OFFSET = 16  # so many bits of the place in its cell decide the height of the chord

Ints = NDArray[np.int64]


class Levels(NamedTuple):
    """How many bits of the acceptance uniform are looked at: at first, against the chord, and in the end."""

    quick: int = 16
    chord: int = 32
    full: int = 192


@dataclass(frozen=True, eq=False)
class Cells:
    """Independent values of N(0, sigma²) rounded, sigma > 32.

    Write g(y) = e^(−y²/(2·sigma²)) and f(k) = ∫ g over [k − 1/2, k + 1/2], which is P(X = k) times a
    constant. Cell j holds the W = 2^shift integers k = j·W + r, 0 ≤ r < W. Their intervals fill [j·W − 1/2,
    (j + 1)·W − 1/2], so f(k) lies between the least and the largest g there. A proposal takes cell j with
    probability c_j/2^full, where the integers c_j add up to 2^full exactly, and r uniformly. It is accepted
    with probability a = f(k)/(c_j·unit), where the rational `unit` is the same for all cells and c_j·unit ≥ g
    throughout the cell. So k comes out with probability c_j/2^full · 1/W · f(k)/(c_j·unit), which is f(k)
    times a constant: no rounding of the staircase enters.

    Whether a uniform U is below a is decided from its first bits where they suffice:

    * It is where U is below `quick`, a lower bound of the least g of the cell over c_j·unit.
    * The chord ℓ of g over the cell differs from g by at most M·W²/8, M = max |g″| = max |y²/sigma² −
      1|·g/sigma² over the cell. As ℓ is linear, its mean over [k − 1/2, k + 1/2] is ℓ(k), so |f(k) − ℓ(k)| ≤
      M·W²/8 as well. The chord, in units of 2^−32·c_j·unit, and a bound for its distance from f with all
      roundings are integers (`_chord`).
    * What is still open takes U to `full` = 192 bits and f(k) to more (`height_bounds`). U is then one of
      2^192 numbers, and ⌊2^192·a⌋ of them are accepted, or one less.

    Total variation error. That rounding takes less than 2·2^−192 from each acceptance probability. More than
    half of all proposals are accepted: on either side of zero the steps of the staircase add up to at most 1,
    so it exceeds g by an area of at most 2·W ≤ sigma/16 (2 for W = 1), while the area of g is above
    2.5·sigma. So the error is below 2^−190. Integers beyond 16.5·sigma are not all proposed: below 2^−196.
    Together this is below 2^−189.

    Time. The number of proposals depends on rejections, and the proposals being independent, how many were
    rejected says nothing about the values accepted. How closely an accepted proposal was looked at does
    depend on its value: at most about three in a hundred are compared with the chord, and fewer than one in a
    thousand needs the last step, which takes about a tenth of a millisecond.
    """

    table: InversionTable
    levels: Levels
    variance: Fraction
    shift: int
    first: int  # the lowest cell
    envelope: tuple[int, ...]  # c_j
    unit: Fraction
    quick: Ints
    chord: Ints
    slope: Ints
    slack: Ints

    @property
    def wide(self) -> bool:
        """Whether values may leave the 64-bit integers; they are then Python integers."""
        return -self.first << self.shift >= 1 << 63

    @classmethod
    def build(
        cls,
        sigma: Fraction,
        sizes: BitSizes = STANDARD,
        levels: Levels = Levels(),  # noqa: B008 - a tuple of integers
        fineness: int = FINENESS,
        reach: Fraction = REACH,
    ) -> Cells:
        """The staircase for one sigma: cells of W integers, W the largest power of two up to sigma/fineness, but at
        least 1, so many that they reach `reach`·sigma on either side."""
        shift = max(0, int(sigma / fineness).bit_length() - 1)
        width, bits, unity, variance = 1 << shift, sizes.full + GUARD, 1 << sizes.full, sigma * sigma
        count = int(-(-reach * sigma // width)) + 1
        # g at j·W − 1/2 for −count ≤ j ≤ count, in units of 2^−bits, below the truth by at most `error`
        left = bells(Fraction(1, 2), width, count + 1, sigma, bits)
        edges = [*left[::-1], *bells(width - Fraction(1, 2), width, count, sigma, bits)]
        error = 2 * (count + 1) ** 2
        peaks = [max(pair) + error for pair in pairwise(edges)]
        peaks[count] = 1 << bits  # the cell of zero
        # rounded up, the c_j add up to at most 2^full; the cell of zero takes the rest, which does no harm
        total = -(-(sum(peaks) << sizes.full) // (unity - len(peaks)))
        envelope = [-(-(peak << sizes.full) // total) for peak in peaks]
        envelope[count] += unity - sum(envelope)
        quick, chords = [], []
        for place, (pair, peak, height) in enumerate(zip(pairwise(edges), peaks, envelope, strict=True)):
            bend = _bend(place - count, width, variance, peak)
            quick.append((min(pair) << (levels.quick + sizes.full)) // (height * total))
            chords.append(_chord(pair, error + bend, levels.chord + sizes.full, height * total, shift))
        chord, slope, slack = np.array(chords, np.int64).T.copy()
        return cls(
            table=InversionTable.build(thresholds(envelope, sizes.full), sizes),
            levels=levels,
            variance=variance,
            shift=shift,
            first=-count,
            envelope=tuple(envelope),
            unit=Fraction(total, 1 << (bits + sizes.full)),
            quick=np.array(quick, np.int64),
            chord=chord,
            slope=slope,
            slack=slack,
        )

    def draw(self, words: Words, size: int) -> Whole:
        """`size` independent values: int64, or Python integers where they are `wide`."""
        values: Whole = np.empty(size, object if self.wide else np.int64)
        filled = 0
        while filled < size:
            missing = size - filled
            accepted = self.attempt(words, missing + missing // 64 + 8)[:missing]
            values[filled : filled + len(accepted)] = accepted
            filled += len(accepted)
        return values

    def attempt(self, words: Words, size: int) -> Whole:
        """The accepted ones of `size` proposals, in the order in which they were drawn."""
        kind: Any = object if self.wide else np.int64
        head = min(self.shift, OFFSET)
        cell = self.table.draw(words, size)
        offset = words.integers(head, size).astype(np.int64)
        uniform = words.integers(self.levels.quick, size)
        value: Whole = (cell + self.first).astype(kind, copy=False) << self.shift
        value += offset.astype(kind, copy=False) << (self.shift - head)
        if self.shift > head:
            value += whole(words, self.shift - head, size)
        accepted = uniform < self.quick.take(cell)
        slow = np.flatnonzero(~accepted)
        accepted[slow] = self._closer(words, cell[slow], offset[slow], uniform[slow], value[slow])
        return value[accepted]

    def _closer(self, words: Words, cell: Ints, offset: Ints, uniform: NDArray[Any], value: Whole) -> NDArray[np.bool_]:
        """The decisions the first bits left open: against the chord, or exactly where U is close to it."""
        head, (quick, chord, full) = min(self.shift, OFFSET), self.levels
        more = words.integers(chord - quick, cell.size).astype(np.int64)
        drawn = (uniform.astype(np.int64) << (chord - quick)) | more
        line = self.chord[cell] + ((self.slope[cell] * (2 * offset + 1)) >> (head + 1))
        accepted = drawn < line - self.slack[cell]  # then U < (drawn + 1)/2^32 ≤ a
        close = ~accepted & (drawn < line + self.slack[cell])  # elsewhere a ≤ drawn/2^32 ≤ U
        for place in np.flatnonzero(close):
            exact = (int(drawn[place]) << (full - chord)) | words.big(full - chord)
            accepted[place] = self.below(exact, int(cell[place]), int(value[place]))
        return accepted

    def below(self, drawn: int, cell: int, value: int) -> bool:
        """Whether (drawn + 1)/2^full ≤ a, with a replaced by a lower bound not 2^−(full + 3)·a below it."""
        low, _ = height_bounds(value, self.variance, self.levels.full + 4)
        return (drawn + 1) * self.envelope[cell] * self.unit <= low * (1 << self.levels.full)


def bells(start: Fraction, width: int, count: int, sigma: Fraction, bits: int) -> list[int]:
    """g(start + i·width)·2^bits for i < count, start ≥ 0, each below the truth by at most 2·(i + 1)².

    Neighbours have the ratio ρ_i = e^(−(2·(start + i·width)·width + width²)/(2·sigma²)), and ρ_(i+1)/ρ_i is
    constant. In units of 2^−bits, the three numbers from `exp_floor` are each wrong by less than 2. A product
    of numbers ≤ 1 that are wrong by d and e is wrong by at most d + e, and by 1 more when rounded down. So
    ρ_i is wrong by at most 2 + 3i, and g_(i+1) by at most 3 + 3i more than g_i: g_i by at most 2 + 3i + 3i(i
    − 1)/2 ≤ 2·(i + 1)².
    """
    doubled = 2 * sigma * sigma
    bell = exp_floor(start * start / doubled, bits)
    ratio = exp_floor((2 * start * width + width * width) / doubled, bits)
    change = exp_floor(2 * width * width / doubled, bits)
    values = []
    for _ in range(count):
        values.append(bell)
        bell = (bell * ratio) >> bits
        ratio = (ratio * change) >> bits
    return values


def _bend(cell: int, width: int, variance: Fraction, peak: int) -> int:
    """At least M·W²/8 in the unit of `peak`, the largest g of the cell.

    As y²/sigma² grows on either side of zero, |y²/sigma² − 1| is largest at an end of the cell or at zero.
    """
    above, below = variance.numerator, variance.denominator
    end, other = 2 * cell * width - 1, 2 * (cell + 1) * width - 1  # 2·y
    farthest = max(abs(end * end * below - 4 * above), abs(other * other * below - 4 * above))  # times 4·numerator
    if cell == 0:
        farthest = max(farthest, 4 * above)
    return -(-farthest * below * width * width * peak // (32 * above * above))


def _chord(pair: tuple[int, int], distance: int, bits: int, scale: int, shift: int) -> tuple[int, int, int]:
    """Integers with |f·2^bits/scale − (start + ⌊slope·(2·offset + 1) / 2^(head + 1)⌋)| ≤ slack.

    `distance` bounds two errors in the unit of `pair`: the bend, which divides f from the chord through the
    true ends, and the error of the ends, from above. Rounding the scaled ends down takes less than 1, and so
    does the last rounding. Where the offset is not all of r, (2·offset + 1)/2^(head + 1) and the place (r +
    1/2)/W are at most 1/2^(head + 1) apart.
    """
    start = (pair[0] << bits) // scale
    slope, head = (pair[1] << bits) // scale - start, min(shift, OFFSET)
    place = -(-abs(slope) >> (head + 1)) if shift > head else 0
    return start, slope, -(-(distance << bits) // scale) + 2 + place


def terms_of(k: int, variance: Fraction, work: int) -> int:
    """The fewest terms that leave out less than 2^−work by the estimate 2·4^⌈8a + 64b⌉·256^−terms: see below."""
    growth = int(-(-(8 * k + 32) / variance // 1))
    return (work + 2 * growth + 1) // 8 + 1


def height_bounds(k: int, variance: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals around f(k), at most 2^−bits·f(k) apart, for |k| ≤ variance and variance ≥ 2.

    With a = |k|/variance and b = 1/(2·variance), f(k) = e^(−k²·b)·I with I = ∫ e^(−a·t − b·t²) dt over |t| ≤
    1/2, which is also ∫ cosh(a·t)·e^(−b·t²) dt ≥ e^(−1/16) > 1/2. The Taylor coefficients of e^(a·t − b·t²)
    satisfy (n + 1)·h_(n+1) = a·h_n − 2b·h_(n−1), from h_0 = 1, and I = Σ_m h_2m/((2m + 1)·4^m).

    What is left out: by Cauchy's estimate on the circle of radius 8, |h_n| ≤ e^(8a + 64b)·8^−n, so the terms
    from m on add up to less than 2·4^⌈8a + 64b⌉·256^−m, and `terms_of` makes this less than 1 unit, the unit
    being 2^−work. Rounding: if h_n and h_(n−1) are wrong by at most 2 units, h_(n+1) is wrong by at most (2a
    + 4b)/(n + 1) + 1 ≤ 3/(n + 1) + 1 ≤ 2 units for n ≥ 2; h_0 is exact, so h_1 is wrong by at most 1 and h_2
    by at most 1/2 + 1. The sum is therefore wrong by at most 2·Σ 4^−m + terms < terms + 3 units, and with the
    remainder by less than terms + 4.
    """
    k = abs(k)
    work = bits + 16
    terms = terms_of(k, variance, work)
    above, below = variance.denominator, variance.numerator
    before, here, total = 0, 1 << work, 0
    for n in range(2 * terms):
        if n % 2 == 0:
            total += here // ((n + 1) << n)
        before, here = here, (k * here - before) * above // (below * (n + 1))
    # not the cached one: what was drawn must not be remembered
    low, high = exp_bounds.__wrapped__(-k * k / (2 * variance), bits + 4)
    return low * Fraction(total - terms - 4, 1 << work), high * Fraction(total + terms + 4, 1 << work)
