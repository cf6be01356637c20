"""Private group keys: a group is shown only if the noisy number of its persons reaches a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet import accounting
from discreet.exact import exp_bounds
from discreet.mechanisms.additive import Laplace


@dataclass(frozen=True)
class LaplaceThreshold:
    """Shows a group if its number of distinct persons plus discrete Laplace noise is at least `threshold`.

    Only groups that hold somebody's rows are looked at: the others cannot appear. The noisy numbers stay behind.

    Neighbours: one person added or removed, who touches at most `cells` groups, each by 1.
    Privacy: groups that hold other persons too exist in both tables; for them the noisy numbers are a Laplace release
    of ℓ1 sensitivity `cells`, pure with epsilon = cells/scale, and what is shown is post-processing. A group that the
    person alone fills exists in one table only; it is shown with probability P(1 + X ≥ threshold). With q =
    exp(−1/scale), P(X ≥ j) = q^j/(1 + q) for j ≥ 1 and threshold = j + 1. If that is at most delta/cells, a union
    bound over at most `cells` such groups gives delta: but for an event of probability delta the release is ε-DP.
    """

    scale: Fraction
    threshold: int
    cells: int
    delta: Fraction

    name = "Laplace threshold"

    def loss(self) -> accounting.Approximate:
        return accounting.Approximate(self.cells / self.scale, self.delta)

    def release(self, persons: Sequence[int]) -> list[bool]:
        """Which groups are shown, for the exact numbers of persons, each at least 1."""
        if any(count < 1 for count in persons):
            raise ValueError("a group that nobody touches has no key to show")
        return [noisy >= self.threshold for noisy in Laplace(self.scale).release(persons)]

    def describe(self) -> str:
        return f"groups shown from about {self.threshold} persons, noise of scale {float(self.scale):.6g}"


def laplace_threshold(epsilon: Fraction, delta: Fraction, cells: int) -> LaplaceThreshold:
    """The lowest threshold that is (epsilon, delta)-DP when a person touches at most `cells` groups.

    delta/cells is compared with an upper bound of q^j/(1 + q) in rationals, so the threshold is never too low.
    """
    if not 0 < delta < 1:
        raise ValueError("a threshold needs 0 < delta < 1")
    scale = cells / epsilon
    share = delta / cells

    def safe(j: int) -> bool:
        exponent = -j / scale
        if exponent < -1_000_000:
            return True
        # q^j/(1+q) with q^j from above and q from below
        q_low = exp_bounds(-1 / scale, 200)[0] if 1 / scale <= 1_000_000 else Fraction(0)
        return exp_bounds(exponent, 200)[1] / (1 + q_low) <= share

    low, high = 0, 1  # the least safe j lies in (low, high]: the probability falls as j grows
    while not safe(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if safe(middle) else (middle, high)
    return LaplaceThreshold(scale, high + 1, cells, delta)
