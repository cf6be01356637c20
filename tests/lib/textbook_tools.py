"""Exact output distributions as fractions, and how far apart two of them are."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
from scipy import stats

from discreet.trusted.ring_a.exact import exp_bounds

Distribution = Mapping[Hashable, Fraction]

SMALLEST = 1e-6  # a statistical test fails below this


# how far two distributions are apart


def ratio(first: Distribution, second: Distribution) -> Fraction | float:
    """The largest probability ratio of an outcome, either way; infinite where only one of the two is possible."""
    worst: Fraction | float = Fraction(1)
    for outcome in {*first, *second}:
        one, other = first.get(outcome, Fraction(0)), second.get(outcome, Fraction(0))
        if one and other:
            worst = max(worst, one / other, other / one)
        elif one or other:
            return math.inf
    return worst


def surely(first: Distribution, second: Distribution) -> Fraction:
    """A ratio that is exceeded, when each distribution lacks some outcomes: what is missing may have gone anywhere."""
    worst = Fraction(1)
    for one, other in ((first, second), (second, first)):
        missing = 1 - sum(other.values())
        for outcome, mass in one.items():
            if other.get(outcome, 0) + missing:
                worst = max(worst, mass / (other.get(outcome, Fraction(0)) + missing))
    return worst


def hockey_stick(first: Distribution, second: Distribution, factor: Fraction) -> Fraction:
    """The least δ for which first(S) ≤ factor·second(S) + δ for every set S, and the same with the two exchanged."""
    return max(
        sum((max(Fraction(0), one.get(x, 0) - factor * other.get(x, 0)) for x in {*one, *other}), Fraction(0))
        for one, other in ((first, second), (second, first))
    )


def exp_above(x: Fraction | int) -> Fraction:
    """e^x and a hair more: what a loss of at most x, drawn to within 2^−100, may reach."""
    return exp_bounds(Fraction(x), 150)[1] * (1 + Fraction(1, 1 << 100))


def exp_below(x: Fraction | int) -> Fraction:
    return exp_bounds(Fraction(x), 150)[0]


# distributions


def normalised(weights: Sequence[Fraction | int]) -> dict[Hashable, Fraction]:
    """Place i with probability proportional to weights[i]: the exponential mechanism."""
    total = sum(weights)
    return {place: Fraction(weight, total) for place, weight in enumerate(weights)}


def permute_and_flip(chances: Sequence[Fraction]) -> dict[Hashable, Fraction]:
    """One of the heads, uniformly: place i with probability w_i · ∫₀¹ Π_{j ≠ i} (1 − w_j·t) dt."""
    found: dict[Hashable, Fraction] = {}
    for place, chance in enumerate(chances):
        polynomial = [Fraction(1)]
        for other in (*chances[:place], *chances[place + 1 :]):
            shifted = [Fraction(0), *(-other * term for term in polynomial)]
            polynomial = [one + two for one, two in zip([*polynomial, Fraction(0)], shifted, strict=True)]
        found[place] = chance * sum(term / (power + 1) for power, term in enumerate(polynomial))
    return found


def flipping_in_order(chances: Sequence[Fraction]) -> dict[Hashable, Fraction]:
    """The same by its definition: every order, the first head."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    orders = list(permutations(range(len(chances))))
    for order in orders:
        left = Fraction(1, len(orders))
        for place in order:
            found[place] += left * chances[place]
            left *= 1 - chances[place]
    return dict(found)


def geometric(q: Fraction, reach: int) -> dict[int, Fraction]:
    """(1 − q)·q^k up to `reach`; what is beyond is left out."""
    return {k: (1 - q) * q**k for k in range(reach + 1)}


