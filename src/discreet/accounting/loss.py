"""What was released, as immutable values: the events that a ledger stores.

An event describes a mechanism and its sensitivity, not a number derived from them, so that a tighter filter can read an
old ledger. The meaning of an event never changes once a ledger holds one; new kinds may be added.

Every loss says three things: `pure`, its ε where a finite one holds; `mu_squared`, a μ² rounded up such that the
release is μ-GDP, where there is one; `keys_delta`, the probability of an event in which nothing is promised: it draws
on the part of δ that a budget sets apart, first of all for finding private keys.

Neighbours throughout: two tables that differ by adding or removing all rows of one person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.curves import mu_of_pure
from discreet.exact import Number, fraction

Json = Mapping[str, Any]
NOTHING = Fraction(0)


@dataclass(frozen=True, init=False)
class Pure:
    """Some ε-DP release: every outcome's probability ratio between neighbours is at most e^ε."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon))

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    @property
    def mu_squared(self) -> Fraction | None:
        return mu_of_pure(self.epsilon) ** 2

    @property
    def keys_delta(self) -> Fraction:
        return NOTHING

    def to_json(self) -> Json:
        return {"event": "pure", "epsilon": str(self.epsilon)}


@dataclass(frozen=True, init=False)
class DiscreteLaplace(Pure):
    """Discrete Laplace noise of scale sensitivity/epsilon on a vector of integers with that ℓ1 sensitivity.

    `sensitivity` counts lattice steps. Pure ε-DP (Dwork & Roth 2014, Theorem 3.6). With one step of sensitivity it *is*
    randomised response; with more it comes near to continuous Laplace noise, and the residue filter charges it so.
    """

    sensitivity: int

    def __init__(self, epsilon: Number, sensitivity: int) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon))
        object.__setattr__(self, "sensitivity", int(sensitivity))
        if self.sensitivity < 0:
            raise ValueError("a sensitivity is not negative")

    def to_json(self) -> Json:
        return {"event": "discrete_laplace", "epsilon": str(self.epsilon), "sensitivity": self.sensitivity}


@dataclass(frozen=True, init=False)
class Laplace(Pure):
    """Continuous Laplace noise of scale (ℓ1 sensitivity)/epsilon on a vector (Dwork & Roth 2014, Theorem 3.6).

    The curator never draws it; it is the ideal that discrete noise comes near to, and the yardstick of accounting.

    The shift of one coordinate by the whole sensitivity dominates every other way to move the vector: let w be the
    distribution of the loss ℓ with density √(dP dQ), for a shift of loss a: e^(−a/2) times half an atom at either end
    ±a and the density 1/4 between them. The density between the ends ±(a+b) of two shifts together is at least
    e^(−(a+b)/2)/4, that of one shift by both; at the ends it is the other way round. So the difference of the two
    hockey-stick divergences is concave between the ends, zero beyond them, hence nowhere negative.
    """

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon))

    def to_json(self) -> Json:
        return {"event": "laplace", "epsilon": str(self.epsilon)}


@dataclass(frozen=True, init=False)
class BoundedRange(Pure):
    """An ε-bounded-range release, as the exponential mechanism is: there is an s with every outcome's log ratio in
    [s, s + ε] (Durfee & Rogers 2019). ε-DP, and ε²/8-zCDP (Cesar & Rogers 2021); the filters charge the former."""

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon))

    def to_json(self) -> Json:
        return {"event": "bounded_range", "epsilon": str(self.epsilon)}


@dataclass(frozen=True, init=False)
class Gaussian:
    """Rounded Gaussian noise: μ is the ℓ2 sensitivity over sigma (for a vector with one sigma a part: the root of the
    sum of the squared quotients), rounded up. Exactly μ-GDP, since rounding the sum is post-processing (Dong, Roth & Su
    2019, Theorem 2.7)."""

    mu: Fraction

    def __init__(self, mu: Number) -> None:
        object.__setattr__(self, "mu", _amount(mu))

    @property
    def pure(self) -> Fraction | None:
        return None

    @property
    def mu_squared(self) -> Fraction | None:
        return self.mu**2

    @property
    def keys_delta(self) -> Fraction:
        return NOTHING

    def to_json(self) -> Json:
        return {"event": "gaussian", "mu": str(self.mu)}


@dataclass(frozen=True, init=False)
class EquivalentGaussian(Gaussian):
    """A release that is μ-GDP but for an event of probability δ: (1 − δ)(P′, Q′) + δ(P″, Q″) with P′, Q′ at least as
    hard to tell apart as N(0, 1) and N(μ, 1).

    What a declared batch, as a run of stochastic gradient descent is, may be charged as: then its trade-off function is
    at least that of such a release (Dong, Roth & Su 2019, Theorem 2.10: every pair of distributions with that trade-off
    function is made of it by post-processing).
    """

    delta: Fraction

    def __init__(self, mu: Number, delta: Number) -> None:
        object.__setattr__(self, "mu", _amount(mu))
        object.__setattr__(self, "delta", _probability(delta))

    @property
    def keys_delta(self) -> Fraction:
        return self.delta

    def to_json(self) -> Json:
        return {"event": "equivalent_gaussian", "mu": str(self.mu), "delta": str(self.delta)}


