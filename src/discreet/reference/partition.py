"""Optimal partition selection: each group is shown with the largest probability that privacy allows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.exact import exp_bounds, log_bounds
from discreet.trusted.ring_a.loss import Approximate
from discreet.trusted.ring_b.choice import CERTAIN, coins

BITS = CERTAIN.bit_length() - 1
LONGEST = 1 << 20
_WORK = 256


@dataclass(frozen=True)
class PartitionSelection:
    """Shows a group of n distinct persons with probability π(n), independently of the other groups.

    Units: distinct persons. Neighbours: one person added or removed, who touches at most `cells` groups, each by 1.
    Only groups that hold somebody's rows are looked at; as π(0) = 0, the others never appear.

    Privacy (Desfontaines, Voss, Gipson & Mandayam 2022). Let e = ε/cells and d ≤ 1 − (1 − δ)^(1/cells). For one group
    the outcome is shown or not, and (e, d)-DP says of n and n + 1 persons: π(n + 1) ≤ e^e·π(n) + d, 1 − π(n) ≤ e^e·(1 −
    π(n + 1)) + d, and the two with n and n + 1 exchanged, which hold as π grows. π is the largest such function,
    but for rounding: its values are multiples of 2^−192, rounded down at each step, with a rational below
    e^e in its place; so the inequalities hold exactly. Between neighbours at most `cells` groups differ, independent of
    each other. Each is a mixture that is e-close but for a part of weight d, the same on both tables; all parts are
    avoided with probability (1 − d)^cells ≥ 1 − δ. So but for an event of probability δ the release is ε-DP.

    Sampling: π(n) is a multiple of 2^−192 and the coins are exact, so the distribution is exactly the stated one.
    """

    epsilon: Fraction
    delta: Fraction
    cells: int = 1

    name = "partition selection"

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ValueError("epsilon must be a Fraction above 0")
        if not isinstance(self.delta, Fraction) or not 0 < self.delta < 1:
            raise ValueError("delta must be a Fraction between 0 and 1")
        if self.cells < 1:
            raise ValueError("cells must be at least 1")

    def loss(self) -> Approximate:
        """ε but for an event of probability δ, for all groups of a person together."""
        return Approximate(self.epsilon, self.delta)

    @property
    def table(self) -> tuple[int, ...]:
        """π(0), π(1), … in units of 2^−192, up to the first that is certain."""
        return chances(self.epsilon / self.cells, delta_share(self.delta, self.cells))

    def chance(self, persons: int) -> Fraction:
        """π(persons)."""
        table = self.table
        return Fraction(table[min(max(persons, 0), len(table) - 1)], CERTAIN)

    def release(self, persons: Sequence[int], words: Words | None = None) -> list[bool]:
        """Which groups are shown, for the exact numbers of persons, each at least 1."""
        if any(count < 1 for count in persons):
            raise ValueError("a group must have at least one person")
        table = self.table
        last = len(table) - 1
        shown: list[bool] = coins(words or SystemWords(), [table[min(count, last)] for count in persons]).tolist()
        return shown

    def describe(self) -> str:
        """In words, from how many persons on a group is shown at least half the time, and from how many always."""
        table = self.table
        half = bisect_left(table, CERTAIN // 2)
        return f"groups of {half} persons shown at least half the time, of {len(table) - 1} always"


def delta_share(delta: Fraction, cells: int) -> int:
    """A d with 1 − (1 − d)^cells ≤ delta, in units of 2^−192, rounded down.

    The larger of delta/cells (Bernoulli's inequality) and 1 − (1 − delta)^(1/cells) from an upper bound of the root.
    """
    root = exp_bounds(log_bounds(1 - delta, 100)[1] / cells, 300)[1] if cells > 1 else 1 - delta
    return int(max(delta / cells, 1 - root) * CERTAIN)


@lru_cache(maxsize=32)
def chances(epsilon: Fraction, delta: int) -> tuple[int, ...]:
    """π for one group, from π(0) = 0 to the first π(n) = 1, in units of 2^−192; `delta` in the same units.

    π(n + 1) = min(E·π(n) + δ, 1 − (1 − π(n) − δ)/E, 1) with a rational E ≤ e^ε, rounded down. Each value is at most the
    true one, which grows with E and with the value before; it never falls, as each part of the minimum is at least
    π(n), a multiple of the unit.
    """
    if delta < 1:
        raise ValueError("delta is too small: below 2^−192 a group")
    low, _ = exp_bounds(min(epsilon, Fraction(100)), _WORK)
    factor = (low.numerator << _WORK) // low.denominator
    values = [0]
    while values[-1] < CERTAIN:
        if len(values) > LONGEST:
            raise ValueError("epsilon is too small: no group of a million persons would be sure to be shown")
        rising = (factor * values[-1] >> _WORK) + delta
        missing = max(0, CERTAIN - values[-1] - delta)
        values.append(min(rising, CERTAIN - -(-(missing << _WORK) // factor)))
    return tuple(values)
