"""Private quantiles: where in a public order of buckets a stated fraction of the rows lies.

Buckets are numbered 0 … m − 1 and public: the cells of a lattice, in order. All that is looked at are the exact numbers
of rows in each; all that is released are numbers of buckets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.exact import figure
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_b.choice import INDEX, coins, decays, weighted
from discreet.trusted.ring_b.further_losses import BoundedRange

_MOST = 1 << 40  # buckets
_FAR = 134  # e^−134 < 2^−193
_CHUNK = 1 << 20  # rows put into places at a time

Places = NDArray[np.int64]


_SURE = 0.05  # how often a fraction near an end may lie beyond all rows, where there are rows enough


@dataclass(frozen=True)
class Aim:
    """At which rank of n rows a choice aims: at `share`·n; near an end of all rows, no nearer to it than `margin` rows.

    With `inside`, the share that is aimed at where n is too small for the margin, the rank is

        T(n) = max(min(share·n, n − margin), inside·n)  where inside < share: near the upper end,
        T(n) = min(max(share·n, margin), inside·n)      where inside > share: near the lower one.
    """

    share: Fraction
    inside: Fraction | None = None

    @property
    def sensitivity(self) -> Fraction:
        """How far one row more or less moves a score, whatever the margin."""
        return max(self.share, 1 - self.share) if self.inside is None else Fraction(1)

    def rank(self, rows: int, margin: Fraction) -> Fraction:
        """T(n): from 0 to n, and as n grows by 1 it grows by 0 at least and 1 at most."""
        if self.inside is None:
            return self.share * rows
        if self.inside < self.share:
            return max(min(self.share * rows, rows - margin), self.inside * rows)
        return min(max(self.share * rows, margin), self.inside * rows)

    def moved(self, below: float, above: float) -> float:
        """How far T may move where the first row moves by `below` ranks at most and the last by `above`, either way."""
        if self.inside is None:
            return float(1 - self.share) * below + float(self.share) * above
        ends = [self.inside, self.share, Fraction(self.inside < self.share)]  # the slopes that T may have
        return max(float(1 - slope) * below + float(slope) * above for slope in ends)


@dataclass(frozen=True)
class Node:
    """One choice of `Quantiles`: which fraction, of the rows between its neighbours chosen before."""

    place: int  # among the fractions in order
    aim: Aim  # its share is τ itself where there are no neighbours
    lower: Node | None = None
    upper: Node | None = None

    @property
    def inner(self) -> bool:
        """Whether others are chosen after it, from its two sides."""
        return self.lower is not None or self.upper is not None


@dataclass(frozen=True)
class Quantiles:
    """For each fraction τ the bucket that holds the row of rank τ·n, nearly: the exponential mechanism on ranks.

    Units: rows. Neighbours: one person added or removed, with at most `rows` = R rows in the buckets; so n, the number
    of rows, changes too, and is not released. ε pays for all fractions together.

    Score. With less(j) rows in buckets before j and most(j) in these and j, and T the rank aimed at, bucket j is off by

        d(j) = max(less(j) − T, T − most(j), 0),

    and is chosen with probability ∝ e^(−rate·d(j)). As most(j) = less(j + 1) and 0 ≤ T ≤ n, some bucket has d = 0.

    The rank aimed at is T = τn; but all buckets beyond the last row are as far off as n − T. They may be nearly all
    there are, so a maximum that aims at T = n is one of them, anywhere up to the last bucket. Fractions that are less
    than `ends` from 0 or 1 therefore keep off that end of all rows (`Aim`): by as many rows, `margin`, as one choice is
    off by with probability 0.05 at most. That follows from ε, R, the fractions and the number of buckets alone, as n
    may not be known; so where `ends` of the rows are fewer than the margin, it is those. `ends` = 0 is τn for all.

    Sensitivity. T = T(n) with 0 ≤ T(n + 1) − T(n) ≤ 1: say s. Add a row in bucket b. less(j) − T changes by 1 − s if
    b < j, else by −s; T − most(j) changes by s − 1 if b ≤ j, else by s. Each by at most Δ, hence also their maximum
    with 0: where T = τn, s is τ and Δ = max(τ, 1 − τ); else Δ = 1, whatever the margin, which is a constant here.
    So R rows move d(j) by at most R·Δ, and r of them by r·Δ. Buckets on both sides of b move opposite ways: the scores
    are not monotone, and the factor 2 stays. One choice then costs 2·rate·Δ a row (Dwork & Roth 2014, Theorem 3.10),
    and has that as its bounded range (Durfee & Rogers 2019). The median has Δ = 1/2: half a row.

    Several fractions, with *one* rate for all choices, in one of two ways; which is public (`shared`).
    (a) Apart: each fraction is chosen from all buckets. The losses add up (Theorem 3.14): Σ 2·rate·R·Δ(τ).
    (b) Shared, which costs less from three fractions on (Kaplan, Schnapp & Stemmer 2022): the middle fraction τ first;
    then those below it from the rows before the place v chosen, as fractions σ/τ of these rows, those above it from the
    others, and so on. Given the choices before, a row belongs to one branch of each level, and the scores of a branch
    depend on its rows only. Let r_i of the person's rows be in branch i, Σ r_i ≤ R. Branch i costs 2·rate·Δ_i·r_i, in
    pure loss and in bounded range; branches are independent, logarithms of ratios add up, so a level costs at most
    2·rate·R·max Δ_i. Levels add up. So this holds for any R, though a person's rows may be in many branches. A branch
    with rows n' aims at T(n') of them; only the first and the last fraction keep off the ends of all rows, which are
    ends of their branches: so the others cost no more.
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
    ends: Fraction = Fraction(1, 10)

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
        if not isinstance(self.ends, Fraction) or not 0 <= self.ends < Fraction(1, 2):
            raise ValueError("the ends are a fraction of the rows, a Fraction from 0 to below 1/2")

    @cached_property
    def ordered(self) -> tuple[Fraction, ...]:
        """The fractions in order, each once."""
        return tuple(sorted(set(self.fractions)))

    @cached_property
    def tree(self) -> Node:
        """The choices if they are shared: the middle fraction at the root."""
        found = self._tree(0, len(self.ordered), Fraction(0), Fraction(1))
        assert found is not None
        return found

    def _tree(self, first: int, last: int, below: Fraction, above: Fraction) -> Node | None:
        """The choices for the fractions first … last − 1, between two others or the ends of all rows. Of an even number
        the one further from the end of all fractions comes first: so their first and last are the last of their
        branches."""
        if first == last:
            return None
        middle = (first + last - (last == len(self.ordered))) // 2
        share = self.ordered[middle]
        outermost = middle == 0 if share < self.ends else middle == len(self.ordered) - 1
        return Node(
            middle,
            self._aim(share, below, above) if outermost else Aim((share - below) / (above - below)),
            self._tree(first, middle, below, share),
            self._tree(middle + 1, last, share, above),
        )

    def _aim(self, share: Fraction, below: Fraction = Fraction(0), above: Fraction = Fraction(1)) -> Aim:
        """What a fraction of all rows aims at among those between two others: near an end, it keeps off that."""
        aim = Aim((share - below) / (above - below))
        if share > 1 - self.ends:
            return replace(aim, inside=max(1 - self.ends - below, Fraction(0)) / (above - below))
        if share < self.ends:
            return replace(aim, inside=min(self.ends - below, above - below) / (above - below))
        return aim

    @cached_property
    def shared(self) -> bool:
        """Whether (b) leaves at least 4/3 of the rate that (a) does. It depends on the fractions only."""
        return 4 * sum(self._parts(True)) < 3 * sum(self._parts(False))

    def _parts(self, shared: bool) -> tuple[Fraction, ...]:
        """Δ of each fraction, or of each level."""
        if not shared:
            return tuple(self._aim(share).sensitivity for share in self.ordered)
        return tuple(max(node.aim.sensitivity for node in level) for level in _levels(self.tree))

    @cached_property
    def margin(self) -> Fraction:
        """How many rows a fraction near an end keeps off it: one choice of a bucket is off by no more with probability
        0.95. Half a row at least, which is still the last row."""
        sure = Fraction(math.ceil(1000 * math.log(self.buckets / _SURE)), 1000) / self.rate
        return max(sure, Fraction(1, 2))

    def kept_off(self) -> tuple[Fraction, ...]:
        """At which ends the fractions near them keep off, as the part of the rows that the margin is at most."""
        parts = []
        if self.ordered[0] < self.ends:
            parts.append(min(self.ends, self.ordered[1]) if self.shared else self.ends)
        if self.ordered[-1] > 1 - self.ends:
            parts.append(min(self.ends, 1 - self.ordered[-2]) if self.shared else self.ends)
        return tuple(dict.fromkeys(parts))

    @property
    def rate(self) -> Fraction:
        """The weight of an error of one row in the exponent."""
        return self.epsilon / (2 * self.rows * sum(self._parts(self.shared)))

    def loss(self) -> BoundedRange | Batch:
        """One bounded range for each fraction or level; their sum is ε."""
        ranges = tuple(BoundedRange(2 * self.rate * self.rows * part) for part in self._parts(self.shared))
        return ranges[0] if len(ranges) == 1 else Batch(ranges)

    def half_width(self, confidence: float = 0.95) -> float:
        """With `confidence`, each bucket released holds a rank within this many rows of the one it aims at.

        One choice among M is off by at most ln(M/β)/rate but for a probability β (Corollary 3.12, with best score 0).
        A union bound shares the failures among the fractions. Where choices are shared, a branch aims between ranks
        that are off by E₁ and E₂ themselves, so (1 − s)·E₁ + s·E₂ is added, s being its share, or the worst of the
        slopes that its rank has near an end; and the rows in one *place*, on average 2^−grain of those in its bucket,
        come on top.
        """
        chances = len(self.ordered) / (1 - confidence)
        last, inner = (math.log((self.buckets << grain) * chances) for grain in (0, self.grain))

        def widest(node: Node | None, below: float, above: float) -> float:
            if node is None:
                return 0.0
            own = (inner if node.inner else last) + node.aim.moved(below, above)
            return max(own, widest(node.lower, below, own), widest(node.upper, own, above))

        return (widest(self.tree, 0.0, 0.0) if self.shared else last) / float(self.rate)

    def describe(self) -> str:
        """How the fractions are chosen, at which rate, and how many rows they are off at 95 % confidence, in words."""
        how = f"shared by {len(_levels(self.tree))} levels" if self.shared else "each apart"
        count = len(self.ordered)
        what = "1 fraction" if count == 1 else f"{count} fractions {how}"
        wide = figure(Fraction(self.half_width()), 3)
        return f"{self.name}: {what}, {figure(self.rate)} a row, within {wide} rows at 95 % confidence"

    def release(self, counts: Iterable[tuple[int, int]], words: Words | None = None) -> list[int]:
        """The bucket of each fraction, in the order of `fractions`.

        `counts` are the buckets that hold rows, in order, each with its number of rows. Raises ValueError on what is
        no such list; never because of what it holds, also not where it is empty: then every bucket is equally likely.
        """
        source = words or SystemWords()
        held = PlacedRows(counts, self.buckets, self.grain if self.shared else 0, source)
        chosen = [0] * len(self.ordered)
        if self.shared:
            for place, bucket in self._follow(self.tree, held, 0, held.end - 1, held.end, source):
                chosen[place] = bucket
        else:
            branches = [
                self._branch(held, False, 0, held.end - 1, held.end, self._aim(share)) for share in self.ordered
            ]
            chosen = sorted(branch.choose(source) for branch in branches)  # a function of what was chosen
        return [chosen[self.ordered.index(share)] for share in self.fractions]

    def _branch(self, held: PlacedRows, fine: bool, low: int, high: int, stop: int, aim: Aim) -> Branch:
        """A choice among the places low … high, or their buckets, by the rows in the places low … stop − 1."""
        base, top = held.rank(low), held.rank(stop)
        step = 0 if fine else held.grain
        target = base + aim.rank(top - base, self.margin)
        return Branch(held, fine, low >> step, high >> step, base, top, target, self.rate)

    def _follow(
        self, node: Node, held: PlacedRows, low: int, high: int, stop: int, words: Words
    ) -> Iterator[tuple[int, int]]:
        """The choices of a branch and of those below it: which of the fractions, and its bucket."""
        chosen = self._branch(held, node.inner, low, high, stop, node.aim).choose(words)
        yield node.place, chosen >> held.grain if node.inner else chosen
        if node.lower:
            yield from self._follow(node.lower, held, low, chosen, chosen, words)
        if node.upper:
            yield from self._follow(node.upper, held, chosen, high, stop, words)


class PlacedRows:
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

    held: PlacedRows
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


def _levels(tree: Node) -> list[list[Node]]:
    """The nodes by how many choices stand before them."""
    found = []
    level = [tree]
    while level:
        found.append(level)
        level = [child for node in level for child in (node.lower, node.upper) if child]
    return found
