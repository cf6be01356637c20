"""The curator's core: opens a declaration, and hands what it is asked to what plans, prices, answers and explains."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from discreet.accounting.balance import Balance
from discreet.catalog import Declaration, declare
from discreet.catalog.listing import Tables, listed
from discreet.catalog.price import hold_part
from discreet.catalog.sources import together
from discreet.curator.answering import QuestionAnswering
from discreet.curator.balances import balances_of
from discreet.curator.by_state import ByState, opened
from discreet.curator.explaining import Explaining
from discreet.curator.lookup import Lookup
from discreet.curator.measurements import Measurements
from discreet.curator.measuring import Measuring
from discreet.curator.options import AskOptions, wanted
from discreet.curator.owner_acts import freeze, lift, refresh
from discreet.curator.planning import Planner
from discreet.curator.prices import Prices
from discreet.curator.registration import assigning_of, register, renewal_of
from discreet.curator.request_ids import RequestIds
from discreet.curator.stored_answers import StoredAnswers
from discreet.engines import chosen
from discreet.errors import DeclarationError
from discreet.explanation import BudgetState, Explanation
from discreet.finishing import finishing
from discreet.holdings import Holdings, KeptTable, Refreshed, typed, unfit
from discreet.ledger import TOTAL, Ledger
from discreet.ledger.store import EVERY_TABLE
from discreet.ledger.words import check_request
from discreet.locks import Lock
from discreet.postprocessing import computing
from discreet.procedures.progress import progress
from discreet.reading import Reading
from discreet.release import Release
from discreet.schedule import Slot, on_schedule
from discreet.sql.compiled import Askable, as_text
from discreet.trusted.ring_a.exact import Number, fraction
from discreet.trusted.ring_a.gate import Door

if TYPE_CHECKING:
    from discreet.synthesis.state import SyntheticState
    from discreet.workload import Workload


class Asking:
    """Holds tables about people and answers questions about them with differential privacy.

    `tables` maps names to `discreet.Table`; `epsilon`, `delta` and `keys_delta` are the budget for the people in them,
    over everybody who asks, for ever. With `ledger` (a path) what was spent lasts; without, it ends with this object.
    `analysts` maps names to their own smaller budgets; `least` is the least price of a question. `schema` is what
    questions may write before a table's name, `date` what NOW() means in them. With
    `reserve={"publish": 1}` nothing is admitted after which a table could not be published at ε 1. With `share_answers`
    analysts without own budgets are answered from what was measured for others, too. A budget that is
    larger than the ledger's is refused, unless `raise_budget` says that it is the owner's word. Where `analysts` are
    declared, whatever costs or is priced names one of them, unless `owner` says that the owner asks. With
    `parts="patients.clinic"` each clinic has this budget: a person is in the one where they are first seen.

    Raises DeclarationError with every fault at once, LedgerError where the ledger cannot be trusted.
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
        engine: Mapping[str, int | str] | None = None,
        least: Number | None = None,
        schema: str | None = None,
        date: datetime.date | None = None,
        reserve: Mapping[str, Number] | None = None,
        share_answers: bool = False,
        raise_budget: bool = False,
        owner: bool = False,
        parts: str | None = None,
    ) -> None:
        budget: dict[str, Any] = {"epsilon": _written(epsilon), "delta": _written(delta)}
        if reserve is not None:
            named = isinstance(reserve, Mapping)
            budget["reserve"] = {name: _written(price) for name, price in reserve.items()} if named else reserve
        if parts is not None:
            budget["parts"] = parts
        if keys_delta is not None:
            budget["keys_delta"] = _written(keys_delta)
        raw: dict[str, Any] = {
            "budget": budget,
            "tables": _named(tables, lambda table: getattr(table, "declaration", table)),
            "analysts": _named(analysts or {}, lambda own: {"epsilon": _written(own)}),
            "engine": engine or {},
            "question": ({} if least is None else {"least": _written(least)})
            | ({} if date is None else {"date": date})
            | ({} if share_answers is False else {"share_answers": share_answers}),
            "schema": {} if schema is None else {"name": schema},
            "ledger": ledger,
        }
        self._start(declare(raw, python=True), load=True, raise_budget=raise_budget, owner=owner)

    @classmethod
    def of(
        cls,
        declaration: Declaration,
        *,
        load: bool = True,
        raise_budget: bool = False,
        owner: bool = False,
        registered: bool = False,
    ) -> Self:
        """Makes the curator of a validated declaration.

        Without `load`, tables are read when a question first needs them. One that is `registered`, as another process
        of the owner's has opened it, is not written to the ledger: the caps are those that stand there.

        Raises DeclarationError with every fault at once, LedgerError where the ledger cannot be trusted.
        """
        curator = cls.__new__(cls)
        curator._start(declaration, load=load, raise_budget=raise_budget, owner=owner, registered=registered)
        return curator

    def _start(
        self, declaration: Declaration, *, load: bool, raise_budget: bool, owner: bool, registered: bool = False
    ) -> None:
        self._turn = Lock()
        self._of_parts: dict[str, Self] = {}
        self._engine = chosen.engine(declaration.limits)
        if load:
            self._engine.start()
        self._declaration = typed(declaration, self._engine)
        self._twin = self._engine.trial(self._declaration.tables.values())
        if load:
            self._twin.start()
        self._reading = Reading(self._declaration)
        if load:
            self._reading.start()
        self._ledger = Ledger(declaration.ledger)
        if not registered:
            register(self._ledger, self._declaration, raising=raise_budget)
        self._balances = balances_of(self._declaration, self._ledger, owner=owner)
        self._door = self._opened_door()
        self._ledger.settle()
        state = opened(self._declaration, self._door, self._engine)
        self._holdings = Holdings(
            self._declaration,
            self._engine,
            self._ledger,
            renewal_of(self._declaration),
            assigns=assigning_of(self._declaration),
        )
        self._outer = computing.OuterEngine()
        self._arrange(state)
        declared = self._declaration.budget.parts
        for part in () if declared is None else declared.values:
            self._open_part(part)
        if load:
            self._load()

    def _arrange(self, state: SyntheticState | None) -> None:
        """Puts together what plans, prices, answers and explains, over the rows that are held. Each knows those before
        it alone."""
        declaration, ledger, holdings, balances = self._declaration, self._ledger, self._holdings, self._balances
        least, part, name = balances.least, balances.part, self._engine.name
        self._kept_under = name if part is None else f"{name} of {part!r}"
        """What answers are kept under, with the snapshots: those of a part's rows under another name than of all."""
        planner = Planner(declaration, self._reading, holdings, self._twin, self._outer)
        measurements = Measurements(declaration, ledger, holdings, planner, least, self._kept_under)
        shared = declaration.share_answers
        answers = StoredAnswers(ledger, measurements.replanned, measurements.hear, shared=shared)
        lookup = Lookup(ledger, holdings, planner, answers, least, self._kept_under)
        ids = RequestIds(ledger, planner, measurements, lookup)
        asks = ByState(state, ledger, holdings, balances)
        prices = Prices(declaration, ledger, holdings, planner, measurements, answers, lookup, asks, balances)
        measuring = Measuring(ledger, self._door, holdings, answers, lookup, asks, ids, balances)
        self._planner, self._measurements, self._request_ids, self._prices = planner, measurements, ids, prices
        self._answering = QuestionAnswering(
            declaration, ledger, self._outer, planner, measurements, prices, lookup, asks, ids, measuring, balances
        )
        self._explaining = Explaining(declaration, holdings, prices, lookup, asks, balances)

    def _open_part(self, part: str) -> None:
        """Makes the curator of the rows of a part's persons alone. It has an engine and answers of its own, and all
        else with this one: also its turn, and what is open at the door or failed there."""
        one = cast("Self", copy.copy(self))
        one._balances, one._of_parts = self._balances.parts[part], {}
        one._engine = chosen.engine(self._declaration.limits)
        one._door = copy.copy(self._door)
        one._door._engine = one._engine
        one._holdings = self._holdings.of_part(part, one._engine)
        one._arrange(None)
        self._of_parts[part] = one

    def _about(self, part: str | None) -> Self:
        """The curator of the rows of a part's persons alone; without a part, of all. Raises QuestionError where there
        is no such part."""
        if part is None:
            return self
        hold_part(self._declaration, part)
        return self._of_parts[part]

    def _opened_door(self) -> Door:
        known, failures = self._declaration.tables.values(), self._declaration.limits.failures
        least, keep = self._balances.least, self._balances.kept
        return Door(self._ledger, self._engine, known, failures=failures, least=least, keep=keep, within=finishing)

    def _load(self) -> None:
        """Loads the tables. What is not what it was is said by whatever needs it: the owner may take it before."""
        try:
            with progress(f"loading {', '.join(self._declaration.tables)}"):
                self._holdings.load()
        except DeclarationError as error:
            if error.code != "changed":
                raise

    def ask(
        self,
        question: Askable,
        epsilon: Number | None = None,
        *,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
        default_price: bool = True,
        reuse: bool = True,
        analyst: str | None = None,
        request: str | None = None,
        dialect: str | None = None,
        part: str | None = None,
    ) -> Release:
        """Answers a question, with noise that costs `epsilon` (and `delta`) of the budget.

        The question is a text, a tree of sqlglot, or an expression of Ibis on the tables of `curator.ibis()`.
        `within` asks instead for the smallest price at which a column's error stays that small: {"n": 100}, {"n": "5 %
        of 2000"}, {"mean": "0.5 of 300"} (in groups of at least 300 rows; of 1,000 where none are named, which a
        warning says), with `confidence`, for one cell, or for all cells `together`.
        `analyst` names who asks; `request` makes a retry safe: the same id gives the same answer and no second charge,
        and belongs to one question: with another it is refused, also where that would be free.
        A question asked before, by anybody, is answered from the ledger with the same bytes. One that names no price
        gets the answer that is stored for `analyst`, whatever was paid for it; else it costs what the owner declares:
        for this analyst, or for all unless `default_price` is False, for tools that ask by themselves.
        What was measured for an earlier question answers this one for nothing, where it is as precise as this price
        would be alone, or within the wanted error; its intervals hold whatever is asked for after the noise was seen,
        and are at most 1.5 times as wide. Where stored noise that nobody has seen is less precise, what is missing is
        bought, and costs less than `epsilon`: `charged` says how much. `reuse=False` measures afresh: only the same
        question is free then.
        `dialect` says whose SQL it is, as "postgres" or "bigquery": it is read as it is meant there.
        With `part`, where parts have a budget each, the tables hold the rows of that part's persons alone, and that
        part's budget alone pays; without, all rows, and the budgets of all parts do.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        check_request(request)
        one = self._about(part)
        with one._on_schedule(one._turn) as slot:
            errors, account = wanted(within, confidence, together), one._balances.of(analyst)
            options = AskOptions(epsilon, delta, errors, account, request, default_price, reuse)
            return one._answering.answer(one._planner.asked(question, dialect), options, slot)

    def balance(self, account: str = TOTAL, part: str | None = None) -> Balance:
        """Says how much of the budget is left to the analyst whose `account` it is, or to the owner.

        With `part`, of what is asked of the rows of that part's persons alone: its own budget pays for that. Raises
        QuestionError where nobody of that name is declared, or no such part, LedgerError.
        """
        balances = self._about(part)._balances
        return balances.balance(account if account == TOTAL else balances.of(account))

    def explain(
        self,
        question: Askable | Workload,
        epsilon: Number | None = None,
        *,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
        default_price: bool = True,
        reuse: bool = True,
        analyst: str | None = None,
        dialect: str | None = None,
        part: str | None = None,
    ) -> Explanation:
        """Says the price and expected error of a question, or of a workload, and what `analyst` would have left.

        The arguments are those of `ask`, of a workload those of `answer`. Nothing is spent, no row is read, and what
        others asked before is not told.
        Where what was measured for `analyst` answers the question, it says that it is free, and how far off it is then;
        where no price is named and an answer is stored, at which price. Of the same question at the same named price
        it says the price whether it was asked before or not, though a repeat is free.
        Raises QuestionError, DeclarationError, LedgerError, and EngineError where the engine is busy.
        """
        one = self._about(part)
        account, question = one._balances.of(analyst), as_text(question)
        if not isinstance(question, str):
            from discreet.workload.answers import answering

            wanted(within, confidence, together)
            call = answering(one._declaration, question, epsilon, delta, within)
            return one._explaining.explain_workload(call, account)
        with one._on_schedule():
            errors = wanted(within, confidence, together)
            options = AskOptions(epsilon, delta, errors, account, None, default_price, reuse)
            return one._explaining.explain(one._planner.asked(question, dialect), options)

    def check(self) -> None:
        """Holds the declaration against its sources: files, columns and types, without reading a row.

        Raises DeclarationError with every fault at once.
        """
        engine = chosen.engine(self._declaration.limits) if self._engine.shut else self._engine
        try:
            errors = unfit(self._declaration.tables.values(), engine)
        finally:
            if engine is not self._engine:
                engine.close()
        if errors:
            raise together(errors, str(self._declaration.file or ""))

    def check_question(self, question: Askable, *, dialect: str | None = None) -> tuple[str, ...]:
        """Says whether a question can be asked, whatever its price, and gives the names of the tables it measures.

        Nothing is spent, and no row is read. Raises QuestionError, DeclarationError, LedgerError, and EngineError
        where the engine is busy.
        """
        with self._on_schedule():
            found = self._planner.read(self._planner.asked(question, dialect))
            return tuple(sorted({base.name for one in found.layers.measured for base in one.question.table.bases}))

    def columns_of(
        self,
        question: Askable,
        epsilon: Number | None = None,
        *,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
        default_price: bool = True,
        analyst: str | None = None,
        dialect: str | None = None,
        part: str | None = None,
    ) -> dict[str, str]:
        """Says which columns the answer to a question has, each with its type: `Explanation.columns`.

        The arguments are those of `ask`. Nothing is spent, and no row is read. It is said at once, on a schedule too:
        it follows from the question, the declaration, public tables and, where no price is named, from what the same
        account has paid for before.
        Raises QuestionError, DeclarationError, LedgerError, and EngineError where the engine is busy.
        """
        one = self._about(part)
        errors, account = wanted(within, confidence, together), one._balances.of(analyst)
        options = AskOptions(epsilon, delta, errors, account, default_price=default_price)
        return one._prices.of(one._planner.asked(question, dialect), options).columns

    def engine_sql(self, question: Askable, *, dialect: str | None = None) -> str:
        """Writes the statements that the engine would run, with a placeholder for the salt. For the owner only.

        Raises QuestionError.
        """
        found = self._planner.read(self._planner.asked(question, dialect))
        statements = [
            self._engine.sql(root, one.question.table)
            for one in found.layers.measured
            for root in one.question.plan.roots
        ]
        return ";\n\n".join([*statements, *([] if found.outer is None else [found.outer.text])])

    def left(
        self,
        question: Askable,
        epsilon: Number | None = None,
        *,
        delta: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        together: bool = False,
        analyst: str | None = None,
        dialect: str | None = None,
    ) -> int:
        """Counts how many more questions of this one's price fit into what is left to `analyst`.

        The arguments are those of `ask`. Nothing is spent. Raises QuestionError, DeclarationError, LedgerError, and
        EngineError where the engine is busy.
        """
        account = self._balances.of(analyst)
        with self._on_schedule():
            errors = wanted(within, confidence, together)
            options = AskOptions(epsilon, delta, errors, account)
            asked = self._prices.of(self._planner.asked(question, dialect), options)
            return self._balances.balance(account).more(asked.loss)

    @property
    def budget(self) -> BudgetState:
        """The whole budget and how much of it is used, and the same of each declared analyst. Raises LedgerError."""
        return self._balances.state()

    def budget_of(self, analyst: str) -> BudgetState:
        """Says how much of one analyst's own budget is used, as `budget` does; and of each part, what both leave.

        Raises QuestionError where nobody of that name is declared, LedgerError.
        """
        return self._balances.state_of(self._balances.of(analyst))

    @property
    def ledger(self) -> Ledger:
        """The ledger itself: entries, verification, head."""
        return self._ledger

    @property
    def tables(self) -> Tables:
        """What may be asked about: whose rows the tables hold, their columns, types, bounds and values. Print it."""
        return listed(self._declaration)

    @property
    def declaration(self) -> Declaration:
        """What the owner declared."""
        return self._declaration

    def refresh(self, *tables: str) -> Refreshed:
        """Takes the sources of these tables, or of all, as they are now for their new snapshot.

        It thaws what was frozen in them and lifts who was suspended on them. Answers from them cost anew, answers from
        other tables stay free; but for those about one part, where the table is new that says who is in it. A source
        that is to stay as it was, and is not, is refused.

        The owner's act: old and new versions hold the same persons, so the budget goes on. Gives the names of those
        tables that are not as they were, and says of each what was done: for the owner alone, as it depends on rows and
        costs nothing.

        Raises QuestionError for a table that is not declared, DeclarationError where a source cannot be taken,
        LedgerError.
        """
        return refresh(self._declaration, self._holdings, self._turn, tables)

    @property
    def kept(self) -> Mapping[str, KeptTable]:
        """Where each table is kept, in memory or in a file, with its size; for the owner. Reads no row."""
        return self._holdings.states()

    @property
    def engine_starts(self) -> int:
        """How often the engine's process was started, and that of each part: more than once where one was ended.

        For the owner.
        """
        return self._engine.starts + sum(one._engine.starts for one in self._of_parts.values())

    def freeze(
        self, analyst: str | None = None, *, tables: Sequence[str] = (), reason: str, by: str | None = None
    ) -> bool:
        """Lets nothing be measured for an analyst until `lift`; without a name, for nobody, whoever asks.

        With `tables` about people, nothing that reads one of them, alone or joined to others. The owner's act, which
        the ledger keeps with its `reason`, and with the account `by` which it came. It costs nothing, and gives nothing
        back. Gives False where they are frozen already.

        Raises QuestionError where there is no such analyst, no such table or no reason, LedgerError.
        """
        name = TOTAL if analyst is None else self._balances.of(analyst)
        return freeze(self._declaration, self._ledger, name, tables, reason, by)

    def lift(
        self,
        analyst: str | None = None,
        *,
        tables: Sequence[str] = (),
        reason: str | None = None,
        by: str | None = None,
    ) -> tuple[str, ...]:
        """Lets an analyst ask again who is frozen, or suspended since a measurement failed.

        Without a name, those who name none, and everybody whom `freeze` without a name has frozen. With `tables`, about
        these alone; a freeze for single tables ends by their names alone.

        The owner's act. Gives the names of the tables where they were suspended, or frozen by name. What failed stays
        counted until the next snapshot. Raises QuestionError, LedgerError.
        """
        name = TOTAL if analyst is None else analyst
        return lift(self._declaration, self._ledger, name, tables, reason, by)

    @property
    def frozen(self) -> frozenset[str | None]:
        """The analysts whom the owner has frozen; None among them where it is everybody. Raises LedgerError."""
        return frozenset(name or None for name, table in self._ledger.stopped if table == EVERY_TABLE)

    @property
    def frozen_tables(self) -> Mapping[str | None, tuple[str, ...]]:
        """The tables for which the owner has frozen an analyst; of None, those for everybody. Raises LedgerError."""
        found: dict[str | None, tuple[str, ...]] = {}
        for name, table in sorted(self._ledger.stopped):
            if table != EVERY_TABLE:
                found[name or None] = (*found.get(name or None, ()), table)
        return found

    def close(self) -> None:
        """Ends the engine and closes the ledger."""
        self._door.close()  # that of all parts, too
        for one in self._of_parts.values():
            one._engine.close()
            one._holdings.close()
        self._reading.close()
        self._engine.close()
        self._twin.close()
        self._outer.close()
        self._holdings.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Curator of {', '.join(self._declaration.tables)}: {self.budget!r}"

    def _on_schedule(self, turn: Lock | None = None) -> AbstractContextManager[Slot]:
        """Holds back whatever comes of a question until the declared time, answer or error. Loading the tables is the
        owner's act and no part of that time."""
        seconds = self._declaration.limits.answer_seconds or None
        if seconds is not None:
            self._holdings.load()
            self._holdings.load_public()
            self._twin.wait()
            self._reading.wait()
        return on_schedule(seconds, turn)


def _written(value: Number) -> Number:
    """A number that Python gives as text, as a declaration's file would have it."""
    try:
        return fraction(value) if isinstance(value, str) else value
    except ValueError:
        return value  # the declaration names the fault


def _named(given: Any, read: Callable[[Any], Any]) -> Any:
    """What a mapping names, as a declaration's file would have it; the declaration names the fault of all else."""
    return {name: read(value) for name, value in given.items()} if isinstance(given, Mapping) else [given]