@dataclass(frozen=True, init=False)
class SubsampledGaussian:
    """A run of `steps` sums, each over a fresh Poisson sample of the persons at this `rate`, each person's part at
    most 1 long, with Gaussian noise of deviation `sigma`; neighbours differ by one person added or removed.

    A step is dominated by the pair (1 − rate)·N(0, σ²) + rate·N(1, σ²) and N(0, σ²) (Zhu, Dong & Wang 2022). Being
    joint-convex in the pair, its loss is at most that of the step without sampling: `mu_squared` = steps/σ².
    """

    sigma: Fraction
    rate: Fraction
    steps: int

    def __init__(self, sigma: Number, rate: Number, steps: int) -> None:
        object.__setattr__(self, "sigma", fraction(sigma))
        object.__setattr__(self, "rate", fraction(rate))
        object.__setattr__(self, "steps", int(steps))
        if self.sigma <= 0 or not 0 < self.rate <= 1 or self.steps < 1:
            raise ValueError("a run needs sigma > 0, 0 < rate <= 1 and at least one step")

    @property
    def pure(self) -> Fraction | None:
        return None

    @property
    def mu_squared(self) -> Fraction | None:
        return self.steps / self.sigma**2

    @property
    def keys_delta(self) -> Fraction:
        return NOTHING

    def to_json(self) -> Json:
        return {
            "event": "subsampled_gaussian",
            "sigma": str(self.sigma),
            "rate": str(self.rate),
            "steps": self.steps,
        }


@dataclass(frozen=True, init=False)
class ZeroConcentrated:
    """A ρ-zCDP release of which nothing else is known (Bun & Steinke 2016): Rényi divergence of every order α at most
    α·ρ. No μ follows from it, so only a filter for ρ admits it, and never the ledger's."""

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _amount(rho))

    @property
    def pure(self) -> Fraction | None:
        return None

    @property
    def mu_squared(self) -> Fraction | None:
        return None

    @property
    def keys_delta(self) -> Fraction:
        return NOTHING

    def to_json(self) -> Json:
        return {"event": "zero_concentrated", "rho": str(self.rho)}


@dataclass(frozen=True, init=False)
class Approximate:
    """A release that is ε-DP but for an event of probability δ: (1 − δ)(P′, Q′) + δ(P″, Q″) with P′, Q′ ε-close.

    The ε goes to the filters as `Pure` does, the δ to the counter of its own that pays for private keys.
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon))
        object.__setattr__(self, "delta", _probability(delta))

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    @property
    def mu_squared(self) -> Fraction | None:
        return mu_of_pure(self.epsilon) ** 2

    @property
    def keys_delta(self) -> Fraction:
        return self.delta

    def to_json(self) -> Json:
        return {"event": "approximate", "epsilon": str(self.epsilon), "delta": str(self.delta)}


Single = Pure | Gaussian | SubsampledGaussian | ZeroConcentrated | Approximate


@dataclass(frozen=True)
class Batch:
    """Releases declared together before any of them is made. Their losses add in every filter."""

    parts: tuple[Single, ...]

    @property
    def pure(self) -> Fraction | None:
        return _sum([part.pure for part in self.parts])

    @property
    def mu_squared(self) -> Fraction | None:
        return _sum([part.mu_squared for part in self.parts])

    @property
    def keys_delta(self) -> Fraction:
        return sum((part.keys_delta for part in self.parts), NOTHING)

    def to_json(self) -> Json:
        return {"event": "batch", "parts": [part.to_json() for part in self.parts]}


Loss = Single | Batch


def loss_from_json(event: Json) -> Loss:
    """The event that `to_json` wrote. Raises ValueError on an unknown one: a newer program wrote it."""
    if event.get("event") == "batch":
        return Batch(tuple(_single_from_json(part) for part in event["parts"]))
    return _single_from_json(event)


def _single_from_json(event: Json) -> Single:
    match event.get("event"):
        case "pure":
            return Pure(_read(event["epsilon"]))
        case "discrete_laplace":
            return DiscreteLaplace(_read(event["epsilon"]), int(event["sensitivity"]))
        case "laplace":
            return Laplace(_read(event["epsilon"]))
        case "bounded_range":
            return BoundedRange(_read(event["epsilon"]))
        case "gaussian":
            return Gaussian(_read(event["mu"]))
        case "equivalent_gaussian":
            return EquivalentGaussian(_read(event["mu"]), _read(event["delta"]))
        case "subsampled_gaussian":
            return SubsampledGaussian(_read(event["sigma"]), _read(event["rate"]), int(event["steps"]))
        case "zero_concentrated":
            return ZeroConcentrated(_read(event["rho"]))
        case "approximate":
            return Approximate(_read(event["epsilon"]), _read(event["delta"]))
        case "batch":
            raise ValueError("a batch inside a batch")
    raise ValueError("unknown event")


def _read(text: str) -> Fraction:
    return Fraction(text)  # as `str` of a Fraction writes it


def _amount(value: Number) -> Fraction:
    amount = fraction(value)
    if amount < 0:
        raise ValueError("a loss is never negative")
    return amount


def _probability(value: Number) -> Fraction:
    amount = _amount(value)
    if amount > 1:
        raise ValueError("a delta is a probability")
    return amount


def _sum(amounts: list[Fraction | None]) -> Fraction | None:
    total = NOTHING
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
