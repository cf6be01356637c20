"""Private selection of the largest declared groups; the counts are not released."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.trusted.ring_a.engine import Engine
from discreet.trusted.ring_a.groups import combined, exact_groups
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import Table, Value
from discreet.trusted.ring_b.monotone import monotone_count
from discreet.trusted.ring_b.noisy_max import NoisyMax
from discreet.trusted.ring_b.questions import QuestionPlan
from discreet.trusted.ring_b.selection import TopK


@dataclass(frozen=True)
class Chosen:
    """What leaves the gate: the winners' keys, best first, and the gap where it was asked for."""

    keys: tuple[tuple[Value | None, ...], ...]
    gap: int | None = None


@dataclass(frozen=True)
class ChoiceMeasurement:
    """Report noisy max, or one-shot top-k, over the counts of a plan's public groups.

    Unit: a person, with all rows. Neighbours: one person added or removed. The candidates are the declared keys,
    whoever is in the table. One person raises each group's count by between 0 and the mechanism's `sensitivity`, and
    lowers none: counts are monotone, so the loss is the mechanism's however many groups a person touches (Dwork & Roth
    2014, Claim 3.9; `NoisyMax`, `TopK`). The counts themselves are not released, nor is the winner's.
    """

    plan: QuestionPlan
    table: Table
    mechanism: NoisyMax | TopK
    with_gap: bool = False

    @property
    def loss(self) -> Loss:
        """The mechanism's. Raises ValueError where it is made for less than one person can add to a count."""
        if not monotone_count(self.plan, self.table):
            raise ValueError("the plan is not a count of public groups")
        if sensitivity(self.plan.root, self.plan.parts[0]).each > self.mechanism.sensitivity:
            raise ValueError("one person can change a count by more than the mechanism's sensitivity")
        return self.mechanism.loss()

    def draw(self, engine: Engine) -> Chosen:
        """The winners' keys, best first, and the gap of the one winner where `with_gap`; counts stay here."""
        keys, totals = exact_groups(engine, self.plan, self.table)
        counts = combined(self.plan.parts[0].vectors[0], totals)
        if isinstance(self.mechanism, TopK):
            return Chosen(tuple(keys[place] for place in self.mechanism.release(counts)))
        if not self.with_gap:
            return Chosen((keys[self.mechanism.release(counts)],))
        place, gap = self.mechanism.release_with_gap(counts)
        return Chosen((keys[place],), gap)
