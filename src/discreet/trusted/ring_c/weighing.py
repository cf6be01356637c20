"""An open run of private multiplicative weights: counts answered from a public model that noisy answers correct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.gate import Grant
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_c.coding import Coding, rows_of_person
from discreet.trusted.ring_c.engine import CodedEngine
from discreet.trusted.ring_c.multiplicative_weights import OnlineMultiplicativeWeights, OnlineRun
from discreet.trusted.ring_c.universe import Database


@dataclass(frozen=True)
class Weigh:
    """A run of private multiplicative weights: all replies together cost the construction's loss."""

    construction: OnlineMultiplicativeWeights
    table: Table
    coding: Coding

    @property
    def loss(self) -> Loss:
        """Raises ValueError where the construction is made for another number of rows per person."""
        if self.construction.rows_per_person != rows_of_person(self.table):
            raise ValueError("the construction is made for another number of rows per person")
        return self.construction.loss()


class Weighing:
    """Counts the rows of a table once, cell by cell, and from then on answers from those counts with noise.

    Unit: a person, with at most R rows that count (`rows_of_person`); the engine leaves out all others. Neighbours: one
    person added or removed. Every row is in one cell of the coding, or in none (`ring_c.coding`), so the exact
    histogram moves by at most R in ℓ1, and every count of cells by at most R. The loss of all replies together is the
    construction's, pure ε, however many there are, also where questions follow from replies. Which cells a question
    counts follows from the coding and the question: no row is read for it.

    Beside other questions: the whole loss was reserved when the run opened. An ε-DP interactive mechanism composes
    concurrently with others as a single release of that loss, made when it opened, would, in any filter for adaptive
    releases (Vadhan & Wang 2021; Haney, Shoemate, Tian, Vadhan et al. 2023).

    The histogram is of the table as it was when the run opened. A failure ends the run.
    """

    def __init__(self, grant: Grant[Weigh]) -> None:
        """Raises EngineError where the rows cannot be counted; the price stays charged."""
        opened = grant.take()
        construction, table, coding = opened.construction, opened.table, opened.coding
        engine = cast(CodedEngine, grant._engine)
        self._grant, self._engine, self._table, self._coding = grant, engine, table, coding
        self._ended = False

        def counted() -> OnlineRun:
            rows = engine.code(coding, table)
            try:
                (cells,) = engine.marginals(rows, [coding.names])
            finally:
                engine.uncode(rows)
            return construction.open(Database(construction.universe, cells.reshape(-1).tolist()))

        self._run = grant.guarded(counted, table)

    @property
    def ended(self) -> bool:
        """Whether nothing more can be asked."""
        return self._ended or self._run.ended

    @property
    def half_width(self) -> float:
        """What all answers are within with probability 1 − beta, in rows."""
        return self._run.error

    def commit(self, answer: bytes) -> None:
        """Ends the run and stores its replies, durably."""
        self._ended = True
        self._grant.commit(answer)

    def ask(self, predicate: Expression | None) -> int:
        """The noisy count of the rows for which the predicate is true; of all rows without one. Raises ValueError once
        ended; EngineError where it fails, which ends the run."""
        if self.ended:
            raise ValueError("the run has ended")
        self._grant.check(self._table)
        self._ended = True

        def reply() -> int:
            if predicate is None:
                return self._run.ask([1] * self._run.construction.universe.size)
            cells = self._engine.cells(self._coding, predicate, self._table)
            return self._run.ask(cells.reshape(-1).tolist())

        answer = self._grant.guarded(reply, self._table)
        self._ended = False
        return answer
