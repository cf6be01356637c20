"""Exact output distributions of the mechanisms on ordered data, from their definitions and by brute force."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
from scipy import stats

from discreet.trusted.ring_a.exact import exp_bounds

Distribution = Mapping[Hashable, Fraction]

SMALLEST = 1e-6  # a statistical test fails below this


@cache
def decay(exponent: Fraction) -> Fraction:
    """e^(−exponent) to 2^−100, relatively."""
    return sum(exp_bounds(-exponent, 110)) / 2


def at_most(epsilon: Fraction | int) -> Fraction:
    """e^ε, and what the rounding of `decay` may add."""
    return exp_bounds(Fraction(epsilon), 110)[1] * (1 + Fraction(1, 1 << 80))


def ratio(first: Distribution, second: Distribution) -> Fraction | float:
    """The largest probability ratio of an outcome, either way; infinite where only one of the two is possible."""
    if set(first) != set(second):
        return math.inf
    return max(max(mass / second[outcome], second[outcome] / mass) for outcome, mass in first.items())


def spread(first: Distribution, second: Distribution) -> Fraction:
    """The largest over the smallest ratio: e to the range of the logarithms."""
    ratios = [mass / second[outcome] for outcome, mass in first.items()]
    return max(ratios) / min(ratios)


def multisets(buckets: int, most: int) -> list[tuple[int, ...]]:
    """The counts of all multisets of up to so many rows."""
    found = []
    for size in range(most + 1):
        for rows in combinations_with_replacement(range(buckets), size):
            found.append(tuple(rows.count(bucket) for bucket in range(buckets)))
    return found


def neighbours(buckets: int, most: int, rows: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of which the second has up to `rows` rows more, with at most `most` in all."""
    for first in multisets(buckets, most - 1):
        for extra in multisets(buckets, min(rows, most - sum(first))):
            if any(extra):
                yield first, tuple(one + other for one, other in zip(first, extra, strict=True))


# quantiles


@dataclass(frozen=True)
class Ends:
    """From what part of the rows on, and by how many rows, fractions near the ends keep off them."""

    part: Fraction
    rows: Fraction

    def target(self, share: Fraction, rows: int, total: Fraction, before: Fraction) -> Fraction:
        """The rank aimed at among `rows`, which are thought of as `total` of all, with `before` of all before them."""
        own = (share - before) / total * rows
        if share > 1 - self.part:
            return max(min(own, rows - self.rows), max(1 - self.part - before, Fraction(0)) / total * rows)
        if share < self.part:
            return min(max(own, self.rows), min(self.part, total) / total * rows)
        return own


NONE = Ends(Fraction(0), Fraction(0))


def off(counts: Sequence[int], bucket: int, target: Fraction) -> Fraction:
    """How far the ranks of a bucket are from the target, by the definition."""
    return max(sum(counts[:bucket]) - target, target - sum(counts[: bucket + 1]), Fraction(0))


def chosen(counts: Sequence[int], target: Fraction, rate: Fraction) -> list[Fraction]:
    """The law of one choice."""
    weights = [decay(rate * off(counts, bucket, target)) for bucket in range(len(counts))]
    return [weight / sum(weights) for weight in weights]


def apart(
    counts: Sequence[int], shares: Sequence[Fraction], rate: Fraction, ends: Ends = NONE
) -> dict[Hashable, Fraction]:
    """The law of all choices, each from all rows, before they are put in order."""
    targets = [ends.target(share, sum(counts), Fraction(1), Fraction(0)) for share in shares]
    laws = [chosen(counts, target, rate) for target in targets]
    return {
        outcome: math.prod((law[at] for law, at in zip(laws, outcome, strict=True)), start=Fraction(1))
        for outcome in product(range(len(counts)), repeat=len(shares))
    }


def in_order(law: Distribution) -> dict[Hashable, Fraction]:
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    for outcome, mass in law.items():
        found[tuple(sorted(outcome))] += mass
    return dict(found)


def shared(
    counts: Sequence[int], shares: Sequence[Fraction], rate: Fraction, places: int, ends: Ends = NONE
) -> dict[Hashable, Fraction]:
    """The law of choices from branches: rows fall into `places` of their bucket, all ways being equally likely."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    ways: dict[tuple[int, ...], int] = {(): 1}
    for count in counts:
        inside = Counter(
            tuple(drawn.count(place) for place in range(places)) for drawn in product(range(places), repeat=count)
        )
        ways = {(*fine, *more): n * k for fine, n in ways.items() for more, k in inside.items()}
    total = sum(ways.values())
    bounds = (Fraction(0), *shares, Fraction(1))
    for fine, number in ways.items():
        for outcome, mass in _follow(fine, bounds, 1, len(bounds) - 1, rate, places, 0, ends).items():
            found[outcome] += mass * Fraction(number, total)
    return dict(found)


@cache
def _follow(
    fine: tuple[int, ...],
    bounds: tuple[Fraction, ...],
    start: int,
    stop: int,
    rate: Fraction,
    places: int,
    first: int,
    ends: Ends,
) -> Distribution:
    """A branch, of the fractions bounds[start] … bounds[stop − 1]: `fine` counts its rows in its places, of which the
    first has this number. Only the first and the last of all fractions keep off the ends."""
    if start == stop:
        return {(): Fraction(1)}
    last = len(bounds) - 1
    middle = (start + stop - 1) // 2 if stop == last else (start + stop) // 2
    if stop < last and start == 1 and stop - start == 2:
        assert middle == 2  # the first of all is the last of its branch
    share, before, width = bounds[middle], bounds[start - 1], bounds[stop] - bounds[start - 1]
    own = ends if middle in (1, last - 1) else NONE
    target = own.target(share, sum(fine), width, before)
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    if stop - start == 1:
        lowest = first // places
        coarse = [0] * ((first + len(fine) - 1) // places - lowest + 1)
        for place, count in enumerate(fine, first):
            coarse[place // places - lowest] += count
        return {(lowest + at,): mass for at, mass in enumerate(chosen(coarse, target, rate))}
    for at, mass in enumerate(chosen(fine, target, rate)):
        left = _follow((*fine[:at], 0), bounds, start, middle, rate, places, first, ends)
        right = _follow(fine[at:], bounds, middle + 1, stop, rate, places, first + at, ends)
        for one, other in product(left, right):
            found[(*one, (first + at) // places, *other)] += mass * left[one] * right[other]
    return dict(found)


# draws


def goodness(drawn: Iterable[Hashable], expected: Distribution) -> float:
    """The p-value of a chi-square test; outcomes expected fewer than ten times, and unknown ones, are one class."""
    seen = Counter(drawn)
    size = sum(seen.values())
    large = [outcome for outcome, mass in expected.items() if mass * size >= 10]
    observed, means = [seen[outcome] for outcome in large], [float(expected[outcome] * size) for outcome in large]
    rest, left = size - sum(observed), size - sum(means)
    if left >= 10:
        observed, means = [*observed, rest], [*means, left]
    else:
        if rest >= 60:  # next to impossible: left is the mean
            return 0.0
        means = [mean * (size - rest) / sum(means) for mean in means]
    return float(stats.chisquare(observed, np.array(means) * sum(observed) / sum(means)).pvalue)