def two_sided(q: Fraction, reach: int) -> dict[int, Fraction]:
    """(1 − q)/(1 + q)·q^|k| up to ±`reach`; what is beyond is left out."""
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def played(
    decide: Callable[[tuple[int, ...]], Hashable], noises: Iterable[Mapping[int, Fraction]]
) -> dict[Hashable, Fraction]:
    """The distribution of what is decided from independent noise values: all of them, one by one."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    for drawn in product(*(noise.items() for noise in noises)):
        found[decide(tuple(value for value, _ in drawn))] += math.prod((mass for _, mass in drawn), start=Fraction(1))
    return dict(found)


def lead(counts: Sequence[int], keys: Sequence[int], q: Fraction, gaps: int) -> dict[Hashable, Fraction]:
    """P(place, gap) for gap < `gaps` of report noisy max with geometric noise, in closed form (see `NoisyMax`).

    (1 − q)·Σ_{m ≥ s} q^(m − s)·f(m) with s = c_i − g and f(m) = F(m) − F(m − 1) is, summed by parts, (1 − q)·((1 − q)·
    Σ_{m ≥ s} q^(m − s)·F(m) − F(s − 1)).
    """
    found: dict[Hashable, Fraction] = {}
    for place, count in enumerate(counts):
        rivals = [other + (keys[j] > keys[place]) for j, other in enumerate(counts) if j != place]
        for gap in range(gaps):
            start = count - gap
            total = _decayed(rivals, start, q)
            found[place, gap] = (1 - q) * ((1 - q) * total - _below(rivals, start - 1, q))
    return found


def lead_place(counts: Sequence[int], keys: Sequence[int], q: Fraction) -> dict[Hashable, Fraction]:
    """The same without the gap: P(place) = (1 − q)·Σ_k q^k·F(c_i + k)."""
    found: dict[Hashable, Fraction] = {}
    for place, count in enumerate(counts):
        rivals = [other + (keys[j] > keys[place]) for j, other in enumerate(counts) if j != place]
        found[place] = (1 - q) * _decayed(rivals, count, q)
    return found


def _below(rivals: Sequence[int], top: int, q: Fraction) -> Fraction:
    """The probability that no rival plus noise is above `top`."""
    return math.prod((1 - q ** max(0, top - rival + 1) for rival in rivals), start=Fraction(1))


def _decayed(rivals: Sequence[int], start: int, q: Fraction) -> Fraction:
    """Σ_{m ≥ start} q^(m − start)·F(m): term by term below the largest rival, and from there by expanding F."""
    level = max(start, *rivals)
    total = sum((q ** (m - start) * _below(rivals, m, q) for m in range(start, level)), Fraction(0))
    for size in range(len(rivals) + 1):
        for some in combinations(rivals, size):
            power = math.prod((q ** (level - rival + 1) for rival in some), start=Fraction(1))
            total += (-1) ** size * q ** (level - start) * power / (1 - q ** (1 + size))
    return total


def averaged(of: Callable[[tuple[int, ...]], Distribution], size: int) -> dict[Hashable, Fraction]:
    """The mean over all orders of ties."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    for keys in permutations(range(size)):
        for outcome, mass in of(keys).items():
            found[outcome] += mass / math.factorial(size)
    return dict(found)


def changes(size: int, *steps: int) -> Iterable[tuple[int, ...]]:
    """What one person can do to `size` scores: each moves by one of the steps."""
    return product(steps, repeat=size)


def moved(scores: Sequence[int], change: Sequence[int]) -> tuple[int, ...]:
    return tuple(score + step for score, step in zip(scores, change, strict=True))


# draws


def goodness(drawn: Iterable[Hashable], expected: Distribution) -> float:
    """The p-value of a chi-square test; outcomes expected fewer than ten times, and all unknown ones, are one class."""
    seen = Counter(drawn)
    size = sum(seen.values())
    large = [outcome for outcome, mass in expected.items() if mass * size >= 10]
    rest = size - sum(seen[outcome] for outcome in large)
    left = float((1 - sum(expected[outcome] for outcome in large)) * size)
    if left < 10:  # too few for a class of their own: added to the likeliest
        likeliest = max(large, key=lambda outcome: expected[outcome])
        seen[likeliest], rest, extra = seen[likeliest] + rest, 0, left
    else:
        likeliest, extra = None, 0.0
    observed = [seen[outcome] for outcome in large]
    means = [float(expected[outcome] * size) + (extra if outcome == likeliest else 0) for outcome in large]
    if likeliest is None:
        observed, means = [*observed, rest], [*means, left]
    return float(stats.chisquare(observed, np.array(means) * size / sum(means)).pvalue)


def power(right: Distribution, wrong: Distribution, size: int) -> float:
    """The probability that `size` draws from `wrong` fail the test above for `right`, by the noncentral chi-square."""
    distance = sum(float(wrong.get(x, 0) - mass) ** 2 / float(mass) for x, mass in right.items() if mass * size >= 10)
    freedom = len(right) - 1
    return float(stats.ncx2.sf(stats.chi2.isf(SMALLEST, freedom), freedom, size * distance))
