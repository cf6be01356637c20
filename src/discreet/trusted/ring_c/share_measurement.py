"""A party's measurement in a multi-party sum: its exact totals leave as random shares that include noise."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.trusted.ring_a.groups import combined, exact_groups
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.monotone import monotone_count, one_vector
from discreet.trusted.ring_b.questions import QuestionPlan
from discreet.trusted.ring_c.engine import CodedEngine
from discreet.trusted.ring_c.shares import LaplaceShares, LargestShares, Residues


@dataclass(frozen=True)
class Shares:
    """One vector of a plan with public groups, split for the parties of a session.

    Unit: a person, with all rows in this party's table. Neighbours: one person added or removed there, who moves the
    vector by at most the mechanism's `sensitivity` in ℓ1. The loss is that of the opened total, whoever sees what
    beside it (`LaplaceShares`); this party's ledger is charged with it before the first share exists.

    What is released is one uniform vector a party. Any of them, but not all, say nothing. The caller keeps one and
    sends each of the others to one party: whoever holds all of a party's shares holds its table's totals behind one
    noise share, which is less than the whole noise.

    Source: shares of discrete Laplace noise, Goryczka & Xiong 2017, section 4 (`polya`); the loss of the total, Dwork &
    Roth 2014, Theorem 3.6, or Claim 3.9 for `LargestShares`. What a session is stands in `docs/together.md`.
    """

    plan: QuestionPlan
    table: Table
    mechanism: LaplaceShares

    @property
    def loss(self) -> Loss:
        """The mechanism's. Raises ValueError where it is made for less than one person can do."""
        one_vector(self.plan, self.table)
        largest = isinstance(self.mechanism, LargestShares)
        if largest and not monotone_count(self.plan, self.table):
            raise ValueError("the largest is found among counts")
        moved = sensitivity(self.plan.root, self.plan.parts[0])
        if (moved.each if largest else moved.l1) > self.mechanism.sensitivity:
            raise ValueError("one person can change the vector by more than the mechanism's sensitivity")
        return self.mechanism.loss()

    def draw(self, engine: CodedEngine) -> list[Residues]:
        """One vector for each party: together the exact vector with this party's share of the noise. Any of them but
        not all are uniform."""
        _, totals = exact_groups(engine, self.plan, self.table)
        return self.mechanism.release(combined(self.plan.parts[0].vectors[0], totals))
