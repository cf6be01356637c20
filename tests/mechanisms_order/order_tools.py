"""Exact output distributions of the mechanisms on ordered data, from their definitions and by brute force."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
from scipy import stats

from discreet.exact import exp_bounds

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


def off(counts: Sequence[int], bucket: int, share: Fraction) -> Fraction:
    """How far the ranks of a bucket are from share·n, by the definition."""
    target = share * sum(counts)
    return max(sum(counts[:bucket]) - target, target - sum(counts[: bucket + 1]), Fraction(0))


def chosen(counts: Sequence[int], share: Fraction, rate: Fraction) -> list[Fraction]:
    """The law of one choice."""
    weights = [decay(rate * off(counts, bucket, share)) for bucket in range(len(counts))]
    return [weight / sum(weights) for weight in weights]


def apart(counts: Sequence[int], shares: Sequence[Fraction], rate: Fraction) -> dict[Hashable, Fraction]:
    """The law of all choices, each from all rows, before they are put in order."""
    laws = [chosen(counts, share, rate) for share in shares]
    return {
        outcome: math.prod((law[at] for law, at in zip(laws, outcome, strict=True)), start=Fraction(1))
        for outcome in product(range(len(counts)), repeat=len(shares))
    }


def in_order(law: Distribution) -> dict[Hashable, Fraction]:
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    for outcome, mass in law.items():
        found[tuple(sorted(outcome))] += mass
    return dict(found)


def shared(counts: Sequence[int], shares: Sequence[Fraction], rate: Fraction, places: int) -> dict[Hashable, Fraction]:
    """The law of choices from branches: rows fall into `places` of their bucket, all ways being equally likely."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    ways: dict[tuple[int, ...], int] = {(): 1}
    for count in counts:
        inside = Counter(
            tuple(drawn.count(place) for place in range(places)) for drawn in product(range(places), repeat=count)
        )
        ways = {(*fine, *more): n * k for fine, n in ways.items() for more, k in inside.items()}
    total = sum(ways.values())
    for fine, number in ways.items():
        for outcome, mass in _follow(fine, tuple(shares), Fraction(0), Fraction(1), rate, places, 0).items():
            found[outcome] += mass * Fraction(number, total)
    return dict(found)


@cache
def _follow(
    fine: tuple[int, ...],
    shares: tuple[Fraction, ...],
    below: Fraction,
    above: Fraction,
    rate: Fraction,
    places: int,
    first: int,
) -> Distribution:
    """A branch: `fine` counts its rows in its places, of which the first has this number."""
    if not shares:
        return {(): Fraction(1)}
    middle = len(shares) // 2
    share = (shares[middle] - below) / (above - below)
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    if len(shares) == 1:
        start = first // places
        coarse = [0] * ((first + len(fine) - 1) // places - start + 1)
        for place, count in enumerate(fine, first):
            coarse[place // places - start] += count
        return {(start + at,): mass for at, mass in enumerate(chosen(coarse, share, rate))}
    for at, mass in enumerate(chosen(fine, share, rate)):
        left = _follow((*fine[:at], 0), shares[:middle], below, shares[middle], rate, places, first)
        right = _follow(fine[at:], shares[middle + 1 :], shares[middle], above, rate, places, first + at)
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
