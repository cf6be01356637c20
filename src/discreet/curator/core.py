"""What every curator can do: open a declaration, answer questions, say what they cost and what is left."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from discreet.accounting import Filter, Loss
from discreet.accounting.odds import best_guess, best_guess_of_budget
from discreet.catalog import Budget, Declaration, Table, declare
from discreet.catalog.model import Source
from discreet.catalog.sources import together
from discreet.door import Door, Groups
from discreet.engines.duckdb import DuckDB
from discreet.errors import QuestionError
from discreet.exact import Number, fraction, show
from discreet.explanation import BudgetState, Explanation
from discreet.holdings import Holdings, typed, unfit
from discreet.ledger import TOTAL, Caps, Ledger, Stored
from discreet.plan.left_out import advice, lost
from discreet.plan.measurement import Measurement, measurement
from discreet.pricing import Within, priced_at
from discreet.release import Release, answer
from discreet.release.choices import choices
from discreet.release.estimate import by_size, cost, expected_errors, mechanisms
from discreet.release.left_out import may_be_left_out
from discreet.release.specials import to_be_found
from discreet.release.table import FREE, Cost
from discreet.schedule import on_schedule
from discreet.sql import Question, lower

if TYPE_CHECKING:
    from discreet.workload import Workload


class Asking:
    """Holds tables about people and answers questions about them with differential privacy.

    `tables` maps names to `discreet.Table`; `epsilon`, `delta` and `keys_delta` are the budget for the people in them,
    over everybody who asks, for ever. With `ledger` (a path) what was spent lasts; without, it ends with this object.
    `analysts` maps names to their own smaller budgets. Raises DeclarationError with every fault at once.
    """

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        epsilon: Number,
        delta: Number = 0,
        keys_delta: Number | None = None,
        ledger: str | Path | None = None,
        analysts: Mapping[str, Number] | None = None,
        engine: Mapping[str, int] | None = None,
    ) -> None:
        budget: dict[str, Any] = {"epsilon": _written(epsilon), "delta": _written(delta)}
        if keys_delta is not None:
            budget["keys_delta"] = _written(keys_delta)
        raw: dict[str, Any] = {
            "budget": budget,
            "tables": {name: getattr(table, "declaration", table) for name, table in tables.items()},
            "analysts": {name: {"epsilon": _written(own)} for name, own in (analysts or {}).items()},
            "engine": engine or {},
        }
        self._start(replace(declare(raw), ledger=Path(ledger) if ledger is not None else None), load=True)

    @classmethod
    def of(cls, declaration: Declaration, *, load: bool = True) -> Self:
        """The curator of a validated declaration. Without `load`, tables are read when a question first needs them."""
        curator = cls.__new__(cls)
        curator._start(declaration, load=load)
        return curator

    def _start(self, declaration: Declaration, *, load: bool) -> None:
        self._engine = DuckDB(declaration.limits)
        if load:
            self._engine.start()
        self._declaration = typed(declaration, self._engine)
        self._ledger = Ledger(declaration.ledger)
        accounts = {TOTAL: declaration.budget, **declaration.analysts}
        self._ledger.register(
            {name: _caps(budget) for name, budget in accounts.items()}, repr(dict(self._declaration.tables))
        )
        self._door = Door(self._ledger, self._engine)
        self._holdings = Holdings(self._declaration, self._engine, self._ledger)
        if load:
            self._holdings.load()

    def ask(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Release:
        """The answer to a question, with noise that costs `epsilon` (and `delta`) of the budget.

        `within` asks instead for the smallest price at which a column's error stays that small: {"n": 100}, {"n": "5 %
        of 2000"}, {"mean": "0.5 of 300"} (in groups of at least 300 rows), with `confidence`, for one cell, or for all
        cells `together`.
        `analyst` names who asks; `request` makes a retry safe: the same id gives the same answer and no second charge.
        A question asked before, by anybody, is answered from the ledger with the same bytes.

        Raises QuestionError or BudgetError (nothing was spent), EngineError (the price stays charged), LedgerError.
        """
        with self._on_schedule():
            wanted = _wanted(within, confidence, together)
            return self._asked(question, epsilon, delta, wanted, self._account(analyst), request)

    def _asked(
        self,
        question: str,
        epsilon: Number | None,
        delta: Number | None,
        within: Within | None,
        account: str,
        request: str | None,
    ) -> Release:
        priced, table = self._priced(question, epsilon, delta, within)
        self._holdings.load()
        key = self._key(table, priced)
        reserved = self._door.open(priced.loss, table, analyst=account, question=question, key=key, request=request)
        if isinstance(reserved, Stored):
            paid = cost(priced) if reserved.charged else FREE
            return self._release(json.loads(reserved.answer), priced.loss, paid)
        stored = json.dumps(answer(priced, reserved.measure(Groups(priced, table)), table), ensure_ascii=False).encode()
        reserved.commit(stored)
        return self._release(json.loads(stored), priced.loss, cost(priced))  # what a repeat will read

    def _release(self, content: Mapping[str, Any], loss: Loss, charged: Cost) -> Release:
        total = self._ledger.filter(TOTAL)
        notes = () if self._declaration.ledger else ("ledger in memory: it ends with this curator",)
        return Release(content, charged, _used(total), total, loss, notes)

    def explain(
        self,
        question: str | Workload,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
    ) -> Explanation:
        """Price and expected error of a question, or of a workload. Spends nothing, reads no row, does not tell what
        was asked before."""
        if not isinstance(question, str):
            from discreet.workload.answers import answering

            call = answering(self._declaration, question, epsilon, delta, within)
            percent, more, odds = self._takes(call.loss)
            errors, how = call.expected_error, tuple(call.mechanisms)
            return Explanation(call.cost, percent, more, errors, how, call.bounds, (), (), *odds)
        priced, table = self._priced(question, epsilon, delta, _wanted(within, confidence, together))
        percent, more, odds = self._takes(priced.loss)
        return Explanation(
            cost(priced),
            percent,
            more,
            expected_errors(priced),
            tuple(mechanisms(priced)),
            (*to_be_found(priced), *lost(priced.plan, table)),
            advice(priced.plan, table),
            by_size(priced),
            *odds,
            may_be_left_out(priced, table),
            choices(priced, table),
        )

    def _takes(self, loss: Loss) -> tuple[float, int, tuple[float, float]]:
        """What a loss takes of the whole budget, in percent; how many like it fit; and an attacker's odds, after it and
        after the whole budget."""
        total = self._ledger.filter(TOTAL)
        taken = float(max(Fraction(0), total.after(loss).used() - total.used()) * 100)
        return taken, total.left(loss), (best_guess(loss), best_guess_of_budget(total.epsilon, total.delta))

    def check(self) -> None:
        """Holds the declaration against its sources: files, columns and types, without reading a row.

        Raises DeclarationError with every fault at once.
        """
        if errors := unfit(self._declaration.tables.values(), self._engine):
            raise together(errors, str(self._declaration.file or ""))

    def engine_sql(self, question: str) -> str:
        """The statements that the engine would run, with a placeholder for the salt. For the owner only."""
        checked, _ = self._lowered(question)
        return self._statements(checked)

    def left(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
    ) -> int:
        """How many more questions of this one's price the budget admits."""
        priced, _ = self._priced(question, epsilon, delta, _wanted(within, confidence, together))
        return self._ledger.filter(TOTAL).left(priced.loss)

    @property
    def budget(self) -> BudgetState:
        """The whole budget and how much of it is used."""
        total = self._ledger.filter(TOTAL)
        keys = total.spent.keys / total.keys_delta if total.keys_delta else Fraction(0)
        amounts = {
            "epsilon": show(total.epsilon),
            "delta": show(total.delta),
            "keys_delta": show(total.keys_delta),
        }
        return BudgetState(amounts, _used(total), float(keys * 100), self._declaration.ledger is not None)

    @property
    def ledger(self) -> Ledger:
        """The ledger itself: entries, verification, head."""
        return self._ledger

    @property
    def declaration(self) -> Declaration:
        """What the owner declared."""
        return self._declaration

    def refresh(self) -> None:
        """Takes the sources as they are now for the new snapshot, and thaws tables that were frozen. The owner's act:
        old and new versions hold the same persons, so the budget goes on."""
        self._holdings.load(refresh=True)

    def close(self) -> None:
        """Ends the engine and closes the ledger."""
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Curator of {', '.join(self._declaration.tables)}: {self.budget!r}"

    def _on_schedule(self) -> AbstractContextManager[None]:
        """Holds back whatever comes of a question until the declared time, answer or error."""
        return on_schedule(self._declaration.limits.answer_seconds)

    def _priced(
        self, question: str, epsilon: Number | None, delta: Number | None, within: Within | None
    ) -> tuple[Measurement, Table]:
        """A question at its price, and what it reads."""
        checked, table = self._lowered(question)
        return measurement(checked.plan, priced_at(checked, self._declaration, epsilon, delta, within)), table

    def _lowered(self, question: str) -> tuple[Question, Table]:
        checked = lower(question, self._declaration, self._holdings.public_values)
        try:  # what the engine's statement is too deep for is refused while it costs nothing
            _below(_FRAMES, lambda: self._statements(checked))
        except RecursionError:
            fix = "ask something simpler"
            raise QuestionError("syntax", "this is nested too deeply", where="question", fix=fix) from None
        return checked, checked.table

    def _statements(self, checked: Question) -> str:
        return ";\n\n".join(self._engine.sql(root, checked.table) for root in checked.plan.roots)

    def _account(self, analyst: str | None) -> str:
        if analyst is None:
            return TOTAL
        declared = self._declaration.analysts
        if not isinstance(analyst, str) or not analyst or (declared and analyst not in declared):
            fix = f"name one of {', '.join(declared)}" if declared else 'write analyst="ana"'
            raise QuestionError("analyst", "this analyst is not declared", where="analyst", fix=fix)
        return analyst

    def _key(self, table: Table, priced: Measurement) -> str:
        """What makes two questions the same: plan with its bounds, declaration, snapshot and price.

        Where the source's file lies is no part of it: the snapshot says what was read.
        """
        parts = [
            repr(priced.plan),
            *(repr(replace(base, source=Source(base.source.kind))) for base in table.bases),
            repr(priced.price),
            self._holdings.number(table),
            self._engine.name,
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


_FRAMES = 40
"""Calls between here and the engine's statement, when a question is measured, are fewer than this."""


def _below(frames: int, make: Callable[[], str]) -> str:
    """What `make` gives, called from that many frames further down."""
    return make() if frames == 0 else _below(frames - 1, make)


def _written(value: Number) -> Number:
    """A number that Python gives as text, as a declaration's file would have it."""
    try:
        return fraction(value) if isinstance(value, str) else value
    except ValueError:
        return value  # the declaration names the fault


def _wanted(within: Mapping[str, Number] | None, confidence: Number, together: bool) -> Within | None:
    return None if within is None else Within(within, confidence, together)


def _caps(budget: Budget) -> Caps:
    return Caps(budget.epsilon, budget.delta, budget.keys_delta)


def _used(total: Filter) -> float:
    return float(min(Fraction(1), total.used()) * 100)
