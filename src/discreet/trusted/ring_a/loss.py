"""Privacy loss events: immutable descriptions of releases, which the ledger stores.

An event describes a mechanism and its sensitivity, not a number derived from them, so that a tighter filter can read an
old ledger. The meaning of an event never changes once a ledger holds one; new kinds may be added, here or in a module
of their own (`further_losses`), each under a word that no other has.

Neighbours throughout: two tables that differ by adding or removing all rows of one person.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from attrs import field, fields, frozen

from discreet.trusted.ring_a.curves import mu_of_pure
from discreet.trusted.ring_a.exact import Number, fraction

Json = Mapping[str, Any]
NOTHING = Fraction(0)


def amount(value: Number) -> Fraction:
    """A part of a loss, as written. Raises ValueError below 0."""
    exact = fraction(value)
    if exact < 0:
        raise ValueError("a loss must not be negative")
    return exact


def probability(value: Number) -> Fraction:
    """A delta, as written. Raises ValueError unless it lies between 0 and 1."""
    exact = amount(value)
    if exact > 1:
        raise ValueError("delta must be a probability")
    return exact


def whole(value: int) -> int:
    """A count of lattice steps or of releases. Raises ValueError below 0."""
    exact = int(value)
    if exact < 0:
        raise ValueError("a sensitivity must not be negative")
    return exact


@frozen
class Single:
    """One release. A kind says how much of each currency it takes; None where no amount of it is enough."""

    event: ClassVar[str]
    """The word under which a ledger holds it."""

    @property
    def pure(self) -> Fraction | None:
        """Its ε, where a finite one holds."""
        return None

    @property
    def mu_squared(self) -> Fraction | None:
        """A μ² rounded up such that the release is μ-GDP, where there is one."""
        return None

    @property
    def keys_delta(self) -> Fraction:
        """The probability of an event in which nothing is promised: it draws on the part of δ that a budget sets apart,
        first of all for finding private keys."""
        return NOTHING

    def to_json(self) -> Json:
        """The event in words: amounts as fractions, counts as they are."""
        values = ((one.name, getattr(self, one.name)) for one in fields(type(self)))
        return {"event": self.event} | {name: str(x) if isinstance(x, Fraction) else x for name, x in values}


_KINDS: dict[str, type[Single]] = {}
Kind = TypeVar("Kind", bound=type[Single])


def stored(kind: Kind) -> Kind:
    """Makes a kind of event one that `loss_from_json` reads. Raises ValueError on a word that is taken."""
    if _KINDS.setdefault(kind.event, kind) is not kind:
        raise ValueError("two kinds of events have the same stored name")
    return kind


@stored
@frozen
class Pure(Single):
    """Some ε-DP release: every outcome's probability ratio between neighbours is at most e^ε."""

    event: ClassVar[str] = "pure"
    epsilon: Fraction = field(converter=amount)

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    @property
    def mu_squared(self) -> Fraction | None:
        return mu_of_pure(self.epsilon) ** 2


@stored
@frozen
class DiscreteLaplace(Pure):
    """Discrete Laplace noise of scale sensitivity/epsilon on a vector of integers with that ℓ1 sensitivity.

    `sensitivity` counts lattice steps. Pure ε-DP (Dwork & Roth 2014, Theorem 3.6). With one step of sensitivity it *is*
    randomised response; with more it comes near to continuous Laplace noise, and the residue filter charges it so.
    """

    event: ClassVar[str] = "discrete_laplace"
    sensitivity: int = field(converter=whole)


@stored
@frozen
class GaussianLoss(Single):
    """Rounded Gaussian noise: μ is the ℓ2 sensitivity over sigma (for a vector with one sigma a part: the root of the
    sum of the squared quotients), rounded up. Exactly μ-GDP, since rounding the sum is post-processing (Dong, Roth & Su
    2019, Theorem 2.7)."""

    event: ClassVar[str] = "gaussian"
    mu: Fraction = field(converter=amount)

    @property
    def mu_squared(self) -> Fraction | None:
        return self.mu**2


@stored
@frozen
class EquivalentGaussian(GaussianLoss):
    """A release that is μ-GDP but for an event of probability δ: (1 − δ)(P′, Q′) + δ(P″, Q″) with P′, Q′ at least as
    hard to tell apart as N(0, 1) and N(μ, 1).

    What a declared batch, as a run of stochastic gradient descent is, may be charged as: then its trade-off function is
    at least that of such a release (Dong, Roth & Su 2019, Theorem 2.10: every pair of distributions with that trade-off
    function is made of it by post-processing).
    """

    event: ClassVar[str] = "equivalent_gaussian"
    delta: Fraction = field(converter=probability)

    @property
    def keys_delta(self) -> Fraction:
        return self.delta


@stored
@frozen
class Approximate(Single):
    """A release that is ε-DP but for an event of probability δ: (1 − δ)(P′, Q′) + δ(P″, Q″) with P′, Q′ ε-close.

    The ε goes to the filters as `Pure` does, the δ to the counter of its own that pays for private keys.
    """

    event: ClassVar[str] = "approximate"
    epsilon: Fraction = field(converter=amount)
    delta: Fraction = field(converter=probability)

    @property
    def pure(self) -> Fraction | None:
        return self.epsilon

    @property
    def mu_squared(self) -> Fraction | None:
        return mu_of_pure(self.epsilon) ** 2

    @property
    def keys_delta(self) -> Fraction:
        return self.delta


@frozen
class Batch:
    """Releases declared together before any of them is made. Their losses add in every filter."""

    parts: tuple[Single, ...]

    @property
    def pure(self) -> Fraction | None:
        """The sum of the parts' ε; None where one has none."""
        return _sum([part.pure for part in self.parts])

    @property
    def mu_squared(self) -> Fraction | None:
        """The sum of the parts' μ²; None where one has none."""
        return _sum([part.mu_squared for part in self.parts])

    @property
    def keys_delta(self) -> Fraction:
        """The sum of the parts' δ, for private keys above all."""
        return sum((part.keys_delta for part in self.parts), NOTHING)

    def to_json(self) -> Json:
        """The event in words: its parts, in order."""
        return {"event": "batch", "parts": [part.to_json() for part in self.parts]}


Loss = Single | Batch


def loss_from_json(event: Json) -> Loss:
    """The event that `to_json` wrote. Raises ValueError on an unknown one: a newer program wrote it."""
    if event.get("event") == "batch":
        words = [str(part) for part in event["parts"]]  # of many steps most parts are equal: each is read once
        parts = {word: _single_from_json(part) for word, part in dict(zip(words, event["parts"], strict=True)).items()}
        return Batch(tuple(parts[word] for word in words))
    return _single_from_json(event)


def _single_from_json(event: Json) -> Single:
    word = event.get("event")
    kind = _KINDS.get(word) if isinstance(word, str) else None
    if kind is None:
        raise ValueError("a batch cannot contain a batch" if word == "batch" else "unknown event")
    values = ((one.name, event[one.name]) for one in fields(kind))
    return kind(**{name: Fraction(value) if isinstance(value, str) else value for name, value in values})


def _sum(amounts: list[Fraction | None]) -> Fraction | None:
    known = [each for each in amounts if each is not None]
    return sum(known, NOTHING) if len(known) == len(amounts) else None
