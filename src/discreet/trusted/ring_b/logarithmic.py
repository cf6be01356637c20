"""Private approximate bounds of a numeric column, from noisy counts of its powers of two (ApproxBounds of
GoogleSQL)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.loss import DiscreteLaplace

_WIDEST = 1100  # the exponents of all doubles lie between −1074 and 1023


@dataclass(frozen=True)
class Edge:
    """An exact bound: sign·2^exponent, or 0 where the sign is 0."""

    sign: int
    exponent: int = 0

    @property
    def value(self) -> Fraction:
        """The bound as an exact fraction."""
        return self.sign * Fraction(2) ** self.exponent


@dataclass(frozen=True)
class Bounds:
    """What is released: low < high, and whether they were found or are the public default."""

    low: Edge
    high: Edge
    found: bool


@dataclass(frozen=True)
class LogarithmicRange:
    """Bounds that hold most values, from noisy counts of the public buckets 0 and ±[2^k, 2^(k+1)).

    Buckets: number 0 for values below 2^lowest in size, j ≥ 1 for 2^(lowest + j − 1) ≤ x < 2^(lowest + j), −j for the
    same with a minus; what is larger than 2^(highest + 1) is put into the last one. They depend on the declaration
    only. The default, −64 … 63, holds all 64-bit integers, and tells numbers down to 5·10^−20 from 0.

    Units: counts, of distinct persons or of rows. Neighbours: one person added or removed, who changes the counts by at
    most `sensitivity` in all: L where persons are counted and one may be in L buckets, R where R rows are.
    Privacy: discrete Laplace noise of scale sensitivity/ε on *every* bucket, empty ones too, is a release of ℓ1
    sensitivity `sensitivity`: pure ε (Dwork & Roth 2014, Theorem 3.6; see `Laplace`). All else is post-processing: no
    group key comes from the data, so no δ is needed, and there is always an answer.

    From noisy counts to bounds. The outermost buckets with at least `bar` are taken; then their outer neighbours one by
    one, as long as each has at least `step`: next to others a bucket needs less to be believed. An empty bucket has at
    least t with probability q^t/(1 + q), q = e^(−1/scale). `bar` holds all N buckets to `miss`/2 together, `step` the
    bucket above all data and the one below to `miss`/4 each. Bounds go beyond the data's own powers of two only if an
    empty bucket outside passes `bar`, or the one next to the data passes `step`: with a probability of at most `miss`.
    If none passes `bar`, the bounds are −1 and 1, whatever the data: fixed, of the unit's own size, and narrow, so that
    a sum clipped to them gets little noise; `found` tells. Few values are then worth bounding from the data.

    Source: the approximate bounds of Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson 2020, which know `bar`
    only.
    """

    epsilon: Fraction
    sensitivity: int = 1
    lowest: int = -64
    highest: int = 63
    miss: Fraction = Fraction(1, 20)

    name = "bounds from a logarithmic histogram"

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ValueError("epsilon must be a Fraction above 0")
        if not all(type(number) is int for number in (self.sensitivity, self.lowest, self.highest)):
            raise ValueError("sensitivity and exponents must be integers")
        if self.sensitivity < 1:
            raise ValueError("sensitivity must be at least 1")
        if not -_WIDEST <= self.lowest <= self.highest <= _WIDEST:
            raise ValueError("exponents must be in order, and those of doubles")
        if not isinstance(self.miss, Fraction) or not 0 < self.miss < 1:
            raise ValueError("miss must be a Fraction between 0 and 1")

    @property
    def last(self) -> int:
        """The number of the highest bucket; the lowest is its negative."""
        return self.highest - self.lowest + 1

    @property
    def noise(self) -> Laplace:
        """The noise on every count."""
        return Laplace(self.sensitivity / self.epsilon)

    @property
    def bar(self) -> int:
        """The noisy count that the first bucket needs."""
        return self._least(float(self.miss) / 2 / (2 * self.last + 1))

    @property
    def step(self) -> int:
        """The noisy count that a bucket next to a chosen one needs."""
        return self._least(float(self.miss) / 4)

    def _least(self, chance: float) -> int:
        """The least t ≥ 1 that an empty bucket reaches with at most this probability. A public number."""
        rate = float(1 / self.noise.scale)
        return max(1, math.ceil(-math.log(chance * (1 + math.exp(-rate))) / rate))

    def loss(self) -> DiscreteLaplace:
        """Of the noisy counts: pure ε. The bounds follow from these and cost nothing more."""
        return self.noise.loss(self.sensitivity)

    def bucket(self, value: float | Fraction) -> int:
        """The number of a value's bucket, exactly: what an engine has to count by. Raises ValueError on NaN."""
        if value != value:
            raise ValueError("value is NaN")
        sign = 1 if value > 0 else -1
        if value in (math.inf, -math.inf):
            return sign * self.last
        top, below = abs(Fraction(value)).as_integer_ratio()
        power = top.bit_length() - below.bit_length()  # 2^(power − 1) < top/below < 2^(power + 1)
        at_least = top >= below << power if power >= 0 else top << -power >= below
        return 0 if not top else sign * min(max(power - (not at_least) - self.lowest + 1, 0), self.last)

    def release(self, counts: Mapping[int, int]) -> Bounds:
        """The bounds for exact counts by number of bucket; buckets that are not named count 0.

        Raises ValueError on a bucket that there is not and on what is no integer; never because of a count's size.
        """
        if any(not -self.last <= number <= self.last for number in counts):
            raise ValueError("no such bucket")
        if not all(type(count) is int for count in counts.values()):
            raise ValueError("counts must be integers")
        exact = [counts.get(number, 0) for number in range(-self.last, self.last + 1)]
        return self.around(self.noise.release(exact))

    def around(self, noisy: Sequence[int]) -> Bounds:
        """The bounds for noisy counts of all buckets in order: a function of what is private already."""
        bar, step = self.bar, self.step
        passed = [place for place, count in enumerate(noisy) if count >= bar]
        if not passed:
            return Bounds(Edge(-1), Edge(1), False)
        low, high = passed[0], passed[-1]
        while low > 0 and noisy[low - 1] >= step:
            low -= 1
        while high + 1 < len(noisy) and noisy[high + 1] >= step:
            high += 1
        lower, upper = self._low(low - self.last), self._high(high - self.last)
        # if all there is lies next to 0, there must still be something between the bounds
        return Bounds(lower, Edge(1, self.lowest) if lower == upper else upper, True)

    def _low(self, number: int) -> Edge:
        """The lower end of a bucket; 0 for the one of the values next to 0, which are then taken for 0."""
        if number == 0:
            return Edge(0)
        return Edge(1, self.lowest + number - 1) if number > 0 else Edge(-1, self.lowest - number)

    def _high(self, number: int) -> Edge:
        """The upper end."""
        lower = self._low(-number)
        return Edge(-lower.sign, lower.exponent)

    def describe(self) -> str:
        """The noise, the number of counts, `bar` and `step` in words."""
        return (
            f"{self.name}: {self.noise.describe()} on each of {2 * self.last + 1} counts; "
            f"bounds hold what lies in buckets of about {self.bar}, or {self.step} next to these"
        )
