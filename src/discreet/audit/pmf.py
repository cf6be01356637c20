"""The exact distributions of the mechanisms, computed independently from their definitions.

Two things are held against them: the claim, by comparing the distributions of neighbours, and the draws. Doubles are
enough: values are right to 1e-12 of themselves unless something else is said, and a finding needs more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

Distribution = Mapping[Hashable, float]
Floats = NDArray[np.float64]

Law = Callable[[int], float]
"""P(X ≤ k) of a random integer."""


def laplace_law(scale: float) -> Law:
    """Discrete Laplace: P(X > k) = q^(k+1)/(1 + q) for k ≥ 0, and the mirror image."""
    q = math.exp(-1 / scale)

    def below(k: int) -> float:
        return 1 - math.exp(-(k + 1) / scale) / (1 + q) if k >= 0 else math.exp(k / scale) / (1 + q)

    return below


def gaussian_law(sigma: float) -> Law:
    """A normal variable rounded to the nearest integer."""
    return lambda k: math.erfc(-(k + 0.5) / (sigma * math.sqrt(2))) / 2


def laplace(scale: float, exact: int, reach: int) -> dict[Hashable, float]:
    """P(exact + X = x) for −reach ≤ x ≤ reach; what lies outside is left out."""
    q = math.exp(-1 / scale)
    return {x: (1 - q) / (1 + q) * math.exp(-abs(x - exact) / scale) for x in range(-reach, reach + 1)}


def shared(scale: float, shares: int, exact: int, reach: int) -> dict[Hashable, float]:
    """P(exact + X = x) for −reach ≤ x ≤ reach, where X is a sum of `shares` differences of negative binomial values
    with r = 1/shares and q = e^(−1/scale)."""
    far = 3 * reach
    one = [(1 - math.exp(-1 / scale)) ** (1 / shares)]
    for n in range(1, far + 1):
        one.append(one[-1] * math.exp(-1 / scale) * (n - 1 + 1 / shares) / n)
    both = np.convolve(one, one[::-1])
    found = both
    for _ in range(shares - 1):
        found = np.convolve(found, both)
    middle = len(found) // 2 - exact
    return {x: float(found[middle + x]) for x in range(-reach, reach + 1)}


def gaussian(sigma: float, exact: int, reach: int) -> dict[Hashable, float]:
    """The same for the rounded normal variable, each tail computed on its own side."""

    def mass(distance: int) -> float:
        far = abs(distance)
        root = sigma * math.sqrt(2)
        return (math.erfc((far - 0.5) / root) - math.erfc((far + 0.5) / root)) / 2

    return {x: mass(x - exact) for x in range(-reach, reach + 1)}


def shown(chances: Sequence[float]) -> dict[Hashable, float]:
    """Which groups are shown, each by its own coin."""
    found: dict[Hashable, float] = {}
    for outcome in product((False, True), repeat=len(chances)):
        found[outcome] = math.prod(
            chance if heads else 1 - chance for heads, chance in zip(outcome, chances, strict=True)
        )
    return found


def exponential(rate: float, scores: Sequence[int]) -> dict[Hashable, float]:
    """Place i with probability proportional to e^(rate·score)."""
    best = max(scores)
    weights = [math.exp(rate * (score - best)) for score in scores]
    total = math.fsum(weights)
    return {place: weight / total for place, weight in enumerate(weights)}


def permute_and_flip(rate: float, scores: Sequence[int]) -> dict[Hashable, float]:
    """In every order of the candidates, the first whose coin shows heads."""
    best = max(scores)
    chances = [math.exp(rate * (score - best)) for score in scores]
    found: dict[Hashable, float] = defaultdict(float)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for place in order:
            found[place] += left * chances[place]
            left *= 1 - chances[place]
    return dict(found)


def top_k(rate: float, k: int, scores: Sequence[int]) -> dict[Hashable, float]:
    """The exponential mechanism k times, each time over those not yet chosen."""
    found: dict[Hashable, float] = {(): 1.0}
    for _ in range(k):
        longer: dict[Hashable, float] = {}
        for chosen, mass in found.items():
            assert isinstance(chosen, tuple)
            left = [place for place in range(len(scores)) if place not in chosen]
            for index, chance in exponential(rate, [scores[place] for place in left]).items():
                assert isinstance(index, int)
                longer[*chosen, left[index]] = mass * chance
        found = longer
    return found


def lead(rate: float, counts: Sequence[int], gaps: int) -> dict[Hashable, float]:
    """Place and gap (below `gaps`) of report noisy max with geometric noise, from its definition.

    For each order of ties: i wins by the gap g if its noisy count is g above R, the least with which it would win.
    P(R ≤ r) = Π_j P(c_j + [j comes before i] + G_j ≤ r). Sums reach to where e^(−rate·k) < 1e−17.
    """
    q, reach = math.exp(-rate), math.ceil(40 / rate)
    noise = np.arange(reach)
    masses = (1 - q) * q**noise
    found: dict[Hashable, float] = defaultdict(float)
    orders = list(permutations(range(len(counts))))
    for order in orders:
        for place, count in enumerate(counts):
            rivals = [other + (order[j] > order[place]) for j, other in enumerate(counts) if j != place]

            def below(r: Floats, rivals: Sequence[int] = rivals) -> Floats:
                each = [1 - q ** np.maximum(0.0, r - rival + 1) for rival in rivals]
                below_all: Floats = np.prod(each, axis=0)
                return below_all

            for gap in range(gaps):
                r = (count - gap + noise).astype(float)
                chance = float(np.sum(masses * (below(r) - below(r - 1))))
                found[place, gap] += chance / len(orders)
    return dict(found)


def replies(threshold: int, scales: tuple[float, float], limit: int, answers: Sequence[int]) -> dict[Hashable, float]:
    """What above threshold says of these answers, with two-sided noise: a sum over the noise of the threshold."""
    first, second = scales
    reach = math.ceil(40 * first)
    places = np.arange(-reach, reach + 1)
    q, r = math.exp(-1 / first), math.exp(-1 / second)
    found: dict[Hashable, Floats] = {(): (1 - q) / (1 + q) * q ** np.abs(places)}
    for answer in answers:
        needed = threshold + places - answer
        tail = r ** np.maximum(needed, 1.0) / (1 + r)
        yes = np.where(needed > 0, tail, 1 - r ** (1.0 - np.minimum(needed, 0)) / (1 + r))
        longer: dict[Hashable, Floats] = {}
        for said, masses in found.items():
            assert isinstance(said, tuple)
            if sum(said) == limit:
                longer[said] = masses
            else:
                longer[*said, True] = masses * yes
                longer[*said, False] = masses * (1 - yes)
        found = longer
    return {said: float(np.sum(masses)) for said, masses in found.items()}
