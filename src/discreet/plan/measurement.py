"""A plan with a mechanism for each of its parts, and the loss of all of them together, which follows from both.

No loss and no sensitivity is handed in: `Measurement.loss` is computed from what will be executed, as a privacy map
belongs to its function (Gaboardi, Hay & Vadhan 2020), and a measurement for which none can be proved has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from discreet.accounting import Approximate, Batch, Pure
from discreet.accounting.loss import Single
from discreet.mechanisms import (
    Ball,
    Gaussian,
    GaussianThreshold,
    Laplace,
    LaplaceThreshold,
    LogarithmicRange,
    Quantiles,
    Winners,
)
from discreet.plan.nodes import (
    Aggregate,
    Distinct,
    Histogram,
    Key,
    Output,
    Part,
    Range,
    Root,
    Scan,
    Special,
    Total,
    project_of,
    scan_of,
)
from discreet.plan.relations import view
from discreet.plan.sensitivity import Sensitivity, rows_reached, sensitivity, values_reached
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.table import Table, Value

Threshold = LaplaceThreshold | GaussianThreshold
Mechanism = Laplace | Gaussian | Ball | Threshold
SpecialMechanism = Quantiles | Winners | Laplace
Bounds = tuple[Fraction, Fraction]


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
    specials: tuple[Special, ...] = ()
    ranges: tuple[Range, ...] = ()
    """What has no declared bounds: found first; then `request`, which the planner alone reads, is planned anew."""
    request: object = None
    least: int = 1
    """How many persons a group must have to be shown, where keys are private."""
    having: Expression | None = None
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None
    written: tuple[int, ...] = ()
    """The places of the keys in the order in which the question groups: so are groups listed where it says nothing."""

    @property
    def roots(self) -> tuple[Root, ...]:
        """What the engine computes for the question, each a statement of its own."""
        own = (self.root,) if self.parts else ()
        return (*own, *(one.root for one in self.ranges), *(one.root for one in self.specials))

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
class MeasuredSpecial:
    """What is measured by itself, and the mechanism for it."""

    special: Special
    mechanism: SpecialMechanism


@dataclass(frozen=True)
class Measurement:
    """A plan and the mechanism of each of its parts, of each special, and of each range that is found first.

    Where bounds are found first, what follows is known only then: `replan` makes it of the bounds, and it may cost at
    most `rest`. `price` is what the question was asked at; no loss rests on it.
    """

    plan: Plan
    price: Price
    mechanisms: tuple[Mechanism, ...]
    special_mechanisms: tuple[SpecialMechanism, ...] = ()
    ranges: tuple[LogarithmicRange, ...] = ()
    rest: Pure | Approximate | None = None
    replan: Callable[[tuple[Bounds, ...]], Measurement] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def parts(self) -> tuple[Measured, ...]:
        """The plan's parts, each with the sensitivity that the fold over the nodes proves."""
        root = self.plan.root
        pairs = zip(self.plan.parts, self.mechanisms, strict=True)
        return tuple(Measured(part, sensitivity(root, part), mechanism) for part, mechanism in pairs)

    @cached_property
    def specials(self) -> tuple[MeasuredSpecial, ...]:
        """The plan's specials with their mechanisms."""
        pairs = zip(self.plan.specials, self.special_mechanisms, strict=True)
        return tuple(MeasuredSpecial(*pair) for pair in pairs)

    @cached_property
    def loss(self) -> Batch:
        """What the ledger stores and charges: the losses of all parts, which are released together, add up (pure ε:
        Dwork & Roth 2014, Theorem 3.16; Gaussian: the parts' vectors divided by their sigmas are one Gaussian vector of
        squared sensitivity Σ Δ²/σ²). Where bounds are found first: theirs, and all that is left for what follows.

        Raises ValueError where no loss can be proved: what a person adds is not bounded, a mechanism is made for less,
        or groups with private keys would be shown without a threshold.
        """
        plan = self.plan
        if plan.keys != project_of(plan.root).keys:
            raise ValueError("the plan's keys are not those of its groups")
        finders = sum(part.kind == "keys" for part in plan.parts)
        if plan.parts and finders != plan.private:
            raise ValueError("private keys are shown through one threshold")
        losses: list[Single] = [_range_loss(*pair) for pair in zip(plan.ranges, self.ranges, strict=True)]
        if bool(self.rest) != bool(plan.ranges):
            raise ValueError("what follows found bounds, and nothing else, is charged as a whole")
        if self.rest is not None:
            return Batch((*losses, self.rest))
        losses += [_loss(one) for one in self.parts]
        for special in self.specials:
            losses += _special_losses(special)
        return Batch(tuple(losses))

    def settled(self, found: tuple[Bounds, ...]) -> Measurement:
        """What is measured once bounds are found: the question planned anew with them.

        That the second release is chosen by the first is adaptive composition, which both filters cover. It may have
        other parts than the first plan; all of them together cost at most `rest`. Raises ValueError where they cost
        more.
        """
        if self.rest is None or self.replan is None:
            return self
        made = self.replan(found)
        loss, left = made.loss, self.rest
        dear = loss.pure is None or loss.pure > left.epsilon or loss.keys_delta > left.keys_delta
        if made.rest is not None or dear:
            raise ValueError("what follows the bounds costs more than was reserved for it")
        return made


