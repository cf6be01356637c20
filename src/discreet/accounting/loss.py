"""What was released, as immutable values: the events that a ledger stores.

An event describes a mechanism and its sensitivity, not a number derived from them, so that a tighter filter can read an
old ledger. The meaning of an event never changes once a ledger holds one; new kinds may be added.

Neighbours throughout: two tables that differ by adding or removing all rows of one person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.curves import mu_of_pure

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Pure:
    """Some ε-DP release: every outcome's probability ratio between neighbours is at most e^ε."""

    epsilon: Fraction

    @property
    def pure(self) -> Fraction | None:
        """The pure ε of this release; None where no finite ε holds."""
        return self.epsilon

    @property
    def mu_squared(self) -> Fraction:
        """A μ² such that the release is μ-GDP, rounded up."""
        return mu_of_pure(self.epsilon) ** 2

    @property
    def keys_delta(self) -> Fraction:
        """The part of δ that finding private keys takes."""
        return Fraction(0)

    def to_json(self) -> Json:
        return {"event": "pure", "epsilon": str(self.epsilon)}


@dataclass(frozen=True)
class DiscreteLaplace(Pure):
    """Discrete Laplace noise of scale sensitivity/epsilon on a vector of integers with that ℓ1 sensitivity.

    `sensitivity` counts lattice steps. Pure ε-DP (Dwork & Roth 2014, Theorem 3.6). As a Gaussian loss it is charged as
    any ε-DP release is: with one step of sensitivity it *is* randomised response, so nothing smaller would be valid
    for every sensitivity.
    """

    sensitivity: int

    def to_json(self) -> Json:
        return {"event": "discrete_laplace", "epsilon": str(self.epsilon), "sensitivity": self.sensitivity}


@dataclass(frozen=True)
class Gaussian:
    """Rounded Gaussian noise: μ is the ℓ2 sensitivity over sigma (for a vector with one sigma a part: the root of the
    sum of the squared quotients), rounded up. Exactly μ-GDP, since rounding the sum is post-processing (Dong, Roth & Su
    2019, Theorem 2.7)."""

    mu: Fraction

    @property
    def pure(self) -> Fraction | None:
        return None

    @property
    def mu_squared(self) -> Fraction:
        return self.mu**2

    @property
    def keys_delta(self) -> Fraction:
        return Fraction(0)

    def to_json(self) -> Json:
        return {"event": "gaussian", "mu": str(self.mu)}


@dataclass(frozen=True)
class Approximate:
    """A release that is ε-DP but for an event of probability δ: (1 − δ)(P′, Q′) + δ(P″, Q″) with P′, Q′ ε-close.

    The ε goes to the filters as `Pure` does, the δ to the counter of its own that pays for private keys.
    """

    epsilon: Fraction
    delta: Fraction

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    @property
    def mu_squared(self) -> Fraction:
        return mu_of_pure(self.epsilon) ** 2

    @property
    def keys_delta(self) -> Fraction:
        return self.delta

    def to_json(self) -> Json:
        return {"event": "approximate", "epsilon": str(self.epsilon), "delta": str(self.delta)}


@dataclass(frozen=True)
class Batch:
    """Releases declared together before any of them is made. Their losses add in every filter."""

    parts: tuple[Pure | Gaussian | Approximate, ...]

    @property
    def pure(self) -> Fraction | None:
        total = Fraction(0)
        for part in self.parts:
            if part.pure is None:
                return None
            total += part.pure
        return total

    @property
    def mu_squared(self) -> Fraction:
        return sum((part.mu_squared for part in self.parts), Fraction(0))

    @property
    def keys_delta(self) -> Fraction:
        return sum((part.keys_delta for part in self.parts), Fraction(0))

    def to_json(self) -> Json:
        return {"event": "batch", "parts": [part.to_json() for part in self.parts]}


Loss = Pure | Gaussian | Approximate | Batch


def loss_from_json(event: Json) -> Loss:
    """The event that `to_json` wrote. Raises ValueError on an unknown one: a newer program wrote it."""
    kind = event.get("event")
    if kind == "pure":
        return Pure(Fraction(event["epsilon"]))
    if kind == "discrete_laplace":
        return DiscreteLaplace(Fraction(event["epsilon"]), int(event["sensitivity"]))
    if kind == "gaussian":
        return Gaussian(Fraction(event["mu"]))
    if kind == "approximate":
        return Approximate(Fraction(event["epsilon"]), Fraction(event["delta"]))
    if kind == "batch":
        parts = tuple(loss_from_json(part) for part in event["parts"])
        if any(isinstance(part, Batch) for part in parts):
            raise ValueError("a batch inside a batch")
        return Batch(parts)  # type: ignore[arg-type]
    raise ValueError("unknown event")
