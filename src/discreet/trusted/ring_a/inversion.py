"""Inverse distribution sampling from integer thresholds, by table look-ups, exact to the last bit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.bits import Unsigned, Words
from discreet.trusted.ring_a.exact import exp_bounds

Whole = NDArray[np.int64] | NDArray[np.object_]

SMALL = 512  # up to this many cells, all of them take the same path
SPLIT = -1
GUARD = 64  # weights are computed with so many bits more than the thresholds have


class BitSizes(NamedTuple):
    """How many random bits are looked at first, before a search, and in the end: guide ≤ word ≤ full."""

    guide: int = 16
    word: int = 64
    full: int = 192


STANDARD = BitSizes()


def thresholds(weights: Iterable[int], full: int) -> list[int]:
    """Cumulative weights scaled to 2^full and rounded down; the last one, 2^full itself, is left out.

    Outcome k then has probability (T_k − T_{k−1})/2^full. Every threshold is below its place by less than
    one, and moving one threshold by that much moves a mass below 2^−full, so n weights are met with total
    variation error below (n − 1)·2^−full.
    """
    *sums, total = accumulate(weights)
    return [(sum_ << full) // total for sum_ in sums]


def exp_floor(rate: Fraction, bits: int) -> int:
    """e^(−rate)·2^bits for rate ≥ 0, below the truth by less than 2."""
    low, _ = exp_bounds(-rate, bits + 8)
    return (low.numerator << bits) // low.denominator


@dataclass(frozen=True, eq=False)
class InversionTable:
    """The outcome is the number of thresholds T_0 ≤ T_1 ≤ … that are ≤ U, U uniform on [0, 2^full).

    So outcome k has exactly the probability (T_k − T_{k−1})/2^full, with T_{−1} = 0 and 2^full after the
    last. Most cells need only the top `guide` bits of U: where no threshold falls inside the bucket they
    name, the guide holds the outcome. The others draw U's bits up to `word` and search among the thresholds'
    top bits; that leaves an open question only where U agrees with a threshold in all of these, and then the
    remaining bits are drawn.

    Whether a cell's bucket is split depends on its outcome, so a long draw takes a little longer if more of
    its cells fall into split buckets (a few in a hundred do, and each costs some tens of nanoseconds). A draw
    of at most `SMALL` cells searches for all of them, whatever they are; agreement in 64 bits is then the
    only branch.
    """

    cuts: tuple[int, ...]
    sizes: BitSizes
    guide: NDArray[np.int16]
    tops: NDArray[np.uint64]

    @classmethod
    def build(cls, cuts: Sequence[int], sizes: BitSizes = STANDARD) -> InversionTable:
        """The table of these thresholds, each in [0, 2^full].

        Raises ValueError from 2^15 thresholds on, where they fall or leave that range, and on sizes that do not fit
        each other.
        """
        if len(cuts) >= 1 << 15:
            raise ValueError("a table holds at most 2^15 outcomes")
        if not 0 < sizes.guide <= min(16, sizes.word) or not sizes.word <= min(64, sizes.full):
            raise ValueError("the word sizes must not fall, and the first two are at most 16 and 64 bits")
        if any(first > second for first, second in zip([0, *cuts], [*cuts, 1 << sizes.full], strict=True)):
            raise ValueError("a table's thresholds must grow from 0 to 2^full")
        shift, buckets = sizes.full - sizes.guide, 1 << sizes.guide
        # T ≤ U for all U of bucket b if ceil(T / 2^shift) ≤ b, and for some U of it if floor(T / 2^shift) ≤ b
        always = np.bincount([-(-cut >> shift) for cut in cuts] or [buckets], minlength=buckets)[:buckets]
        sometimes = np.bincount([cut >> shift for cut in cuts] or [buckets], minlength=buckets)[:buckets]
        least, most = np.cumsum(always), np.cumsum(sometimes)
        guide = np.where(least == most, least, SPLIT).astype(np.int16)
        # a threshold of 2^full is never reached, and its top would not fit the word
        tops = [cut >> (sizes.full - sizes.word) for cut in cuts if cut < 1 << sizes.full]
        return cls(tuple(cuts), sizes, guide, np.array(tops, np.uint64))

    def draw(self, words: Words, size: int) -> NDArray[np.int64]:
        """`size` independent outcomes, as int64."""
        guide, word, _ = self.sizes
        if size <= SMALL:
            return self._search(words, words.integers(word, size))
        bucket = words.integers(guide, size)
        outcome = self.guide.take(bucket).astype(np.int64)
        split = np.flatnonzero(outcome == SPLIT)
        low = words.integers(word - guide, split.size).astype(np.uint64)
        high = bucket[split].astype(np.uint64) << np.uint64(word - guide)
        outcome[split] = self._search(words, high | low)
        return outcome

    def _search(self, words: Words, drawn: Unsigned) -> NDArray[np.int64]:
        """The outcomes for the top `word` bits drawn, with the rest of the bits drawn where they matter."""
        outcome = np.searchsorted(self.tops, drawn, side="right").astype(np.int64)
        if not self.tops.size:
            return outcome
        rest = self.sizes.full - self.sizes.word
        for place in np.flatnonzero(self.tops[outcome - 1] == drawn):  # the last top is above a U of outcome 0
            uniform = (int(drawn[place]) << rest) | words.big(rest)
            outcome[place] = bisect_right(self.cuts, uniform)
        return outcome


@dataclass(frozen=True, eq=False)
class Digits:
    """low + Σ_j (outcome of tables[j]) · 2^(bits·j), outcomes independent. Without tables: always `low`."""

    tables: tuple[InversionTable, ...]
    bits: int
    low: int

    @property
    def wide(self) -> bool:
        """Whether the sum may leave the 64-bit integers; it is then made of Python integers."""
        spread = sum(len(table.cuts) << (self.bits * place) for place, table in enumerate(self.tables))
        return max(spread, abs(self.low)) >= 1 << 63

    def draw(self, words: Words, size: int) -> Whole:
        """`size` independent sums: int64, or Python integers where they are `wide`."""
        kind = object if self.wide else np.int64
        total: Whole = np.full(size, self.low, kind)
        for place, table in enumerate(self.tables):
            total += table.draw(words, size).astype(kind, copy=False) << (self.bits * place)
        return total
