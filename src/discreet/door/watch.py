"""An open run of above threshold: many questions, of which few say yes, at a price that was reserved when it opened."""

from __future__ import annotations

from discreet.catalog.model import Table
from discreet.door.grant import Grant
from discreet.door.groups import _combined, _dense
from discreet.engines.duckdb import DuckDB
from discreet.mechanisms import AboveThreshold
from discreet.plan.measurement import Plan
from discreet.plan.sensitivity import sensitivity


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

    def __init__(self, grant: Grant, engine: DuckDB, mechanism: AboveThreshold) -> None:
        grant.use(mechanism.loss())
        self._grant = grant
        self._engine = engine
        self._run = mechanism.open()
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether nothing more can be asked."""
        return self._ended or self._run.halted

    def commit(self, answer: bytes) -> None:
        """Ends the run and stores its replies, durably."""
        self._ended = True
        self._grant.commit(answer)

    def ask(self, plan: Plan, table: Table) -> bool:
        """The reply to one count over a whole table. Raises ValueError on a plan that is none, or that a person moves
        by more than the mechanism allows; EngineError where it fails, which ends the run."""
        mechanism = self._run.mechanism
        if self.ended:
            raise ValueError("the run has ended")
        if plan.keys or len(plan.parts) != 1 or sensitivity(plan.root, plan.parts[0]).l1 > mechanism.sensitivity:
            raise ValueError("the plan is no count that this run may ask")
        self._grant.check(table)
        self._ended = True

        def reply() -> bool:
            _, totals = _dense(self._engine.run(plan.root, table), plan)
            return self._run.ask(_combined(plan.parts[0].vectors[0], totals)[0])

        above = self._grant.guarded(reply, table)
        self._ended = False
        return above
