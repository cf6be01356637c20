"""The one door. Every number that depends on private rows leaves through `Grant.measure`, and only after its
price is on disk.

    reserve (durable) → exact integers → noise → commit

What holds, and where:
* nothing is computed before `Ledger.reserve` has returned, so a crash, a kill or an error later is charged in full;
* where budgets renew, a charge is admitted only in the period for which the engine's rows were loaded, and nothing is
  drawn for it from rows of another (`trusted.ledger.periods`);
* nobody hands in a loss: the door is opened for a measurement, reserves the loss that follows from what that will do,
  and the grant runs that very value, once; there is no refund and no second draw;
* exact numbers live only in the frames below a measurement's `draw`, in this room. If anything fails there, the caller
  gets a new error with a fixed text, raised outside those frames, so that no traceback, context or log can carry them;
* that it failed is an answer all the same, exact and at no price. So `guarded` records it before anybody hears of it:
  the analyst is suspended on the tables that the measurement reads, and the last of a declared number of failures in a
  snapshot freezes them for everybody (`trusted.ledger`). One analyst's measurements run one after another, each
  checked again when its turn comes: of those that wait when one fails, none runs. So an analyst sees at most one
  failure until the owner acts, and all together at most as many as are declared, and one for each further analyst
  whose measurement runs at that moment.

What is no failure: an engine that ended under somebody else's request; whatever goes wrong with what was released. A
price below `least` is refused, so that even the questions which do not fail are never for nothing.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from discreet.errors import EngineError, LedgerError
from discreet.trusted.ledger.ledger import BudgetLedger, Stored
from discreet.trusted.ring_a.engine import Engine, Lost
from discreet.trusted.ring_a.least import Least
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_a.table import Table, as_table

_log = logging.getLogger("discreet")


Result = TypeVar("Result")
Released = TypeVar("Released", covariant=True)


class Costly(Protocol):
    """What the door is opened for: the table it reads, None for a run over several, and what it costs.

    `loss` is computed from what will be executed, never handed in; it raises ValueError where none can be proved.
    """

    @property
    def loss(self) -> Loss: ...
    @property
    def table(self) -> Table | None: ...


class Measurable(Costly, Protocol[Released]):
    """One kind of measurement: what it costs, the table it reads, and how what is released is drawn."""

    @property
    def table(self) -> Table: ...
    def draw(self, engine: Engine, /) -> Released: ...


WHOLE = "whole "
"""How the keys begin under which ring C keeps what is charged once and released over days (`ring_c.wholes`)."""

Asked = TypeVar("Asked", bound=Costly)
Opened = TypeVar("Opened", covariant=True)


class Door:
    """Holds the ledger and the engine together; nothing else runs plans or reserves losses.

    `tables` are all that are declared; `failures` is how many freeze a table; `least` the least price of a measurement.
    Nothing but what is published is admitted after which the whole budget would not admit `keep`. A measurement, and a
    commit, run `within` a context of the owner's, as one that holds signals back: no promise rests on it.
    """

    def __init__(
        self,
        ledger: BudgetLedger,
        engine: Engine,
        tables: Iterable[Table] = (),
        *,
        failures: int = 1,
        least: Least | None = None,
        keep: Loss | None = None,
        within: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._ledger = ledger
        self._engine = engine
        self._within = within
        self._declared = {table.name: table for table in tables}
        self._tables = _about_people(self._declared.values())
        self._failures = failures
        self._least = least
        self._keep = keep
        self._turns: dict[tuple[int, str], threading.Lock] = {}  # a forked process has its own: see `guarded`
        self._running: set[int] = set()  # reserves whose measurement runs
        self._open: set[int] = set()  # reserves that may still measure, or store an answer
        self._failed: set[int] = set()  # reserves whose failure could not be written
        self._ended = weakref.finalize(self, _end, ledger, self._open, self._running, os.getpid())

    def open(
        self,
        measurement: Asked,
        *,
        analyst: str,
        question: str,
        key: str,
        request: str | None,
        rows: object = None,
        publishing: bool = False,
    ) -> Grant[Asked] | Stored:
        """Reserves a measurement's loss, durably, and gives the right to run that measurement once; or the stored
        answer to the same question. What is kept for `publishing` is kept for that. `rows` are those that
        the `key` speaks of (`Engine.rows`): of a later snapshot nothing is measured. A run without them may go on.

        Raises BudgetError where an account does not admit it, QuestionError where it is below the least price,
        EngineError where the analyst is suspended or a table frozen (nothing is spent); LedgerError where the ledger
        cannot be written or trusted (nothing is measured); ValueError where no loss can be proved for the measurement,
        or it reads a table that is not declared so (nothing is spent).
        """
        if key.startswith(WHOLE):
            raise ValueError("such a key is the door's own")
        loss = self._priced(measurement)
        keep = None if publishing else self._keep
        return self._reserved(measurement, loss, measurement.table, analyst, question, key, request, rows, keep)

    def _priced(self, measurement: Costly) -> Loss:
        """A measurement's loss, which is no less than the least."""
        loss = measurement.loss
        for table in _reads(measurement, measurement.table):
            self.hold_declared(table)
        if self._least is not None:
            self._least.check(loss)
        return loss

    def _reserved(
        self,
        measurement: Any,
        loss: Loss,
        table: Table | None,
        analyst: str,
        question: str,
        key: str,
        request: str | None,
        rows: object,
        keep: Loss | None,
        *,
        alone: bool = False,
        answer: bytes | None = None,
    ) -> Grant[Any] | Stored:
        period = self._engine.period
        for failed in list(self._failed):
            self._ledger.fail(failed)
            self._failed.discard(failed)
        read = _reads(measurement, table)
        names = _about_people(dict.fromkeys(base for one in read for base in one.bases))
        self._ledger.check(names, analyst)
        reserved = self._ledger.reserve(
            loss,
            account=analyst,
            question=question,
            key=key,
            request=request,
            tables=names if read else self._tables,
            limit=self._failures,
            keep=keep,
            period=period,
            answer=answer,
        )
        if isinstance(reserved, Stored):
            _log.info("reserve %s repeated", reserved.reserve_id)
            return reserved
        _log.info("reserve %s admitted", reserved.reserve_id)
        return Grant(self, measurement, reserved.reserve_id, analyst, rows, period, alone=alone)

    def hold_declared(self, table: Table) -> None:
        """Raises ValueError where a table is neither a declared one nor a relation of declared ones. Where a table's
        file lies is no part of it."""
        if table.relation is not None and table != as_table(table.relation):
            raise ValueError("the table differs from the declared one")
        for base in (table,) if table.relation is None else table.bases:
            known = self._declared.get(base.name)
            if known is None or replace(base, source=known.source) != known:
                raise ValueError("the table differs from the declared one")

    def close(self) -> None:
        """Ends what was reserved, has no answer yet, and failed in nothing. Nothing can be opened any more."""
        self._ended()

    def _fail(self, reserve_id: int, tables: Sequence[str]) -> None:
        """Where it cannot be written, nothing is opened until it is; where this process ends first, its end counts."""
        self._open.discard(reserve_id)
        self._failed.add(reserve_id)
        with suppress(LedgerError):
            self._ledger.fail(reserve_id, tables)
            self._failed.discard(reserve_id)


