"""Partition selection by a threshold: a group is shown only if its noisy number of persons reaches a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.additive import Gaussian, Laplace, hold_width
from discreet.trusted.ring_a.exact import exp_bounds, normal_cdf_bounds, sqrt_ceiling
from discreet.trusted.ring_a.loss import Approximate, EquivalentGaussian


@dataclass(frozen=True)
class Threshold:
    """Shows a group, with its noisy number of distinct persons, if that number is at least `threshold`.

    Only groups that hold somebody's rows are looked at: the others cannot appear. One draw of the noise serves both:
    which groups are shown, and how many persons are said to be in them.

    Neighbours: one person added or removed, who touches at most `cells` groups, each by 1.
    Privacy: let P be the release with the person and Q without. Groups that hold other persons too exist in both
    tables; what is shown of them, keys and noisy numbers, is post-processing of a release of their numbers with this
    noise: with discrete Laplace noise of ℓ1 sensitivity `cells`, ε-DP with ε = cells/scale; with rounded Gaussian noise
    of ℓ2 sensitivity √cells, μ-GDP with μ = √cells/sigma. A group that the person alone fills exists in one table only,
    and has a noise X of its own, independent of the others'. It is shown with probability P(1 + X ≥ threshold) =
    P(X ≥ j) for threshold = j + 1, j ≥ 1 (`tail`). If that is at most delta/cells, some such group is shown with a
    probability p ≤ delta. If none is, what is shown is that of the common groups: P = (1 − p)P′ + pP″ with P′ and Q
    ε-close, as `Approximate` says, or at least as hard to tell apart as N(0, 1) and N(μ, 1), as `EquivalentGaussian`
    says.
    """

    noise: Laplace | Gaussian
    threshold: int
    cells: int
    delta: Fraction

    def __post_init__(self) -> None:
        """Raises ValueError where a group of one person would be shown more often than delta says, and where that
        cannot be told exactly."""
        if type(self.noise) not in (Laplace, Gaussian):
            raise ValueError("the noise of a threshold is discrete Laplace or rounded Gaussian")
        hold_width(self.noise.scale if isinstance(self.noise, Laplace) else self.noise.sigma)
        whole = type(self.threshold) is type(self.cells) is int
        if not whole or type(self.delta) is not Fraction or self.delta <= 0:
            raise ValueError("threshold and cells are whole numbers, and delta is a Fraction above 0")
        wrong = self.threshold < 2 or self.cells < 1
        if wrong or tail(self.noise, self.threshold - 1, self.delta / self.cells) > self.delta / self.cells:
            raise ValueError("a group of one person would be shown with a probability above delta")

    def loss(self) -> Approximate | EquivalentGaussian:
        """ε = cells/scale, or μ = √cells/sigma, rounded up; but for an event of probability `delta`."""
        if isinstance(self.noise, Laplace):
            return Approximate(self.cells / self.noise.scale, self.delta)
        return EquivalentGaussian(sqrt_ceiling(self.cells / self.noise.sigma**2), self.delta)

    def counts(self, persons: Sequence[int]) -> list[int | None]:
        """The noisy number of each group that is shown, None for the others. The exact numbers are each at least 1."""
        if any(count < 1 for count in persons):
            raise ValueError("a group must have at least one person")
        return [count if count >= self.threshold else None for count in self.noise.release(persons)]

    def describe(self) -> str:
        """The threshold in persons, and the noise, in words."""
        return f"groups shown from about {self.threshold} persons, {self.noise.describe()}"


def tail(noise: Laplace | Gaussian, j: int, share: Fraction) -> Fraction:
    """The probability that the noise is at least j ≥ 1, from above, as precisely as to tell it from `share`."""
    return laplace_tail(noise.scale, j) if isinstance(noise, Laplace) else gaussian_tail(noise.sigma, j, share)


def laplace_tail(scale: Fraction, j: int) -> Fraction:
    """The probability that discrete Laplace noise is at least j ≥ 1, from above: q^j/(1 + q), q = exp(−1/scale)."""
    exponent = -max(j, 0) / scale
    if exponent < -1_000_000:
        return Fraction(1, 1 << 1_000_000)  # above e^−1000000
    # q^j/(1+q) with q^j from above and q from below
    q_low = exp_bounds(-1 / scale, 200)[0] if 1 / scale <= 1_000_000 else Fraction(0)
    return exp_bounds(exponent, 200)[1] / (1 + q_low)


def gaussian_tail(sigma: Fraction, j: int, share: Fraction) -> Fraction:
    """The probability that rounded Gaussian noise is at least j, from above, as precisely as to tell it from `share`:
    Φ(−(j − 1/2)/sigma)."""
    bits = 64 + (1 / share).__ceil__().bit_length()
    return normal_cdf_bounds(-(j - Fraction(1, 2)) / sigma, bits)[1]
