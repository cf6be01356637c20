"""The one door. Every number that depends on private rows leaves through `Grant.measure`, and only after its
price is on disk.

    reserve (durable) → exact integers → noise → commit

What holds, and where:
* nothing is computed before `Ledger.reserve` has returned, so a crash, a kill or an error later is charged in full;
* a grant measures once, and only what its loss was declared for; there is no refund and no second draw;
* exact numbers live only in the frames below a measurement's `draw`, in this room. If anything fails there, the caller
  gets a new error with a fixed text, raised outside those frames, so that no traceback, context or log can carry them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

from discreet.accounting import Loss
from discreet.catalog.model import Table
from discreet.engines.duckdb import DuckDB
from discreet.engines.process import Stopped
from discreet.errors import EngineError
from discreet.ledger import Ledger, Stored
from discreet.ledger.store import step

_log = logging.getLogger("discreet")


Result = TypeVar("Result")
Released = TypeVar("Released", covariant=True)


class Measurable(Protocol[Released]):
    """One kind of measurement: what it costs, the table it reads, and how what is released is drawn."""

    @property
    def loss(self) -> Loss: ...
    @property
    def table(self) -> Table: ...
    def draw(self, engine: DuckDB, /) -> Released: ...


class Door:
    """Holds the ledger and the engine together; nothing else runs plans or reserves losses."""

    def __init__(self, ledger: Ledger, engine: DuckDB) -> None:
        self._ledger = ledger
        self._engine = engine

    def open(
        self, loss: Loss, table: Table | None, *, analyst: str, question: str, key: str, request: str | None
    ) -> Grant | Stored:
        """Reserves a loss, durably, and gives the right to measure it once; or the stored answer to the same question.
        A run over several tables names none here.

        Raises BudgetError where an account does not admit it (nothing is spent), LedgerError where the ledger cannot be
        written or trusted (nothing is measured).
        """
        for base in table.bases if table is not None else ():
            if self._ledger.frozen(base.name):
                raise EngineError(frozen=base.name)
        reserved = self._ledger.reserve(loss, account=analyst, question=question, key=key, request=request)
        if isinstance(reserved, Stored):
            _log.info("reserve %s repeated", reserved.reserve_id)
            return reserved
        _log.info("reserve %s admitted", reserved.reserve_id)
        return Grant(self._ledger, self._engine, loss, reserved.reserve_id)


class Grant:
    """A reserved price: measures once, then commits what is released."""

    def __init__(self, ledger: Ledger, engine: DuckDB, loss: Loss, reserve_id: int) -> None:
        self._ledger = ledger
        self._engine = engine
        self._loss: Loss | None = loss
        self.reserve_id = reserve_id

    def measure(self, measurement: Measurable[Released]) -> Released:
        """What the measurement releases. Raises EngineError with one fixed text whatever fails; the reserve stands."""
        self.use(measurement.loss)
        return self.guarded(lambda: measurement.draw(self._engine), measurement.table)

    def use(self, loss: Loss) -> None:
        """Takes the one right to measure. Raises ValueError where it is another loss, or used up."""
        if self._loss is None or loss != self._loss:
            raise ValueError("this grant was not opened for this measurement")
        self._loss = None

    def guarded(self, draw: Callable[[], Result], table: Table) -> Result:
        """Runs what sees exact numbers, and lets nothing of a failure out but that it failed."""
        done: list[Result] = []
        outcome = "failed"
        end: BaseException | None = None
        step("before-measure")
        try:
            done.append(draw())
        except Stopped:
            outcome = "stopped"
        except Exception:
            outcome = "failed"
        except BaseException as interrupt:  # also the end of the program takes none of the frames along
            outcome, end = "interrupted", type(interrupt)(*interrupt.args)
        step("after-measure")
        if not done:
            _log.warning("reserve %s %s", self.reserve_id, outcome)
            if outcome == "stopped":
                for base in table.bases:
                    self._ledger.freeze(base.name)
            if end is not None:
                raise end
            raise EngineError
        return done[0]

    def frozen(self, table: Table) -> bool:
        """Whether the table waits for its next snapshot."""
        return any(self._ledger.frozen(base.name) for base in table.bases)

    def commit(self, answer: bytes) -> None:
        """Stores the answer, durably, before anybody sees it."""
        self._ledger.commit(self.reserve_id, answer)
        _log.info("reserve %s committed", self.reserve_id)