def _reads(measurement: Any, table: Table | None) -> tuple[Table, ...]:
    """What is known to be read when the door is opened: the `table`; of a run over several its `tables`, where it has
    fixed them, so that a frozen one costs nothing; none of a run that chooses as it goes."""
    return (table,) if table is not None else tuple(getattr(measurement, "tables", ()))


def _about_people(tables: Iterable[Table]) -> tuple[str, ...]:
    """The names of those tables that hold anybody's rows: nothing public is ever frozen."""
    return tuple(table.name for table in tables if not table.public)


def _end(ledger: BudgetLedger, reserves: set[int], running: set[int], owner: int) -> None:
    """Also where nobody closed the door, at the end of the process."""
    if owner == os.getpid():
        for reserve_id in reserves - running:
            with suppress(LedgerError):
                ledger.end(reserve_id)


def _anew(kind: type[BaseException], said: tuple[object, ...]) -> BaseException:
    """An interrupt without the frames that it came from, or that what it holds came from; one of the keyboard where its
    kind cannot be made so."""
    try:
        return kind(*said) if all(isinstance(one, int | str | None) for one in said) else KeyboardInterrupt()
    except Exception:
        return KeyboardInterrupt()


class Grant(Generic[Opened]):
    """A reserved price: measures once, then commits what is released. In a `with` block, or at the end of the process,
    what was not committed ends without an answer."""

    def __init__(
        self,
        door: Door,
        measurement: Opened,
        reserve_id: int,
        analyst: str,
        rows: object,
        period: str | None,
        *,
        alone: bool,
    ) -> None:
        self._alone = alone
        self._door, self._ledger, self._engine = door, door._ledger, door._engine
        self._measurement: Opened | None = measurement
        self._analyst, self._rows, self._period = analyst, rows, period
        self._using, self._owner = threading.Lock(), os.getpid()
        self.reserve_id = reserve_id
        door._open.add(reserve_id)

    def measure(self: Grant[Measurable[Released]]) -> Released:
        """What the measurement releases. Raises EngineError with one fixed text whatever fails; the reserve stands."""
        measurement = self.take()
        return self.guarded(lambda: measurement.draw(self._engine), measurement.table)

    def take(self) -> Opened:
        """What this grant was opened for, once: the right to run it. Raises ValueError where it is used up, or in a
        forked process."""
        with self._using:
            measurement, self._measurement = self._measurement, None
        if measurement is None or os.getpid() != self._owner:
            raise ValueError("this grant is already used, or belongs to another process")
        return measurement

    def guarded(self, draw: Callable[[], Result], table: Table) -> Result:
        """Runs what sees exact numbers, and lets nothing of a failure out but that it failed, which is recorded. What
        was not drawn from the rows of the grant, where they are named, or from rows of another period than it was
        charged in, is lost, and no failure."""
        door = self._door
        done: list[Result] = []
        outcome = ""
        end: tuple[type[BaseException], tuple[object, ...]] | None = None
        names = _about_people(table.bases)
        # of this process: in a forked one nobody would let go of what another thread held
        with door._within(), door._turns.setdefault((os.getpid(), self._analyst), threading.Lock()):
            if self.reserve_id not in door._open:
                raise ValueError("this reserve is already settled")
            self._ledger.check(names, self._analyst)
            door._running.add(self.reserve_id)
            try:
                self._hold()
                done.append(draw())
                self._hold()
            except Lost:
                outcome = "lost"
            except Exception:
                outcome = "failed"
            except BaseException as interrupt:  # also the end of the program takes none of the frames along
                outcome = "interrupted"  # nothing is called here: a call may fail, or a second interrupt come in it
                end = interrupt.__class__, interrupt.args
            if outcome in ("failed", "interrupted"):
                door._fail(self.reserve_id, names)
            door._running.discard(self.reserve_id)
        if outcome:
            _log.warning("reserve %s %s", self.reserve_id, outcome)
            raise EngineError if end is None else _anew(*end)
        return done[0]

    def _hold(self) -> None:
        """Raises Lost where the engine has other rows: the owner has taken a new snapshot since; or those of a period
        that began after the charge."""
        engine = self._door._engine
        if (self._rows is not None and engine.rows is not self._rows) or engine.period != self._period:
            raise Lost

    def check(self, table: Table) -> None:
        """Raises EngineError where the analyst is suspended on the table, or it is frozen; ValueError where it is not
        declared so."""
        self._door.hold_declared(table)
        self._ledger.check(_about_people(table.bases), self._analyst)

    def commit(self, answer: bytes) -> None:
        """Stores the answer, durably, before anybody sees it."""
        with self._door._within():
            self._ledger.commit(self.reserve_id, answer, alone=self._alone)
            self._door._open.discard(self.reserve_id)
        _log.info("reserve %s committed", self.reserve_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.reserve_id in self._door._open:
            with suppress(LedgerError):
                self._ledger.end(self.reserve_id)
                self._door._open.discard(self.reserve_id)
