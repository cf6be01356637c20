"""A plan with a price: one mechanism for each part, fitted to its sensitivity, and the loss of all of them together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import Batch
from discreet.accounting.curves import mu_of_budget
from discreet.accounting.loss import Single
from discreet.catalog.model import Value
from discreet.exact import sqrt_ceiling
from discreet.mechanisms import (
    Ball,
    Gaussian,
    GaussianThreshold,
    Laplace,
    LaplaceThreshold,
    gaussian_threshold,
    laplace_threshold,
)
from discreet.plan.expressions import Expression
from discreet.plan.nodes import Aggregate, Key, Output, Part
from discreet.plan.sensitivity import Sensitivity, sensitivity

Threshold = LaplaceThreshold | GaussianThreshold
Mechanism = Laplace | Gaussian | Ball | Threshold


@dataclass(frozen=True)
class Price:
    """What a question costs: (epsilon, delta).

    With public keys delta = 0 asks for pure noise; with private keys delta is what finding them takes of keys_delta.
    With `gaussian`, a question with private keys may take half of delta for Gaussian noise instead, and the other half
    of keys_delta, where that makes a smaller error.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    gaussian: bool = False


@dataclass(frozen=True)
class Plan:
    """A checked question: what the engine computes, what is measured of it, and what is made of the noisy numbers.

    `having`, `order` and `limit` work on the noisy answer. `lost` says in words what the bounds may leave out.
    """

    table: str
    root: Aggregate
    keys: tuple[Key, ...]
    parts: tuple[Part, ...]
    outputs: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None

    @property
    def private(self) -> bool:
        """Whether some key is private, so that groups have to be found."""
        return any(key.values is None for key in self.keys)


@dataclass(frozen=True)
class Measured:
    """One part, what a person can do to it, and the mechanism that hides it."""

    part: Part
    sensitivity: Sensitivity
    mechanism: Mechanism


@dataclass(frozen=True)
class Measurement:
    """All parts of a plan at one price. `loss` is what the ledger stores and charges."""

    plan: Plan
    price: Price
    parts: tuple[Measured, ...]
    loss: Batch


@dataclass(frozen=True)
class Noisy:
    """What leaves the door: the groups' keys in a fixed order, and for each part its noisy vectors."""

    keys: tuple[tuple[Value, ...], ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...]


def measurement(plan: Plan, price: Price) -> Measurement:
    """Fits mechanisms to the plan so that the whole release costs the price.

    Privacy: each part's mechanism has the loss that its docstring proves at the sensitivity that the fold proves; the
    parts are released together, so their losses add (pure ε: Dwork & Roth 2014, Theorem 3.16; Gaussian: the parts'
    vectors divided by their sigmas are one Gaussian vector of squared sensitivity Σ Δ²/σ²).

    The split. A part whose share of the price is p has errors proportional to 1/p (Laplace, the joint noise, and how
    far the threshold of private keys lies above 0) or 1/√p of μ² (Gaussian). What is minimised is Σ log(error) over the
    columns of the answer, that is the mean relative error whatever their units, with the threshold as one column more:
    minimise −Σ nᵢ·log pᵢ for a part that nᵢ columns are made of, Σ pᵢ = 1. By Lagrange pᵢ ∝ nᵢ, for either noise. It
    depends on the plan alone.

    With delta > 0, Gaussian noise with the largest μ that implies (epsilon, delta) is taken if its expected error,
    relative to that of the Laplace noise, is smaller on average over the columns. With private keys it gets half of
    delta, the threshold the other half.
    """
    bounds = [sensitivity(plan.root, part) for part in plan.parts]
    uses = [_uses(plan, index) for index in range(len(plan.parts))]
    shares = [Fraction(count, sum(uses)) for count in uses]
    chosen = _laplace(plan, bounds, shares, price)
    if price.delta > 0 and (price.gaussian or not plan.private):
        gaussian = _gaussian(plan, bounds, shares, price)
        if gaussian and _ratio(gaussian, chosen, uses) < 1:
            chosen = gaussian
    return Measurement(plan, price, chosen, Batch(tuple(_loss(part) for part in chosen)))


def _uses(plan: Plan, index: int) -> int:
    """How many columns a part counts for."""
    made = sum(output.kind != "key" and output.index == index for output in plan.outputs)
    return max(1, made) + (1 if made and plan.parts[index].kind == "keys" else 0)


def _laplace(plan: Plan, bounds: list[Sensitivity], shares: list[Fraction], price: Price) -> tuple[Measured, ...]:
    measured = []
    for part, bound, share in zip(plan.parts, bounds, shares, strict=True):
        epsilon = price.epsilon * share
        mechanism: Mechanism
        if part.kind == "keys":
            mechanism = laplace_threshold(epsilon, price.delta, bound.l1)
        elif part.kind == "joint":
            mechanism = Ball(bound.l1 / epsilon, part.blocks)
        else:
            mechanism = Laplace(bound.l1 / epsilon)
        measured.append(Measured(part, bound, mechanism))
    return tuple(measured)


def _gaussian(plan: Plan, bounds: list[Sensitivity], shares: list[Fraction], price: Price) -> tuple[Measured, ...]:
    delta = price.delta / 2 if plan.private else price.delta
    mu = mu_of_budget(price.epsilon, delta)
    if mu == 0:
        return ()
    measured = []
    for part, bound, share in zip(plan.parts, bounds, shares, strict=True):
        mechanism: Mechanism
        if part.kind == "keys":
            mechanism = gaussian_threshold(mu**2 * share, delta, bound.l1)
        else:
            mechanism = Gaussian(sqrt_ceiling(bound.l2_squared / (share * mu**2)))
        measured.append(Measured(part, bound, mechanism))
    return tuple(measured)


def _ratio(gaussian: tuple[Measured, ...], laplace: tuple[Measured, ...], uses: list[int]) -> float:
    """The mean of the errors' quotients; of thresholds too, which stand for what is left out."""
    total = 0.0
    for one, other, count in zip(gaussian, laplace, uses, strict=True):
        if isinstance(one.mechanism, GaussianThreshold) and isinstance(other.mechanism, LaplaceThreshold):
            noise = one.mechanism.noise.expected_error / other.mechanism.noise.expected_error
            total += (count - 1) * noise + one.mechanism.threshold / other.mechanism.threshold
        else:
            assert not isinstance(one.mechanism, Threshold)
            assert not isinstance(other.mechanism, Threshold)
            below = other.mechanism.expected_error
            total += count * (one.mechanism.expected_error / below if below else math.inf)
    return total / sum(uses)


def _loss(measured: Measured) -> Single:
    mechanism, bound = measured.mechanism, measured.sensitivity
    if isinstance(mechanism, LaplaceThreshold | GaussianThreshold):
        return mechanism.loss()
    return mechanism.loss(bound.l2_squared if isinstance(mechanism, Gaussian) else bound.l1)
