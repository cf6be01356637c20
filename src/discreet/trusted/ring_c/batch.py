"""Composition of a declared batch of releases: ε at δ and δ at ε, bounded from above and below.

A batch is fixed before any of its releases is made. Then, whatever order its releases are made in and whatever each
answer is, what remains bounds the rest by the same product of dominating pairs, so the batch has the privacy loss of
all of them added (Dong, Roth & Su 2019, Theorem 3.2; stopping early is post-processing). An analyst who chooses what
to ask next, or at which price, is not covered: that is what the filter is for.

Every law has a pessimistic estimate on a lattice, which tells at least as much, and an optimistic one, which tells no
more (`privacy_loss`); their sums by Fourier transform, with bounded errors (`convolve`), enclose the truth. Gaussian
releases add to one, exactly. This is floating point: the bounds hold as far as the machine's `exp`, `log` and `erfc`
are right within the 16 units in the last place that `privacy_loss` takes them to be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from discreet.trusted.ring_a.curves import delta_bounds
from discreet.trusted.ring_a.exact import Number, fraction
from discreet.trusted.ring_a.loss import (
    Approximate,
    Batch,
    DiscreteLaplace,
    EquivalentGaussian,
    GaussianLoss,
    Loss,
    Pure,
)
from discreet.trusted.ring_b.further_losses import BoundedRange, LaplaceLoss, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_c.convolve import ConvolutionPlan, PrivacyLosses, Sum, add
from discreet.trusted.ring_c.privacy_loss import Bounded, Normal, PrivacyLoss, Ranged, SubsampledGaussianLoss
from discreet.trusted.ring_c.search_window import locate

_UP, _DOWN = 1 + 1e-12, 1 - 1e-12
_LARGE, _STEEP = 400, 32
_COARSE, _ROUGH = 4, 8


def compose(losses: Iterable[Loss] | Mapping[Loss, int]) -> Composition:
    """The batch of these losses, or of each loss as often as the mapping says.

    Of a release that is only known to be ε-DP the law is randomised response's, of one of bounded range `Ranged`: they
    tell the most, and the lower ends are theirs.
    Raises ValueError on a loss of which only ρ is known: between the pairs of distributions with that ρ there is none
    that tells the most, so no distribution of the loss follows from it.
    """
    counts: Counter[Loss] = Counter()
    for loss, count in (losses if isinstance(losses, Mapping) else Counter(losses)).items():
        if count < 0:
            raise ValueError("a number of releases must not be negative")
        for part in loss.parts if isinstance(loss, Batch) else (loss,):
            if isinstance(part, ZeroConcentrated):
                raise ValueError("a zCDP event cannot be composed by privacy-loss distribution")
            counts[part] += count
    return Composition(tuple((loss, count) for loss, count in counts.items() if count))


@dataclass(frozen=True)
class Composition:
    """A declared batch: each loss and how often it occurs.

    Where the two directions differ, adding a person mostly costs far less than removing one: a coarse upper bound that
    stays below what the first direction needs then settles the second.
    """

    losses: tuple[tuple[Loss, int], ...]

    def epsilon(self, delta: Number) -> float:
        """An ε such that the whole batch is (ε, δ)-DP. Infinite where none was found."""
        return self.epsilon_bounds(delta, lower=False)[1]

    def rough_epsilon(self, delta: Number) -> float:
        """As `epsilon`, a little larger, in a part of the time: for a search."""
        return self._epsilon_bounds(fraction(delta), lower=False, coarse=True)[1]

    def delta(self, epsilon: Number) -> float:
        """A δ such that the whole batch is (ε, δ)-DP."""
        return self.delta_bounds(epsilon, lower=False)[1]

    def delta_bounds(self, epsilon: Number, lower: bool = True) -> tuple[float, float]:
        """Two numbers around the least δ at this ε; `lower=False` saves the work for the first and gives 0."""
        exact = fraction(epsilon)
        if exact < 0:
            raise ValueError("epsilon must not be negative")
        if self.too_large:
            high = self.infinity_mass * _UP if self.pure is not None and self.pure <= exact else 1.0
            return 0.0, high
        if self.only_gaussian is not None:
            low, high = _gaussian_delta(exact, self.only_gaussian)
            return self._joined(low * _DOWN, _DOWN), self._joined(high * _UP, _UP)
        low = high = 0.0
        plan: ConvolutionPlan | None = None
        for laws in self.directions:
            if plan and self._above(laws, plan.coarser(_COARSE)).delta(float(exact)) <= high:
                continue
            rough, theta = locate(laws, epsilon=float(exact))
            plan = rough.plan(theta, float(exact))
            high = max(high, self._above(laws, plan).delta(float(exact)))
            if lower:
                low = max(low, self._below(laws, plan).delta(float(exact)))
        if self.pure is not None and self.pure <= exact:
            high = min(high, self.infinity_mass * _UP)
        return min(low, high), high

    def epsilon_bounds(self, delta: Number, lower: bool = True) -> tuple[float, float]:
        """Two numbers around the least ε at this δ; `lower=False` saves the work for the first and gives 0."""
        return self._epsilon_bounds(fraction(delta), lower, coarse=False)

    def _epsilon_bounds(self, exact: Fraction, lower: bool, coarse: bool) -> tuple[float, float]:
        if not 0 <= exact <= 1:
            raise ValueError("delta is a probability")
        target = float(exact) * _DOWN
        covered = self.infinity_mass * _UP <= float(exact)
        most = float(self.pure) * _UP if self.pure is not None and covered else math.inf
        if self.only_gaussian == 0 and covered:
            return 0.0, 0.0
        if target <= self.infinity_mass or self.too_large:
            return 0.0, most
        if self.only_gaussian is not None:
            return _gaussian_epsilon(self._without_infinity_mass(target), self.only_gaussian, lower)
        low = high = 0.0
        plan: ConvolutionPlan | None = None
        for laws in self.directions:
            if plan and self._above(laws, plan.coarser(_COARSE)).delta(high) <= target:
                continue
            rough, theta = locate(laws, delta=target)
            plan = rough.plan(theta)
            plan = plan.coarser(_ROUGH) if coarse else plan
            high = max(high, _least(self._above(laws, plan), target, plan.step))
            if lower:
                low = max(low, _most(self._below(laws, plan), float(exact) * _UP, plan.step))
        high = min(high, most)
        return min(low, high), high

    @cached_property
    def pure(self) -> Fraction | None:
        """The sum of all ε, where each release has one."""
        found = [(loss.pure, count) for loss, count in self.losses]
        return sum((fraction(pure or 0) * n for pure, n in found), Fraction(0)) if _all_finite(found) else None

    @cached_property
    def _gaussian(self) -> float:
        """All Gaussian releases add to one, μ² = Σ μᵢ²."""
        squares = (fraction(loss.mu) ** 2 * count for loss, count in self.losses if isinstance(loss, GaussianLoss))
        return math.sqrt(sum(squares, Fraction(0)))

    @property
    def only_gaussian(self) -> float | None:
        """That μ where there is nothing else but certain outcomes; None elsewhere."""
        return None if self._others else self._gaussian

    @property
    def too_large(self) -> bool:
        """A loss so large that only its bound matters, or beyond what the lattice's error bounds are stated for."""
        steep = any(isinstance(loss, SubsampledGaussian) and loss.sigma * _STEEP < 1 for loss, _ in self.losses)
        large = any(loss.pure is not None and loss.pure > _LARGE for loss, _ in self.losses)
        return large or steep or (self.only_gaussian is None and self._gaussian > _STEEP)

    @cached_property
    def _others(self) -> list[tuple[Loss, int]]:
        return [item for item in self.losses if not isinstance(item[0], GaussianLoss) and not _tells_nothing(item[0])]

    @cached_property
    def infinity_mass(self) -> float:
        """1 − Π(1 − δᵢ) over the releases that promise nothing with probability δᵢ, as those do that find keys."""
        found = [(loss, n) for loss, n in self.losses if isinstance(loss, (Approximate, EquivalentGaussian))]
        if any(loss.delta == 1 for loss, _ in found):
            return 1.0
        return -math.expm1(math.fsum(math.log1p(-float(loss.delta)) * n for loss, n in found))

    def _joined(self, delta: float, side: float) -> float:
        return min(1.0, max(0.0, delta + self.infinity_mass * (1 - delta) * side))

    def _without_infinity_mass(self, delta: float) -> float:
        return (delta - self.infinity_mass * _UP) / (1 - self.infinity_mass)

    def _above(self, laws: PrivacyLosses, plan: ConvolutionPlan) -> Sum:
        return self._with_infinity_mass(add(laws, plan, upward=True), _UP)

    def _below(self, laws: PrivacyLosses, plan: ConvolutionPlan) -> Sum:
        return self._with_infinity_mass(add(laws, plan, upward=False), _DOWN)

    def _with_infinity_mass(self, found: Sum, side: float) -> Sum:
        keep = 1 - self.infinity_mass
        return replace(found, mass=found.mass * keep * side, infinity_mass=self._joined(found.infinity_mass, side))

    @property
    def directions(self) -> list[PrivacyLosses]:
        """The laws with the person in the first table only, and in the second only where that is another thing."""
        found: list[PrivacyLosses] = []
        for removed in (True, False):
            laws = [_law(loss, count, removed) for loss, count in self._others]
            found.append([*laws, (Normal(self._gaussian), 1)] if self._gaussian else laws)
        return found if found[0] != found[1] else found[:1]


