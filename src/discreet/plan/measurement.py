"""A checked question, and its measurement at a price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.plan.outputs import Output
from discreet.plan.profile import ChosenLimits
from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.threshold import Threshold
from discreet.trusted.ring_b.joint import Ball
from discreet.trusted.ring_b.order_statistics import Bounds
from discreet.trusted.ring_b.questions import QuestionMeasurement, QuestionPlan

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
class Plan(QuestionPlan):
    """A checked question: what is measured, and what is made of the noisy numbers.

    `having`, `order` and `limit` work on the noisy answer. Where bounds are found first, `request`, which the planner
    alone reads, is planned anew. A group with private keys needs at least `least` persons to be shown. `written` are
    the places of the keys in the order in which the question groups: so are groups listed where it says nothing.
    Where limits follow from released histograms, `chosen` are these, and `at` gives the plans of the same question at
    another price: by what is released now, and by what was released before, of which an answer may be stored.
    """

    outputs: tuple[Output, ...] = ()
    request: object = None
    least: int = 1
    having: Expression | None = None
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None
    written: tuple[int, ...] = ()
    chosen: ChosenLimits | None = field(default=None, compare=False, repr=False)
    at: Callable[[Price], tuple[Plan, ...]] | None = field(default=None, compare=False, repr=False)

    def all_at(self, price: Price) -> tuple[Plan, ...]:
        """The plan itself where no limit was chosen; else those `at` a price."""
        return (self,) if self.at is None else self.at(price)


@dataclass(frozen=True)
class Measurement(QuestionMeasurement):
    """The measurement of a question that was asked at a price. No loss rests on the price."""

    plan: Plan
    price: Price = Price(Fraction(0))

    def settled(self, found: tuple[Bounds, ...]) -> Measurement:
        made = super().settled(found)
        assert isinstance(made, Measurement)
        return made
