"""An open run of AboveThreshold (sparse vector technique); its price is reserved when it opens."""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.trusted.ring_a.gate import Grant
from discreet.trusted.ring_a.groups import combined, exact_groups
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.monotone import monotone_count
from discreet.trusted.ring_b.questions import QuestionPlan
from discreet.trusted.ring_b.sparse import AboveThreshold


@dataclass(frozen=True)
class WatchMeasurement:
    """The measurement of a run of AboveThreshold: all replies together have the mechanism's loss."""

    mechanism: AboveThreshold

    table: None = field(default=None, init=False)

    @property
    def loss(self) -> Loss:
        """Of a whole run, however many replies there are."""
        return self.mechanism.loss()


class Watching:
    """Asks the exact count of each question whether it seems to reach the threshold, until the last yes.

    Unit: a person, with all rows. Neighbours: one person added or removed, who raises each question's count by between
    0 and the mechanism's `sensitivity`, and lowers none: monotone. The loss of all replies together is the mechanism's
    (Dwork & Roth 2014, Theorems 3.23 and 3.25), however many there are, also where questions follow from replies.

    Beside other questions: the whole loss was reserved when the run opened. An ε-DP interactive mechanism composes
    concurrently with others as a single release of that loss, made when it opened, would, in any filter for adaptive
    releases (Vadhan & Wang 2021; Haney, Shoemate, Tian, Vadhan et al. 2023).

    A failure ends the run: what remains is never asked again with the same noise.
    """

    def __init__(self, grant: Grant[WatchMeasurement]) -> None:
        self._run = grant.take().mechanism.open()
        self._grant = grant
        self._engine = grant._engine
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether nothing more can be asked."""
        return self._ended or self._run.halted

    def commit(self, answer: bytes) -> None:
        """Ends the run and stores its replies, durably."""
        self._ended = True
        self._grant.commit(answer)

    def ask(self, plan: QuestionPlan, table: Table) -> bool:
        """The reply to one count over a whole table.

        Raises ValueError on any other plan, or on a count that one person can change by more than the mechanism's
        sensitivity; EngineError where the engine fails, which ends the run.
        """
        mechanism = self._run.mechanism
        if self.ended:
            raise ValueError("the run has ended")
        if not monotone_count(plan, table) or plan.keys:
            raise ValueError("this run accepts only one monotone count without keys")
        if sensitivity(plan.root, plan.parts[0]).l1 > mechanism.sensitivity:
            raise ValueError("one person can change this count by more than the run's sensitivity")
        self._grant.check(table)
        self._ended = True

        def reply() -> bool:
            _, totals = exact_groups(self._engine, plan, table)
            return self._run.ask(combined(plan.parts[0].vectors[0], totals)[0])

        above = self._grant.guarded(reply, table)
        self._ended = False
        return above