def _all_finite(found: list[tuple[Fraction | None, int]]) -> bool:
    return all(pure is not None for pure, _ in found)


def _tells_nothing(loss: Loss) -> bool:
    return loss.pure == 0 or (isinstance(loss, DiscreteLaplace) and loss.sensitivity == 0)


def _law(loss: Loss, count: int, removed: bool) -> tuple[PrivacyLoss, int]:
    if isinstance(loss, SubsampledGaussian):
        return SubsampledGaussianLoss(
            float(loss.sigma), float(loss.rate), float(1 - loss.rate), removed
        ), count * loss.steps
    if isinstance(loss, BoundedRange):
        return Ranged(float(loss.epsilon)), count
    if isinstance(loss, DiscreteLaplace):
        return Bounded(float(loss.epsilon), loss.sensitivity), count
    if not isinstance(loss, (Pure, Approximate)):
        raise ValueError("the loss distribution of this event is not known")
    return Bounded(float(loss.epsilon), None if isinstance(loss, LaplaceLoss) else 1), count


def _least(found: Sum, delta: float, step: float) -> float:
    """The least ε ≥ 0, nearly, whose upper bound on δ is at most this."""
    if found.infinity_mass >= delta:
        return math.inf
    epsilon, move = max(0.0, found.near(delta)), step * 1e-9
    if found.delta(0.0) <= delta:
        return 0.0
    while found.delta(epsilon) > delta:
        epsilon, move = epsilon + move, move * 4
    return epsilon