@dataclass(frozen=True)
class Noisy:
    """What leaves the door: the groups' keys in a fixed order, and for each part its noisy vectors."""

    keys: tuple[tuple[Value | None, ...], ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...]
    specials: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """For each special, for each group: places of quantiles or winners, or a noisy number."""
    found: tuple[Bounds, ...] = ()
    """The bounds that were found first."""


def reads(plan: Plan, table: Table) -> bool:
    """Whether all statements of a plan read this table, and count persons as it is declared."""
    declared = Scan(table.name, table.person, table.one_row_per_person, table.relation)
    if table.relation is not None and table != view(table.relation):
        return False
    return plan.table == table.name and all(scan_of(root) == declared for root in plan.roots)


def _loss(measured: Measured) -> Single:
    """The loss of one part. Raises ValueError where its mechanism is made for less than a person can do."""
    part, bound, mechanism = measured.part, measured.sensitivity, measured.mechanism
    if (part.kind == "keys") != isinstance(mechanism, Threshold):
        raise ValueError("a threshold is for the part that finds the keys")
    if isinstance(mechanism, LaplaceThreshold | GaussianThreshold):
        if len(part.vectors) != 1 or bound.each > 1 or bound.l1 > mechanism.cells:
            raise ValueError("a threshold counts each person once in a group, and in as many groups as it knows of")
        return mechanism.loss()
    if isinstance(mechanism, Ball) and (part.kind != "joint" or mechanism.blocks != part.blocks):
        raise ValueError("the noise has the shape of another part")
    if isinstance(mechanism, Laplace) and part.kind == "joint":
        raise ValueError("a joint part is bounded in the norm of its blocks, which is not that of the noise")
    return mechanism.loss(bound.l2_squared if isinstance(mechanism, Gaussian) else bound.l1)


def _special_losses(one: MeasuredSpecial) -> list[Single]:
    """The losses of what is measured by itself."""
    root, mechanism = one.special.root, one.mechanism
    if isinstance(mechanism, Laplace):
        if not isinstance(root, Distinct):
            raise ValueError("this noise is for numbers of different values")
        return [mechanism.loss(values_reached(root))]
    rows = rows_reached(root)
    if isinstance(mechanism, Quantiles):
        lattice = one.special.lattice
        if not isinstance(root, Histogram) or lattice is None or project_of(root).quantities[0].lattice != lattice:
            raise ValueError("quantiles are those of counts on their lattice")
        if mechanism.buckets != lattice.width + 1 or rows > mechanism.rows:
            raise ValueError("a person has more rows than the mechanism is made for, or others")
    elif not isinstance(root, Aggregate) or root.totals != (Total("rows"),) or rows > mechanism.each:
        raise ValueError("a person has more rows than the mechanism is made for")
    elif len(set(one.special.values)) < len(one.special.values):
        raise ValueError("a candidate stands there twice")
    loss = mechanism.loss()
    return list(loss.parts) if isinstance(loss, Batch) else [loss]


def _range_loss(one: Range, mechanism: LogarithmicRange) -> Single:
    """The loss of finding bounds: a person has so many rows in the counts as count at all."""
    if rows_reached(one.root) > mechanism.sensitivity:
        raise ValueError("a person has more rows than the mechanism is made for")
    return mechanism.loss()
