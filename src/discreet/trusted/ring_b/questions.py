"""A question's measurement: its groups, separately measured aggregates, and private bounds that are found first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from discreet.trusted.ring_a.engine import Engine
from discreet.trusted.ring_a.groups import GroupsMeasurement, noisy_groups
from discreet.trusted.ring_a.loss import Approximate, Batch, Pure
from discreet.trusted.ring_a.measurement import CertifiedMeasurement, ExactPlan, NoisyGroups, fixed, part_loss, reads
from discreet.trusted.ring_a.nodes import Root
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b import registered  # noqa: F401  (relations and mechanisms are registered with ring A)
from discreet.trusted.ring_b.logarithmic import LogarithmicRange
from discreet.trusted.ring_b.order_statistics import (
    Bounds,
    MeasuredSpecial,
    Range,
    Special,
    SpecialMechanism,
    found_range,
    range_loss,
    released,
    special_losses,
)


@dataclass(frozen=True)
class QuestionPlan(ExactPlan):
    """A plan with what is measured by itself, and with expressions whose bounds are found first."""

    specials: tuple[Special, ...] = ()
    ranges: tuple[Range, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed(self.specials, self.ranges)

    @property
    def roots(self) -> tuple[Root, ...]:
        return (*super().roots, *(one.root for one in self.ranges), *(one.root for one in self.specials))


@dataclass(frozen=True)
class Noisy(NoisyGroups):
    """The noisy results of a question, as they leave the gate."""

    specials: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """For each special, for each group: places of quantiles or winners, or a noisy number."""
    found: tuple[Bounds, ...] = ()
    """The bounds that were found first."""


@dataclass(frozen=True)
class QuestionMeasurement(CertifiedMeasurement):
    """A plan and the mechanism of each of its parts, of each special, and of each range that is found first.

    Where bounds are found first, what follows is known only then: `replan` makes it of the bounds, and it may cost at
    most `rest`.
    """

    plan: QuestionPlan
    special_mechanisms: tuple[SpecialMechanism, ...] = ()
    ranges: tuple[LogarithmicRange, ...] = ()
    rest: Pure | Approximate | None = None
    replan: Callable[[tuple[Bounds, ...]], QuestionMeasurement] | None = field(
        default=None, compare=False, repr=False, kw_only=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed(self.special_mechanisms, self.ranges)

    @cached_property
    def specials(self) -> tuple[MeasuredSpecial, ...]:
        """The plan's specials with their mechanisms."""
        pairs = zip(self.plan.specials, self.special_mechanisms, strict=True)
        return tuple(MeasuredSpecial(*pair) for pair in pairs)

    @cached_property
    def loss(self) -> Batch:
        """The losses of all that is released together add up. Where bounds are found first: theirs, and all that is
        left for what follows. Raises ValueError as the plan's own parts do."""
        self.check()
        losses = [range_loss(*pair) for pair in zip(self.plan.ranges, self.ranges, strict=True)]
        if bool(self.rest) != bool(self.plan.ranges):
            raise ValueError("only a question that follows found bounds is charged as a whole")
        if self.rest is not None:
            if type(self.rest) not in (Pure, Approximate):
                raise ValueError(
                    "a question that follows found bounds must be charged as a release of its epsilon and delta"
                )
            return Batch((*losses, self.rest))
        losses = [part_loss(one.mechanism, one.part, one.sensitivity) for one in self.parts]
        for special in self.specials:
            losses += special_losses(special)
        return Batch(tuple(losses))

    def settled(self, found: tuple[Bounds, ...]) -> QuestionMeasurement:
        """The measurement that follows found bounds: the question is planned again with them.

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
            raise ValueError("the question that follows the bounds costs more than was reserved for it")
        return made


@dataclass(frozen=True)
class Groups(GroupsMeasurement):
    """A question over one table. Released: the groups' keys, noisy vectors, and what is measured by itself."""

    measurement: QuestionMeasurement

    def draw(self, engine: Engine) -> Noisy:
        """What is released of the question: its groups and their noisy vectors, what is measured by itself in these,
        and the bounds that were found."""
        return noisy_answer(engine, self.measurement, self.table)


def noisy_answer(engine: Engine, priced: QuestionMeasurement, table: Table) -> Noisy:
    """Bounds first, then groups, then what is measured by itself in the groups that are shown."""
    pairs = zip(priced.plan.ranges, priced.ranges, strict=True)
    found = tuple(found_range(engine, one, mechanism, table) for one, mechanism in pairs)
    measurement = priced.settled(found)
    if measurement is not priced and not reads(measurement.plan, table):
        raise ValueError("the plan does not read this table as it is declared")
    groups = noisy_groups(engine, measurement, table)
    specials = tuple(released(engine, one, groups.keys, table) for one in measurement.specials)
    return Noisy(groups.keys, groups.parts, specials, found)