def _most(found: Sum, delta: float, step: float) -> float:
    """The largest ε, nearly, whose lower bound on δ is still above this."""
    epsilon, move = found.near(delta), step * 1e-9
    while epsilon > 0 and found.delta(epsilon) <= delta:
        epsilon, move = epsilon - move, move * 4
    return max(0.0, epsilon)


def _gaussian_delta(epsilon: Fraction, mu: float) -> tuple[float, float]:
    if mu == 0:
        return 0.0, 0.0
    rounded = 1 + Fraction(1, 1 << 50)
    return float(delta_bounds(epsilon, Fraction(mu) / rounded)[0]), float(
        delta_bounds(epsilon, Fraction(mu) * rounded)[1]
    )


def _gaussian_epsilon(delta: float, mu: float, lower: bool) -> tuple[float, float]:
    """Bisection in floating point, then the certified curve a little to either side. 0 < δ < 1.

    A large ε comes from δ(ε) ≤ Φ(μ/2 − ε/μ) ≤ e^(−z²/2)/2 with z = ε/μ − μ/2.
    """
    if _gaussian_delta(Fraction(0), mu)[1] <= delta:
        return 0.0, 0.0
    simple = mu * mu / 2 + mu * math.sqrt(max(0.0, 2 * math.log(1 / (2 * delta))))
    if simple > 600:
        return 0.0, simple * _UP
    low, high = 0.0, max(simple, 1e-300)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_guess(middle, mu) > delta else (low, middle)
    margin = 1e-14
    while _gaussian_delta(Fraction(high * (1 + margin)), mu)[1] > delta:
        margin *= 4
    upper, margin = high * (1 + margin), 1e-14
    while lower and margin < 1 and _gaussian_delta(Fraction(low * (1 - margin)), mu)[0] < delta * _UP:
        margin *= 4
    return max(0.0, low * (1 - margin)) if lower else 0.0, upper


def _gaussian_guess(epsilon: float, mu: float) -> float:
    first, second = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return (math.erfc(first / math.sqrt(2)) - math.exp(epsilon) * math.erfc(second / math.sqrt(2))) / 2
