"""Partition selection by a threshold: a group is shown only if its noisy number of persons reaches a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.exact import exp_bounds, figure, normal_cdf_bounds, sqrt_ceiling
from discreet.trusted.ring_a.loss import Approximate, EquivalentGaussian


@dataclass(frozen=True)
class LaplaceThreshold:
    """Shows a group, with its noisy number of distinct persons, if that number is at least `threshold`.

    Only groups that hold somebody's rows are looked at: the others cannot appear. The noise is discrete Laplace, and
    one draw of it serves both: which groups are shown, and how many persons are said to be in them.

    Neighbours: one person added or removed, who touches at most `cells` groups, each by 1.
    Privacy: let P be the release with the person and Q without. Groups that hold other persons too exist in both
    tables; what is shown of them, keys and noisy numbers, is post-processing of a Laplace release of ℓ1 sensitivity
    `cells`: ε-DP with ε = cells/scale. A group that the person alone fills exists in one table only, and has a noise of
    its own, independent of the others'. With q = exp(−1/scale), it is shown with probability P(1 + X ≥ threshold) =
    q^j/(1 + q) for threshold = j + 1, j ≥ 1. If that is at most delta/cells, some such group is shown with a
    probability p ≤ delta. If none is, what is shown is that of the common groups: P = (1 − p)P′ + pP″ with P′ and Q
    ε-close, as `Approximate` says.
    """

    scale: Fraction
    threshold: int
    cells: int
    delta: Fraction

    name = "Laplace threshold"

    def __post_init__(self) -> None:
        """Raises ValueError where a group of one person would be shown more often than delta says."""
        _certify(self.threshold, self.cells, self.delta, laplace_tail(self.scale, self.threshold - 1))

    @property
    def noise(self) -> Laplace:
        """What is added to the numbers of persons."""
        return Laplace(self.scale)

    def loss(self) -> Approximate:
        return Approximate(self.cells / self.scale, self.delta)

    def release(self, persons: Sequence[int]) -> list[bool]:
        """Which groups are shown, for the exact numbers of persons, each at least 1."""
        return [noisy is not None for noisy in self.counts(persons)]

    def counts(self, persons: Sequence[int]) -> list[int | None]:
        """The noisy number of each group that is shown; None for the others."""
        return _shown(self.noise.release(_held(persons)), self.threshold)

    def describe(self) -> str:
        return f"groups shown from about {self.threshold} persons, noise of scale {figure(self.scale)}"


@dataclass(frozen=True)
class GaussianThreshold:
    """As `LaplaceThreshold`, with rounded Gaussian noise.

    Neighbours: one person added or removed, who touches at most `cells` groups, each by 1.
    Privacy: the noisy numbers of the groups that exist in both tables are a release of ℓ2 sensitivity √cells, μ-GDP
    with μ = √cells/sigma. A group of one person is shown with probability P(1 + round(N) ≥ threshold) ≤
    Φ(−(threshold − 3/2)/sigma), its noise being independent of the others'. If that is at most delta/cells, then as
    above P = (1 − p)P′ + pP″ with p ≤ delta and P′, Q at least as hard to tell apart as N(0, 1) and N(μ, 1): what
    `EquivalentGaussian` says.
    """

    sigma: Fraction
    threshold: int
    cells: int
    delta: Fraction

    name = "Gaussian threshold"

    def __post_init__(self) -> None:
        """Raises ValueError where a group of one person would be shown more often than delta says."""
        _certify(
            self.threshold,
            self.cells,
            self.delta,
            gaussian_tail(self.sigma, self.threshold - 1, self.delta / self.cells),
        )

    @property
    def noise(self) -> Gaussian:
        """What is added to the numbers of persons."""
        return Gaussian(self.sigma)

    def loss(self) -> EquivalentGaussian:
        return EquivalentGaussian(sqrt_ceiling(self.cells / self.sigma**2), self.delta)

    def release(self, persons: Sequence[int]) -> list[bool]:
        """Which groups are shown, for the exact numbers of persons, each at least 1."""
        return [noisy is not None for noisy in self.counts(persons)]

    def counts(self, persons: Sequence[int]) -> list[int | None]:
        """The noisy number of each group that is shown; None for the others."""
        return _shown(self.noise.release(_held(persons)), self.threshold)

    def describe(self) -> str:
        return f"groups shown from about {self.threshold} persons, Gaussian noise of sigma {figure(self.sigma)}"


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


def _certify(threshold: int, cells: int, delta: Fraction, tail: Fraction) -> None:
    """Raises ValueError unless the tail of one group's noise is at most its share of delta."""
    if threshold < 2 or cells < 1 or tail > delta / cells:
        raise ValueError("a group of one person would be shown with a probability above delta")


def _held(persons: Sequence[int]) -> Sequence[int]:
    if any(count < 1 for count in persons):
        raise ValueError("a group must have at least one person")
    return persons


def _shown(noisy: list[int], threshold: int) -> list[int | None]:
    return [count if count >= threshold else None for count in noisy]
