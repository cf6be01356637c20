"""A plan with a price: one mechanism for each part, fitted to its sensitivity, and the loss of all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet import accounting
from discreet.accounting import Batch
from discreet.accounting.curves import mu_of_budget
from discreet.catalog.model import Value
from discreet.exact import sqrt_ceiling
from discreet.mechanisms import Gaussian, Laplace, LaplaceThreshold, laplace_threshold
from discreet.plan.expressions import Expression
from discreet.plan.nodes import Aggregate, Key, Output, Part
from discreet.plan.sensitivity import Sensitivity, sensitivity


@dataclass(frozen=True)
class Price:
    """What a question costs: (epsilon, delta).

    With public keys delta = 0 asks for pure noise; with private keys delta is what finding them takes of keys_delta.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)


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
    mechanism: Laplace | Gaussian | LaplaceThreshold


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
    Epsilon is divided evenly. With public keys and delta > 0, Gaussian noise with the largest μ that implies (epsilon,
    delta) is taken if its expected error, relative to that of the Laplace noise, is smaller on average over the parts.
    """
    bounds = [sensitivity(plan.root, part) for part in plan.parts]
    laplace = _laplace(plan, bounds, price)
    chosen = laplace
    if price.delta > 0 and not plan.private:
        gaussian = _gaussian(plan, bounds, price)
        if gaussian and sum(_ratio(g, p) for g, p in zip(gaussian, laplace, strict=True)) < len(laplace):
            chosen = gaussian
    return Measurement(plan, price, chosen, Batch(tuple(_loss(part) for part in chosen)))


def _laplace(plan: Plan, bounds: list[Sensitivity], price: Price) -> tuple[Measured, ...]:
    share = price.epsilon / len(plan.parts)
    measured = []
    for part, bound in zip(plan.parts, bounds, strict=True):
        mechanism: Laplace | LaplaceThreshold
        if part.kind == "keys":
            mechanism = laplace_threshold(share, price.delta, bound.l1)
        else:
            mechanism = Laplace(bound.l1 / share)
        measured.append(Measured(part, bound, mechanism))
    return tuple(measured)


def _gaussian(plan: Plan, bounds: list[Sensitivity], price: Price) -> tuple[Measured, ...]:
    mu = mu_of_budget(price.epsilon, price.delta)
    if mu == 0:
        return ()
    measured = []
    for part, bound in zip(plan.parts, bounds, strict=True):
        sigma = sqrt_ceiling(bound.l2_squared * len(plan.parts) / mu**2)
        measured.append(Measured(part, bound, Gaussian(sigma)))
    return tuple(measured)


def _ratio(gaussian: Measured, laplace: Measured) -> float:
    assert not isinstance(gaussian.mechanism, LaplaceThreshold)
    assert not isinstance(laplace.mechanism, LaplaceThreshold)
    other = laplace.mechanism.expected_error
    return gaussian.mechanism.expected_error / other if other else float("inf")


def _loss(measured: Measured) -> accounting.DiscreteLaplace | accounting.Gaussian | accounting.Approximate:
    mechanism, bound = measured.mechanism, measured.sensitivity
    if isinstance(mechanism, LaplaceThreshold):
        return mechanism.loss()
    return mechanism.loss(bound.l1 if isinstance(mechanism, Laplace) else bound.l2_squared)
