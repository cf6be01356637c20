"""The one door. Every number that depends on private rows leaves through `Grant.measure`, and only after its
price is on disk.

    reserve (durable) → exact integers → noise → commit

What holds, and where:
* nothing is computed before `Ledger.reserve` has returned, so a crash, a kill or an error later is charged in full;
* a grant measures once, and only what its loss was declared for; there is no refund and no second draw;
* the exact integers live in the frames of `_draw` and `_dense` alone. If anything fails there, the caller gets a new
  error with a fixed text, raised outside those frames, so that no traceback, context or log can carry them.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from fractions import Fraction

from discreet.accounting import Loss
from discreet.catalog.model import Table, Value
from discreet.engines.duckdb import DuckDB, Row
from discreet.engines.process import Stopped
from discreet.errors import EngineError
from discreet.ledger import Ledger, Stored
from discreet.ledger.store import step
from discreet.mechanisms import LaplaceThreshold
from discreet.plan.measurement import Measurement, Noisy
from discreet.plan.nodes import Vector

_log = logging.getLogger("discreet")


class Door:
    """Holds the ledger and the engine together; nothing else runs plans or reserves losses."""

    def __init__(self, ledger: Ledger, engine: DuckDB) -> None:
        self._ledger = ledger
        self._engine = engine

    def open(
        self, loss: Loss, table: Table, *, analyst: str, question: str, key: str, request: str | None
    ) -> Grant | Stored:
        """Reserves a loss, durably, and gives the right to measure it once; or the stored answer to the same question.

        Raises BudgetError where an account does not admit it (nothing is spent), LedgerError where the ledger cannot be
        written or trusted (nothing is measured).
        """
        if self._ledger.frozen(table.name):
            raise EngineError(frozen=table.name)
        reserved = self._ledger.reserve(loss, account=analyst, question=question, key=key, request=request)
        if isinstance(reserved, Stored):
            _log.info("reserve %s repeated", reserved.reserve_id)
            return reserved
        _log.info("reserve %s admitted", reserved.reserve_id)
        return Grant(self._ledger, self._engine, loss, table, reserved.reserve_id)


class Grant:
    """A reserved price: measures once, then commits what is released."""

    def __init__(self, ledger: Ledger, engine: DuckDB, loss: Loss, table: Table, reserve_id: int) -> None:
        self._ledger = ledger
        self._engine = engine
        self._loss: Loss | None = loss
        self._table = table
        self.reserve_id = reserve_id

    def measure(self, measurement: Measurement) -> Noisy:
        """The noisy vectors. Raises EngineError with one fixed text whatever fails; the reserve stands."""
        if self._loss is None or measurement.loss != self._loss:
            raise ValueError("this grant was not opened for this measurement")
        self._loss = None
        noisy, outcome = None, "failed"
        end: BaseException | None = None
        step("before-measure")
        try:
            noisy = _draw(self._engine, measurement, self._table)
        except Stopped:
            outcome = "stopped"
        except Exception:
            outcome = "failed"
        except BaseException as interrupt:  # also the end of the program takes none of the frames along
            outcome, end = "interrupted", type(interrupt)(*interrupt.args)
        step("after-measure")
        if noisy is None:
            _log.warning("reserve %s %s", self.reserve_id, outcome)
            if outcome == "stopped":
                self._ledger.freeze(self._table.name)
            if end is not None:
                raise end
            raise EngineError
        return noisy

    def commit(self, answer: bytes) -> None:
        """Stores the answer, durably, before anybody sees it."""
        self._ledger.commit(self.reserve_id, answer)
        _log.info("reserve %s committed", self.reserve_id)


def _draw(engine: DuckDB, measurement: Measurement, table: Table) -> Noisy:
    """Exact integers and their noise, in one frame. Groups are in an order that depends on their keys alone."""
    plan = measurement.plan
    keys, totals = _dense(engine.run(plan.root, table), measurement)
    shown = [True] * len(keys)
    parts: list[tuple[tuple[int, ...], ...]] = []
    for measured in measurement.parts:
        exact = [_combined(vector, totals) for vector in measured.part.vectors]
        if isinstance(measured.mechanism, LaplaceThreshold):
            shown = measured.mechanism.release(exact[0])
            parts.append(())
            continue
        noise = measured.mechanism.release([value for vector in exact for value in vector])
        parts.append(tuple(tuple(noise[i * len(keys) : (i + 1) * len(keys)]) for i in range(len(exact))))
    kept = [index for index, show in enumerate(shown) if show]
    return Noisy(
        tuple(keys[index] for index in kept),
        tuple(tuple(tuple(vector[index] for index in kept) for vector in part) for part in parts),
    )


def _dense(rows: list[Row], measurement: Measurement) -> tuple[list[tuple[Value, ...]], list[tuple[int, ...]]]:
    """The groups and their exact totals: all public keys, empty ones too; with a private key, those that hold rows."""
    plan = measurement.plan
    found: Mapping[tuple[object, ...], tuple[int, ...]] = {_folded(keys): totals for keys, totals in rows}
    if plan.private:
        held = sorted((keys for keys, _ in rows), key=_folded)
        return held, [found[_folded(keys)] for keys in held]
    public = list(itertools.product(*(key.values or () for key in plan.keys)))
    zero = (0,) * len(plan.root.totals)
    return public, [found.get(_folded(keys), zero) for keys in public]


def _folded(keys: tuple[Value, ...]) -> tuple[object, ...]:
    """Keys as the engine compares them: numbers are doubles there."""
    return tuple(float(key) if isinstance(key, Fraction) else key for key in keys)


def _combined(vector: Vector, totals: list[tuple[int, ...]]) -> list[int]:
    return [sum(weight * group[index] for index, weight in vector.weights) for group in totals]
