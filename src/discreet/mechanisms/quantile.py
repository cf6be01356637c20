"""Private quantiles: where in a public order of buckets a stated fraction of the rows lies.

Buckets are numbered 0 … m − 1 and public: the cells of a lattice, in order. All that is looked at are the exact numbers
of rows in each; all that is released are numbers of buckets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet import accounting
from discreet.noise.choice import INDEX, coins, decays, weighted
from discreet.noise.words import SystemWords, Words

_MOST = 1 << 40  # buckets
_FAR = 134  # e^−134 < 2^−193
_CHUNK = 1 << 20  # rows put into places at a time

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Node:
    """One choice of `Quantiles`: which fraction, of the rows between its neighbours chosen before."""

    place: int  # among the fractions in order
    share: Fraction  # of the rows of this branch: τ itself where there are no neighbours
    lower: Node | None = None
    upper: Node | None = None

    @property
    def inner(self) -> bool:
        """Whether others are chosen after it, from its two sides."""
        return self.lower is not None or self.upper is not None

    @property
    def sensitivity(self) -> Fraction:
        """How far one row more or less moves a score: max(τ, 1 − τ)."""
        return max(self.share, 1 - self.share)


@dataclass(frozen=True)
class Quantiles:
    """For each fraction τ the bucket that holds the row of rank τ·n, nearly: the exponential mechanism on ranks.

    Units: rows. Neighbours: one person added or removed, with at most `rows` = R rows in the buckets; so n, the number
    of rows, changes too, and is not released. ε pays for all fractions together.

    Score. With less(j) rows in buckets before j and most(j) in these and j, bucket j is off by

        d(j) = max(less(j) − τn, τn − most(j), 0),

    and is chosen with probability ∝ e^(−rate·d(j)). As most(j) = less(j + 1), some bucket has d = 0.

    Sensitivity. Add a row in bucket b. less(j) − τn changes by 1 − τ if b < j, else by −τ; τn − most(j) changes by
    τ − 1 if b ≤ j, else by τ. Each by at most Δ = max(τ, 1 − τ), hence also their maximum with 0; so R rows move d(j)
    by at most R·Δ, and r of them by r·Δ. Buckets on both sides of b move opposite ways: the scores are not
    monotone, and the factor 2 stays. One choice then costs 2·rate·Δ a row (Dwork & Roth 2014, Theorem 3.10), and has
    that as its bounded range (Durfee & Rogers 2019). The median has Δ = 1/2: half a row.

    Several fractions, with *one* rate for all choices, in one of two ways; which is public (`shared`).
    (a) Apart: each fraction is chosen from all buckets. The losses add up (Theorem 3.14): Σ 2·rate·R·Δ(τ).
    (b) Shared, which costs less from three fractions on (Kaplan, Schnapp & Stemmer 2022): the middle fraction τ first;
    then those below it from the rows before the place v chosen, as fractions σ/τ of these rows, those above it from the
    others, and so on. Given the choices before, a row belongs to one branch of each level, and the scores of a branch
    depend on its rows only. Let r_i of the person's rows be in branch i, Σ r_i ≤ R. Branch i costs 2·rate·Δ_i·r_i, in
    pure loss and in bounded range; branches are independent, logarithms of ratios add up, so a level costs at most
    2·rate·R·max Δ_i. Levels add up. So this holds for any R, though a person's rows may be in many branches.
    In (b) rows of one bucket may belong to different branches, or a bucket that holds half of all rows would shift the
    fractions of what is left. So every row is put into one of 2^grain places of its bucket, uniformly and independently
    of all else, before anything is chosen. Between two neighbours, give the rows they share the same places, and draw
    the person's too where they are not used: then the places have one distribution on both, and cost nothing. Were they
    known first, all of the above would hold for them; what is released is a function of them and the choices after. It
    is a level's choices, given places and earlier choices, that have bounded range. Inner choices choose a place, the
    last of a branch a bucket.
    For several groups, each with a release of its own, what r of a person's rows cost is at most ε·r/R everywhere: so
    if `rows` bounds the person's rows in all groups together, all releases together cost ε.
    ε = 2·rate·R·Σ Δ, over the fractions or the levels: rate = ε/(2·R·Σ Δ), `loss` the bounded ranges.

    Sampling, by rejection: the buckets with k ≤ rate·d < k + 1 lie in one stretch on either side of the target; one of
    these is taken with weight length·e^(−k), a bucket in it uniformly, and kept with the chance e^(k − rate·d), above
    1/e; else all is drawn again. So a bucket is released with probability ∝ e^(−rate·d), whatever the number of
    buckets, and few are looked at. Weights and chances are multiples of 2^−192, below the truth by less than two
    (`decays`); buckets with rate·d ≥ 134 have weights below 2^−193 and are left out; some bucket has weight 1. So with
    at most 2^40 places a choice is within 2^−150 of the stated distribution in total variation. What is computed, not
    what is released, depends on where rows lie: this is no protection against a stopwatch.

    Source: Smith 2011 for the score, on an interval; here on integers, with ties, and with n private.
    """

    epsilon: Fraction
    fractions: tuple[Fraction, ...]
    buckets: int
    rows: int = 1
    grain: int = 13

    name = "quantiles by rank"

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ValueError("epsilon must be a Fraction above 0")
        if not self.fractions or not isinstance(self.fractions, tuple):
            raise ValueError("fractions must be a tuple, and hold one at least")
        if not all(isinstance(share, Fraction) and 0 <= share <= 1 for share in self.fractions):
            raise ValueError("a fraction is a Fraction from 0 to 1")
        if not all(type(number) is int for number in (self.buckets, self.rows, self.grain)):
            raise ValueError("buckets, rows and grain must be integers")
        if self.buckets < 1 or self.rows < 1 or not 0 <= self.grain <= 16:
            raise ValueError("buckets and rows must be at least 1, grain from 0 to 16")
        if self.buckets << self.grain > _MOST:
            raise ValueError("too many buckets")

    @cached_property
    def ordered(self) -> tuple[Fraction, ...]:
        """The fractions in order, each once."""
        return tuple(sorted(set(self.fractions)))

    @cached_property
    def tree(self) -> Node:
        """The choices if they are shared: the middle fraction at the root."""
        found = _tree(self.ordered, 0, len(self.ordered), Fraction(0), Fraction(1))
        assert found is not None
        return found

    @cached_property
    def shared(self) -> bool:
        """Whether (b) leaves at least 4/3 of the rate that (a) does. It depends on the fractions only."""
        return 4 * sum(self._parts(True)) < 3 * sum(self._parts(False))

    def _parts(self, shared: bool) -> tuple[Fraction, ...]:
        """Δ of each fraction, or of each level."""
        if not shared:
            return tuple(max(share, 1 - share) for share in self.ordered)
        return tuple(max(node.sensitivity for node in level) for level in _levels(self.tree))

    @property
    def rate(self) -> Fraction:
        """What being off by one row is worth in the exponent."""
        return self.epsilon / (2 * self.rows * sum(self._parts(self.shared)))

    def loss(self) -> accounting.BoundedRange | accounting.Batch:
        """One bounded range for each fraction or level; their sum is ε."""
        ranges = tuple(accounting.BoundedRange(2 * self.rate * self.rows * part) for part in self._parts(self.shared))
        return ranges[0] if len(ranges) == 1 else accounting.Batch(ranges)

    def half_width(self, confidence: float = 0.95) -> float:
        """With `confidence`, each bucket released holds a rank within this many rows of its τ·n.

        One choice among M is off by at most ln(M/β)/rate but for a probability β (Corollary 3.12, with best score 0).
        A union bound shares the failures among the fractions. Where choices are shared, a branch aims between ranks
        that are off by E₁ and E₂ themselves, so (1 − τ)·E₁ + τ·E₂ is added, τ being its share; and the rows in one
        *place*, on average 2^−grain of those in its bucket, come on top.
        """
        chances = len(self.ordered) / (1 - confidence)
        last, inner = (math.log((self.buckets << grain) * chances) for grain in (0, self.grain))

        def widest(node: Node | None, below: float, above: float) -> float:
            if node is None:
                return 0.0
            share = float(node.share)
            own = (inner if node.inner else last) + (1 - share) * below + share * above
            return max(own, widest(node.lower, below, own), widest(node.upper, own, above))

        return (widest(self.tree, 0.0, 0.0) if self.shared else last) / float(self.rate)

    def describe(self) -> str:
        how = f"shared by {len(_levels(self.tree))} levels" if self.shared else "each apart"
        count = len(self.ordered)
        what = "1 fraction" if count == 1 else f"{count} fractions {how}"
        return f"{self.name}: {what}, {float(self.rate):.6g} a row, within {self.half_width():.3g} rows with 95 %"

    def release(self, counts: Iterable[tuple[int, int]], words: Words | None = None) -> list[int]:
        """The bucket of each fraction, in the order of `fractions`.

        `counts` are the buckets that hold rows, in order, each with its number of rows. Raises ValueError on what is
        no such list; never because of what it holds, also not where it is empty: then every bucket is equally likely.
        """
        source = words or SystemWords()
        held = Held(counts, self.buckets, self.grain if self.shared else 0, source)
        chosen = [0] * len(self.ordered)
        if self.shared:
            for place, bucket in self._follow(self.tree, held, 0, held.end - 1, held.end, source):
                chosen[place] = bucket
        else:
            branches = [self._branch(held, False, 0, held.end - 1, held.end, share) for share in self.ordered]
            chosen = sorted(branch.choose(source) for branch in branches)  # a function of what was chosen
        return [chosen[self.ordered.index(share)] for share in self.fractions]

    def _branch(self, held: Held, fine: bool, low: int, high: int, stop: int, share: Fraction) -> Branch:
        """A choice among the places low … high, or their buckets, by the rows in the places low … stop − 1."""
        base, top = held.rank(low), held.rank(stop)
        step = 0 if fine else held.grain
        return Branch(held, fine, low >> step, high >> step, base, top, base + share * (top - base), self.rate)

    def _follow(
        self, node: Node, held: Held, low: int, high: int, stop: int, words: Words
    ) -> Iterator[tuple[int, int]]:
        """The choices of a branch and of those below it: which of the fractions, and its bucket."""
        chosen = self._branch(held, node.inner, low, high, stop, node.share).choose(words)
        yield node.place, chosen >> held.grain if node.inner else chosen
        if node.lower:
            yield from self._follow(node.lower, held, low, chosen, chosen, words)
        if node.upper:
            yield from self._follow(node.upper, held, chosen, high, stop, words)


class Held:
    """The rows in their places. The rows of a bucket get theirs when somebody first asks about its inside."""

    def __init__(self, counts: Iterable[tuple[int, int]], buckets: int, grain: int, words: Words) -> None:
        pairs = np.array(list(counts) or np.empty((0, 2), np.int64))
        if pairs.dtype.kind not in "iu" or pairs.shape[1:] != (2,):
            raise ValueError("counts must be pairs of integers")
        pairs = pairs.astype(np.int64)
        self.at, each = pairs[:, 0], pairs[:, 1]
        if len(pairs) and (self.at[0] < 0 or self.at[-1] >= buckets or (np.diff(self.at) <= 0).any()):
            raise ValueError("buckets must be in order, each once, and below their number")
        if (each < 0).any():
            raise ValueError("a number of rows is not negative")
        self.sums = np.concatenate([[0], np.cumsum(each)])  # rows in the buckets before at[i]
        self.grain, self.end = grain, buckets << grain
        self._words = words
        self._inside: dict[int, tuple[Places, Places]] = {}

    def rank(self, place: int) -> int:
        """The number of rows before a place."""
        index = int(np.searchsorted(self.at, place >> self.grain))
        rest = place & ((1 << self.grain) - 1)
        if not rest or index == len(self.at) or self.at[index] != place >> self.grain:
            return int(self.sums[index])
        places, most = self.inside(index)
        before = int(np.searchsorted(places, place))
        return int(most[before - 1]) if before else int(self.sums[index])

    def inside(self, index: int) -> tuple[Places, Places]:
        """The places of bucket at[index] that hold rows, in order, and the number of rows up to each."""
        if index not in self._inside:
            size, first = int(self.sums[index + 1] - self.sums[index]), int(self.at[index]) << self.grain
            places, each = self._scattered(size) if size > _CHUNK else self._few(size)
            self._inside[index] = places + first, np.cumsum(each) + self.sums[index]
        return self._inside[index]

    def _few(self, size: int) -> tuple[Places, Places]:
        """The places of so many rows, within their bucket, and the number of rows in each."""
        places, each = np.unique(self._words.integers(self.grain, size), return_counts=True)
        return places.astype(np.int64), each

    def _scattered(self, size: int) -> tuple[Places, Places]:
        """The same for more rows than should be held at a time."""
        each = np.zeros(1 << self.grain, np.int64)
        for start in range(0, size, _CHUNK):
            each += np.bincount(self._words.integers(self.grain, min(size - start, _CHUNK)), minlength=len(each))
        return np.flatnonzero(each), each[each > 0]

    def where(self, row: int, fine: bool) -> int:
        """The place, or the bucket, of a row: rows are numbered from 1 in the order of their places."""
        index = int(np.searchsorted(self.sums[1:], row))
        if not fine:
            return int(self.at[index])
        places, most = self.inside(index)
        return int(places[np.searchsorted(most, row)])


@dataclass(frozen=True)
class Branch:
    """One choice, ready to be made: among the places low … high, or their buckets where not `fine`.

    `base` rows of all stand before the branch, and `top` before its end; `target` is the rank aimed at, among all rows.
    """

    held: Held
    fine: bool
    low: int
    high: int
    base: int
    top: int
    target: Fraction
    rate: Fraction

    def off(self, candidate: int) -> Fraction:
        """d of a candidate: how far the ranks of its rows are from the target."""
        step = 0 if self.fine else self.held.grain
        less, most = self.held.rank(candidate << step), self.held.rank(candidate + 1 << step)
        less, most = max(less, self.base), min(most, self.top)
        return max(less - self.target, self.target - most, Fraction(0))

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Candidates start … end − 1 with k ≤ rate·d < k + 1, as (start, end, k): one on either side for each k.

        d < x holds from the first candidate with most > target − x to the last with less < target + x: those that hold
        the row one above the former rank and the row one above the latter.
        """
        first = last = None
        for k in range(_FAR):
            reach = (k + 1) / self.rate
            below = math.floor(self.target - reach) + 1
            above = math.ceil(self.target + reach)
            start = self.held.where(below, self.fine) if below > self.base else self.low
            end = self.held.where(above, self.fine) + 1 if above <= self.top else self.high + 1
            if first is None or last is None:
                yield start, end, k
            else:
                yield start, first, k
                yield last, end, k
            first, last = start, end
            if start == self.low and end == self.high + 1:
                return

    def choose(self, words: Words) -> int:
        """A candidate: one of a block at first, as if all its candidates were off by k/rate; kept with what is left."""
        blocks = [block for block in self.blocks() if block[0] < block[1]]
        lengths = [end - start for start, end, _ in blocks]
        known = decays(Fraction(1), [k for _, _, k in blocks])
        weights = [weight * length for weight, length in zip(known, lengths, strict=True)]
        while True:
            block = weighted(words, weights)
            start, _, k = blocks[block]
            candidate = start + (words.big(INDEX) * lengths[block] >> INDEX)
            if coins(words, decays(Fraction(1), [self.rate * self.off(candidate) - k]))[0]:
                return candidate


def _tree(shares: tuple[Fraction, ...], first: int, last: int, below: Fraction, above: Fraction) -> Node | None:
    """The choices for the fractions first … last − 1, between two others or the ends of all rows."""
    if first == last:
        return None
    middle = (first + last) // 2
    share = shares[middle]
    return Node(
        middle,
        (share - below) / (above - below),
        _tree(shares, first, middle, below, share),
        _tree(shares, middle + 1, last, share, above),
    )


def _levels(tree: Node) -> list[list[Node]]:
    """The nodes by how many choices stand before them."""
    found = []
    level = [tree]
    while level:
        found.append(level)
        level = [child for node in level for child in (node.lower, node.upper) if child]
    return found
