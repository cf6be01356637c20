"""The curator's core: opens a declaration, answers questions, prices them, and reports the budget."""

from __future__ import annotations

import datetime
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from discreet.accounting import Loss
from discreet.accounting.balance import Balance, ends, percent_of, promise, published, used
from discreet.catalog import Budget, Declaration, Table, declare
from discreet.catalog.listing import Tables, listed
from discreet.catalog.model import Renewal, Renews
from discreet.catalog.sources import together
from discreet.curator.plans import Plans
from discreet.curator.plans import price_of as asked_price
from discreet.curator.unpriced import SHARES, no_price
from discreet.curator.warned import warn
from discreet.engines import chosen
from discreet.errors import DeclarationError, QuestionError
from discreet.explanation import BudgetState, Explanation
from discreet.holdings import Holdings, KeptTable, Refreshed, typed, unfit
from discreet.intervals.expected import by_size, expected_errors
from discreet.ledger import TOTAL, Caps, Ledger, Unit
from discreet.ledger.store import EVERY_TABLE
from discreet.ledger.words import check_text, reasoned
from discreet.odds import ALMOST_SURE, best_guess, best_guess_of_budget, chance
from discreet.plan.left_out import advice
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.split import measurement
from discreet.plan.work import bound
from discreet.postprocessing import computing
from discreet.postprocessing.outer import OuterQuery, ReleasedTable, outer_query, released_tables
from discreet.pricing import Within, assumed, complete, names_price, priced_at, shared
from discreet.procedures.progress import progress
from discreet.procedures.run import declared, digest, released
from discreet.reading import Reading
from discreet.release import Release, answer
from discreet.release.content import FREE, Cost, ReleaseContent
from discreet.release.estimate import mechanisms
from discreet.release.foreseen import ESTIMATE, column_types
from discreet.release.left_out import may_be_left_out
from discreet.release.limit_advice import choices
from discreet.release.reused import MOST_READ, MOST_TRIED, ReusableMeasurement, frame, reused
from discreet.release.stored import measured, price_of, read, written
from discreet.schedule import Slot, engine_time_over, on_schedule
from discreet.sql import Question, lower_tree
from discreet.sql.asked import Asked
from discreet.sql.compiled import Askable, as_text
from discreet.sql.layers import Layers, MeasuredTable, filled, layers, stand_in
from discreet.sql.limits import frames, room, too_deep
from discreet.sql.refusals import several_rows
from discreet.sql.scope import numbered
from discreet.trusted.ring_a.exact import Number, floor, fraction, show
from discreet.trusted.ring_a.forks import Lock
from discreet.trusted.ring_a.gate import Door
from discreet.trusted.ring_a.least import Least
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_a.table import Value
from discreet.trusted.ring_b.questions import Groups

if TYPE_CHECKING:
    from discreet.workload import Workload


PART = "\x1f"
"""Between the name of a request and the number of a part of its question: a name that somebody thinks of has none."""

_log = logging.getLogger("discreet")


@dataclass(frozen=True)
class PricedPart:
    """A measured table of a question, and its measurement at its part of the price."""

    layer: MeasuredTable
    measured: Measurement

    @property
    def table(self) -> Table:
        """What it reads."""
        return self.layer.question.table


@dataclass(frozen=True)
class PlannedLayers:
    """A question without its price. `outer` is computed from what its parts release, with `values` that some parts wait
    for; `tables` are what both may read, and `data` is known of them beforehand: declared groups and public tables."""

    asked: Asked
    layers: Layers
    outer: OuterQuery | None = None
    values: Mapping[str, OuterQuery] = field(default_factory=dict)
    tables: Mapping[str, ReleasedTable] = field(default_factory=dict)
    data: Mapping[str, computing.Columns] = field(default_factory=dict)
    known: Mapping[str, Sequence[Value | None]] = field(default_factory=dict)
    """Those of the values that are of public tables alone."""
    kinds: Sequence[str] = ()
    """The types of the columns of the outer query."""

    @property
    def small(self) -> bool:
        """Whether it may be kept."""
        return sum(len(column) for one in self.data.values() for column in one.values()) <= _FEW_VALUES


@dataclass(frozen=True)
class PricedLayers:
    """A question at its price. Where it is `stored`, the parts are at prices of answers that are stored for whoever
    asks, and nothing is to be measured for it."""

    planned: PlannedLayers
    parts: tuple[PricedPart, ...]
    stored: bool = False

    @property
    def columns(self) -> dict[str, str]:
        """The answer's columns, each with its type."""
        if self.planned.outer is None:
            return column_types(self.parts[0].measured)
        boxed = zip(self.planned.outer.columns, self.planned.kinds, strict=False)
        return {name: f"{ESTIMATE if followed.boxed else ''}{kind}" for (name, followed), kind in boxed}

    @property
    def loss(self) -> Loss:
        """All that its parts lose together."""
        return _together(self.parts)

    @property
    def cost(self) -> Cost:
        prices = [part.measured.price for part in self.parts]
        return Cost(epsilon=float(sum(one.epsilon for one in prices)), delta=float(sum(one.delta for one in prices)))

    @property
    def expected(self) -> dict[str, float]:
        """The expected error of each column of its parts."""
        found: dict[str, float] = {}
        for part in self.parts:
            for name, error in expected_errors(part.measured).items():
                found[next(one for one in numbered(name) if one not in found)] = error
        return found


class Asking:
    """Holds tables about people and answers questions about them with differential privacy.

    `tables` maps names to `discreet.Table`; `epsilon`, `delta` and `keys_delta` are the budget for the people in them,
    over everybody who asks, for ever. With `ledger` (a path) what was spent lasts; without, it ends with this object.
    `analysts` maps names to their own smaller budgets; `least` is the least price of a question. `schema` is what
    questions may write before a table's name, `date` what NOW() means in them. With
    `reserve={"publish": 1}` nothing is admitted after which a table could not be published at ε 1. A budget that is
    larger than the ledger's is refused, unless `raise_budget` says that it is the owner's word. Where `analysts` are
    declared, whatever costs or is priced names one of them, unless `owner` says that the owner asks.

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
        raise_budget: bool = False,
        owner: bool = False,
    ) -> None:
        budget: dict[str, Any] = {"epsilon": _written(epsilon), "delta": _written(delta)}
        if reserve is not None:
            named = isinstance(reserve, Mapping)
            budget["reserve"] = {name: _written(price) for name, price in reserve.items()} if named else reserve
        if keys_delta is not None:
            budget["keys_delta"] = _written(keys_delta)
        raw: dict[str, Any] = {
            "budget": budget,
            "tables": _named(tables, lambda table: getattr(table, "declaration", table)),
            "analysts": _named(analysts or {}, lambda own: {"epsilon": _written(own)}),
            "engine": engine or {},
            "question": ({} if least is None else {"least": _written(least)})
            | ({} if date is None else {"date": date}),
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
        self._planned: OrderedDict[str, Measurement] = OrderedDict()
        self._plans = Plans[PlannedLayers]()
        self._prices = Plans[PricedLayers]()
        self._owner = owner
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
            self._register(raising=raise_budget)
        self._least = Least.of(caps_of(declaration.budget).filter(), declaration.least_epsilon)
        kept = declaration.budget.publish
        self._kept = published(caps_of(declaration.budget).filter(), kept) if kept else None
        known, failures = self._declaration.tables.values(), declaration.limits.failures
        self._door = Door(self._ledger, self._engine, known, failures=failures, least=self._least, keep=self._kept)
        self._ledger.settle()
        self._holdings = Holdings(self._declaration, self._engine, self._ledger, renewal_of(self._declaration))
        self._outer = computing.OuterEngine()
        if load:
            self._load()

    def _register(self, *, raising: bool) -> None:
        """Registers the budgets, and who counts as a person."""
        declaration = self._declaration
        accounts = {TOTAL: declaration.budget, **declaration.analysts}
        about = [table for table in declaration.tables.values() if not table.public]
        begins = self._ledger.register(
            {name: caps_of(budget) for name, budget in accounts.items()},
            repr(dict(declaration.tables)),
            units={table.name.casefold(): _unit(table, declaration.budget.renewal) for table in about},
            raising=raising,
            allowances={name: allowances_of(budget) for name, budget in declaration.analysts.items()},
            renewal=renewal_of(declaration),
        )
        if begins and declaration.ledger is not None:
            whole = caps_of(declaration.budget)
            _log.warning("%s is a new ledger: nothing is spent yet of the budget of %s", declaration.ledger.name, whole)

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
        analyst: str | None = None,
        request: str | None = None,
        dialect: str | None = None,
    ) -> Release:
        """Answers a question, with noise that costs `epsilon` (and `delta`) of the budget.

        The question is a text, a tree of sqlglot, or an expression of Ibis on the tables of `curator.ibis()`.
        `within` asks instead for the smallest price at which a column's error stays that small: {"n": 100}, {"n": "5 %
        of 2000"}, {"mean": "0.5 of 300"} (in groups of at least 300 rows; of 1,000 where none are named, which a
        warning says), with `confidence`, for one cell, or for all cells `together`.
        `analyst` names who asks; `request` makes a retry safe: the same id gives the same answer and no second charge.
        A question asked before, by anybody, is answered from the ledger with the same bytes. One that names no price
        gets the answer that is stored for `analyst`, whatever was paid for it; else it costs what the owner declares:
        for this analyst, or for all unless `default_price` is False, for tools that ask by themselves.
        `dialect` says whose SQL it is, as "postgres" or "bigquery": it is read as it is meant there.

        Raises QuestionError, BudgetError or DeclarationError, where a source is not what it was (nothing was spent),
        EngineError (the price stays charged), LedgerError.
        """
        with self._on_schedule(self._turn) as slot:
            wanted, account = _wanted(within, confidence, together), self._account(analyst)
            text = self._asked(question, dialect)
            asked = self._priced_layers(
                text, epsilon, delta, wanted, account, request, load=True, default_price=default_price
            )
            slot.take(sum(len(one.measured.plan.roots) for one in asked.parts))
            if not asked.stored:
                self._warn(asked.loss)
            for part in asked.parts:
                for words in assumed(part.measured.plan, wanted):
                    warn(words)
            if asked.planned.outer is None:
                (part,) = asked.parts
                kept, stored = asked.planned.asked.kept, asked.stored
                content, charged = self._measured(kept, part.measured, part.table, account, request, stored=stored)
                return self._release(content, asked.loss, content.cost if charged else FREE, account, text)
            return self._computed(asked, account, request, slot)

    def _computed(self, asked: PricedLayers, account: str, request: str | None, slot: Slot) -> Release:
        """Measures the tables of a question one after another, and computes its outer query from what they release."""
        planned, outer = asked.planned, asked.planned.outer
        assert outer is not None
        tables, data, parts = planned.tables, dict(planned.data), []
        charged = Cost(FREE)
        values = dict(planned.known)
        notes: list[str] = []
        room_held = False
        check_text(*(part.layer.text for part in asked.parts), f"{request or ''}{PART}{len(asked.parts)}")
        bases = (base for part in asked.parts for base in part.table.bases)
        self._ledger.check([base.name for base in bases if not base.public], account)  # before the first is paid
        for place, part in enumerate(asked.parts):
            one = part.layer
            notes += self._release_values(planned, one, data, values)
            measured, table, text = part.measured, part.table, one.text
            if one.waits:
                try:
                    measured, table = self._second(part, values)
                    text = one.text_with(values)
                    check_text(text)
                except QuestionError as error:  # it follows from a released value: the first stage is paid
                    data[one.name] = {}
                    notes.append(f"a table that waits for a released value has no row, and is free: {error.message}")
                    continue
            own = None if request is None else f"{request}{PART}{place + 1}"
            if not room_held and not self._answered(measured, table, account, own):
                own_account = account if account in self._declaration.analysts else TOTAL
                self._ledger.hold_room(_together(asked.parts[place:]), own_account, self._kept)
                room_held = True  # what comes is held against the budget as it is measured
            slot.part(len(measured.plan.roots))
            content, paid = self._measured(
                text, measured, table, account, own, together=len(asked.parts), stored=asked.stored
            )
            slot.rest()
            data[one.name] = computing.data_of(content, tables[one.name])
            parts.append(content)
            if paid:
                charged = Cost({name: charged[name] + content.cost[name] for name in charged})
        computed = self._outer.compute(outer, tables, data, paid=bool(parts))
        compared = bool(values) and bool(parts)
        content = computing.content(outer, computed, parts, asked.cost, compared=compared, notes=notes)
        return self._release(content, asked.loss, charged if charged else FREE, account, planned.asked)

    def _release_values(
        self,
        planned: PlannedLayers,
        one: MeasuredTable,
        data: Mapping[str, computing.Columns],
        values: dict[str, Sequence[Value | None]],
    ) -> list[str]:
        """Adds the values that a part waits for, from what the parts before it released. Gives what is to be said."""
        notes: list[str] = []
        for name in one.waits:
            if name not in values:
                value, query = planned.layers.values[name], planned.values[name]
                computed = self._outer.compute(query, planned.tables, data, paid=True)
                values[name] = computing.value_of(computed, many=value.many)
                notes += computing.first_of(computed, many=value.many)
        return notes

    def _second(self, part: PricedPart, values: Mapping[str, Sequence[Value | None]]) -> tuple[Measurement, Table]:
        """What is measured of a part once the values are released that it waits for. Raises QuestionError where nothing
        is, as where no group can be equal to such a value."""
        question = self._filled(part.layer, values)
        return measurement(question.plan, part.measured.price), question.table

    def _filled(self, one: MeasuredTable, values: Mapping[str, Sequence[Value | None]]) -> Question:
        """A part of a question with the values that it waits for. Raises QuestionError: `_second`."""
        question = filled(one, values, self._declaration, self._holdings.public_values)
        self._admitted(question)
        if question.plan.private and not one.question.plan.private:
            fix = "declare values for the grouped columns"
            raise QuestionError(
                "price", "with it the groups are private, and no delta is paid", where="GROUP BY", fix=fix
            )
        return question

    def _answered(self, priced: Measurement, table: Table, account: str, request: str | None) -> bool:
        """Whether a measurement's answer is stored, so that it costs whoever asks nothing."""
        numbers = self._holdings.held(table).numbers
        known = self._ledger.answered(self._frame(table, priced.plan, numbers), account, request, MOST_READ)
        return self._key(table, priced, numbers) in dict(known)

    def _measured(
        self,
        question: str,
        priced: Measurement,
        table: Table,
        account: str,
        request: str | None,
        *,
        together: int = 1,
        stored: bool = False,
    ) -> tuple[ReleaseContent, bool]:
        """One measurement through the door, and whether it was charged now; one of several `together`. One that is
        `stored` is not measured: what has an answer once, has it for ever. Raises QuestionError where it has none, as
        where somebody took a new snapshot since it was looked for."""
        snapshots = self._holdings.held(table)
        if stored and not self._ledger.answered(self._key(table, priced, snapshots.numbers), account, request, 1):
            raise QuestionError("price", "a new snapshot was taken meanwhile; nothing was spent", fix="ask again")
        held = self._held(priced, table, snapshots.numbers, account, request)
        priced = held.measured
        kept, charged = released(
            self._door,
            Groups(priced, table),
            lambda noisy: json.dumps(written(noisy, priced), ensure_ascii=False).encode(),
            analyst=account,
            question=question,
            key=self._key(table, priced, snapshots.numbers),
            request=request,
            rows=snapshots.rows,
            due=engine_time_over,
        )
        answered = answer(held.made, held.of(read(json.loads(kept), priced)), table, held.asked, together=together)
        return answered, charged

    def _held(
        self, priced: Measurement, table: Table, numbers: str, account: str, request: str | None
    ) -> ReusableMeasurement:
        """What is measured for a question: its own measurement, or a stored one that holds all of it and costs whoever
        asks nothing more."""
        known = dict(self._ledger.answered(self._frame(table, priced.plan, numbers), account, request, MOST_READ))
        own = self._key(table, priced, numbers)
        if own not in known:
            prices = {key: Fraction(key.split()[1]) for key in known}  # the dearest holds most
            tried: set[tuple[str, Fraction]] = set()
            for key in sorted(known, key=lambda key: -prices[key])[:MOST_TRIED]:
                if prices[key] < priced.price.epsilon:
                    break
                paid = self._paid(key, account)
                if paid is None or (known[key], paid.delta) in tried:
                    continue  # the same question, dearer, does not hold it
                tried.add((known[key], paid.delta))
                stored = self._stored(key, known[key], paid, numbers)
                if stored is not None and (held := reused(priced, stored, table)) is not None:
                    return held
        self._remember(own, priced)
        return ReusableMeasurement.whole(priced)

    def _stored_layers(
        self, planned: PlannedLayers, account: str, request: str | None, numbers: Callable[[Table], str | None]
    ) -> PricedLayers | None:
        """A question without a price, at the prices of the answers that are stored for whoever asks; None where one is
        missing. Nothing is written. `numbers` says which snapshots a table has, None where it has none."""
        data, values = dict(planned.data), dict(planned.known)
        parts: list[PricedPart] = []
        for place, one in enumerate(planned.layers.measured):
            self._release_values(planned, one, data, values)
            own = f"{request}{PART}{place + 1}" if request is not None and planned.outer is not None else request
            try:
                question = self._filled(one, values) if one.waits else one.question
            except QuestionError:  # it has no row, at any price
                if not parts:
                    return None
                data[one.name] = {}
                parts.append(PricedPart(one, measurement(one.question.plan, parts[-1].measured.price)))
                continue
            found = self._dearest(one.question.plan, question, account, own, numbers(question.table))
            if found is None:
                return None
            price, key = found
            parts.append(PricedPart(one, measurement(one.question.plan, price)))
            if any(later.waits for later in planned.layers.measured[place + 1 :]):
                kept, priced = self._ledger.answer(key, account), measurement(question.plan, price)
                assert kept is not None
                noisy = read(json.loads(kept), priced)
                content = answer(priced, noisy, question.table, together=len(planned.layers.measured))
                data[one.name] = computing.data_of(content, planned.tables[one.name])
        return PricedLayers(planned, tuple(parts), stored=True)

    def _dearest(
        self, priced: Plan, question: Question, account: str, request: str | None, numbers: str | None
    ) -> tuple[Price, str] | None:
        """The price and the key of the dearest answer to a measured table that costs whoever asks nothing. A δ that was
        not named follows from ε and from the plan that was `priced`, before it was filled; others are read."""
        if numbers is None:
            return None
        prefix = self._frame(question.table, question.plan, numbers)
        known = [key for key, _ in self._ledger.answered(prefix, account, request, MOST_READ, theirs=True)]
        amounts = {key: Fraction(key.split()[1]) for key in known}

        def key_at(price: Price) -> str:
            return self._key(question.table, measurement(question.plan, price), numbers)

        best: tuple[Price, str] | None = None
        for epsilon in sorted(set(amounts.values()), reverse=True)[:MOST_TRIED]:
            price = complete(priced, self._declaration, epsilon, None)
            if (key := key_at(price)) in amounts:
                best = price, key
                break
        least = Fraction(0) if best is None else best[0].epsilon
        dearer = sorted((key for key in known if amounts[key] > least), key=lambda key: -amounts[key])
        for key in dearer[:MOST_TRIED]:
            paid = self._paid(key, account)
            if paid is not None and key_at(paid) == key:
                return paid, key
        return best

    def _snapshots(self, table: Table) -> str | None:
        """The snapshots of a table as keys have them, without loading it; None where it has none yet."""
        found = [self._ledger.snapshot(base.name) for base in table.bases]
        return None if None in found else " ".join(str(one.number) for one in found if one is not None)

    def _remember(self, key: str, priced: Measurement) -> None:
        """Caches a plan, so that it is not planned again where another question may be a part of it."""
        self._planned[key] = priced
        if len(self._planned) > MOST_READ:
            self._planned.popitem(last=False)

    def _paid(self, key: str, account: str) -> Price | None:
        """The price of a stored answer."""
        planned = self._planned.get(key)
        if planned is not None:
            return planned.price
        content = self._ledger.answer(key, account)
        return None if content is None else price_of(json.loads(content))

    def _stored(self, key: str, question: str, paid: Price, numbers: str) -> Measurement | None:
        """The measurement of a stored answer, planned anew from its question; None where that is no longer the same."""
        planned = self._planned.get(key)
        if planned is not None:
            return planned
        try:
            checked, table = self._lowered(Asked.read(question))
        except QuestionError:
            return None
        stored = measurement(checked.plan, paid)
        if self._key(table, stored, numbers) != key:
            return None
        self._remember(key, stored)
        return stored

    def _release(
        self, content: ReleaseContent, loss: Loss, charged: Cost, account: str, asked: Asked | None = None
    ) -> Release:
        kept = self._declaration.budget.publish
        notes = [] if asked is None else [*asked.said(self._declaration)]
        notes += self._promise()
        notes += [*self._at_least(loss), *([f"of it ε {show(kept)} is kept for publishing"] if kept else [])]
        if (odds := best_guess(loss)) > ALMOST_SURE:
            notes.append(
                f"hides almost nothing about a person: an attacker's guess is right {chance(odds)} of the time"
            )
        notes += [] if self._declaration.ledger else ["ledger in memory: it ends with this curator"]
        return Release(content, charged, self.balance(account), loss, tuple(notes))

    def balance(self, account: str = TOTAL) -> Balance:
        """Says how much of the budget is left to the analyst whose `account` it is, or to the owner.

        Raises QuestionError where nobody of that name is declared, LedgerError.
        """
        if account != TOTAL:
            self._account(account)
        return self._balance(account)

    def _balance(self, account: str) -> Balance:
        if account not in self._declaration.analysts:
            return Balance(self._ledger.filter(TOTAL), account, None, self._kept)
        windows = {length: one.account for length, one in self._ledger.allowances(account).items()}
        return Balance(self._ledger.filter(TOTAL), account, self._ledger.filter(account), self._kept, windows)

    def _promise(self) -> list[str]:
        """What is promised of a budget that renews, in words."""
        budget = self._declaration.budget
        if budget.renewal is None:
            return []
        total = self._ledger.filter(TOTAL)  # another process may have lowered or raised it
        return [budget.renewal.in_words(total.epsilon, total.promised_delta)]

    def _at_least(self, loss: Loss) -> tuple[str, ...]:
        return ("this is the least price: a larger error costs the same",) if self._least.met(loss) else ()

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
        analyst: str | None = None,
        dialect: str | None = None,
    ) -> Explanation:
        """Says the price and expected error of a question, or of a workload, and what `analyst` would have left.

        The arguments are those of `ask`. Nothing is spent, no row is read, and what was asked before is not told, but
        for this: where no price is named and an answer is stored for `analyst`, it says at which price.
        Raises QuestionError, DeclarationError, LedgerError, and EngineError where the engine is busy.
        """
        account, question = self._account(analyst), as_text(question)
        if not isinstance(question, str):
            from discreet.workload.answers import answering

            _wanted(within, confidence, together)
            call = answering(self._declaration, question, epsilon, delta, within)
            percent, more, odds = self._takes(call.loss, account)
            errors, how = call.expected_error, tuple(call.mechanisms)
            then = self._then(call.loss, account)
            return Explanation(call.cost, percent, more, errors, how, call.bounds, (), (), *odds, **then)
        with self._on_schedule():
            wanted = _wanted(within, confidence, together)
            text = self._asked(question, dialect)
            asked = self._priced_layers(text, epsilon, delta, wanted, account, default_price=default_price)
            percent, more, odds = self._takes(asked.loss, account)
            parts = [(part.measured, part.table) for part in asked.parts]
            remarks = tuple(dict.fromkeys(one for part in parts for one in may_be_left_out(*part)))
            words = [
                line for priced, table in parts for line in (*assumed(priced.plan, wanted), *advice(priced.plan, table))
            ]
            words += [line for priced, _ in parts for line in self._at_least(priced.loss)]
            return Explanation(
                asked.cost,
                percent,
                more,
                asked.expected,
                tuple(one for priced, _ in parts for one in mechanisms(priced)),
                (*dict.fromkeys(one.line for one in remarks), *text.said(self._declaration)),
                tuple(dict.fromkeys(words)),
                tuple(name for priced, _ in parts for name in by_size(priced)),
                *odds,
                remarks,
                tuple(one for part in parts for one in choices(*part)),
                stored=asked.stored,
                **self._then(asked.loss, account),
                columns=asked.columns,
            )

    def _takes(self, loss: Loss, account: str) -> tuple[float, int, tuple[float, float]]:
        """What a loss takes of the whole budget, in percent; how many like it fit; and an attacker's odds, after it and
        after the whole budget."""
        balance = self.balance(account)
        total = balance.total
        odds = (best_guess(loss), best_guess_of_budget(total.epsilon, total.delta))
        return percent_of(total, loss), balance.more(loss), odds

    def _then(self, loss: Loss, account: str) -> dict[str, Any]:
        """What a charge would leave, and what it would end, in words; what it takes of the analyst's own account."""
        balance = self.balance(account)
        after = balance.after(loss)
        words = (after.left, ends(balance.total, after.total)) if after.alive else ()
        return {"after": "; ".join(filter(None, words)), "analyst": balance.account(loss)}

    def _warn(self, loss: Loss) -> None:
        """Says what the charge is about to end. It depends on prices alone."""
        total = self._ledger.filter(TOTAL)
        after = total.after(loss)
        if after.alive and (ended := ends(total, after)):
            warn(f"once this is charged, {ended}")

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
            found, _, _ = self._read(self._asked(question, dialect))
            return tuple(sorted({base.name for one in found.measured for base in one.question.table.bases}))

    def engine_sql(self, question: Askable, *, dialect: str | None = None) -> str:
        """Writes the statements that the engine would run, with a placeholder for the salt. For the owner only.

        Raises QuestionError.
        """
        found, outer, _ = self._read(self._asked(question, dialect))
        statements = [self._statements(one.question) for one in found.measured]
        return ";\n\n".join([*statements, *([] if outer is None else [outer.text])])

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
        account = self._account(analyst)
        with self._on_schedule():
            wanted = _wanted(within, confidence, together)
            asked = self._priced_layers(self._asked(question, dialect), epsilon, delta, wanted, account)
            return self.balance(account).more(asked.loss)

    @property
    def budget(self) -> BudgetState:
        """The whole budget and how much of it is used, and the same of each declared analyst. Raises LedgerError."""
        more = {name: show(amount) for name, amount in self._ledger.approved().items()}
        own = {name: self._state(name, {}, more.get(name, "0")) for name in self._declaration.analysts}
        return self._state(TOTAL, own)

    def _state(self, account: str, analysts: Mapping[str, BudgetState], approved: str = "0") -> BudgetState:
        balance, lasting = self._balance(account), self._declaration.ledger is not None
        own = balance.total if balance.own is None else balance.own
        keys = own.spent.keys / own.keys_delta if own.keys_delta else Fraction(0)
        amounts = {**promise(own), "keys_delta": show(own.keys_delta)}
        caps = {
            length: {"epsilon": show(one.account.epsilon), "used": used(one.account), "until": one.until}
            for length, one in (self._ledger.allowances(account).items() if account != TOTAL else ())
        }
        whole = None if balance.own is None else {**promise(balance.total), "used": balance.used}
        prices = {name: show(price) for name, price in zip(("questions", "publishing"), balance.prices, strict=True)}
        return BudgetState(
            amounts,
            used(own),
            float(keys * 100),
            lasting,
            balance.left,
            analysts,
            caps,
            prices,
            whole,
            self._period(),
            approved,
        )

    def _period(self) -> dict[str, str] | None:
        """The period that runs, where the budget renews."""
        renewal, running = self._declaration.budget.renewal, self._ledger.running
        if renewal is None:
            return None
        named = {"name": "", "until": ""} if running is None else {"name": running.name, "until": running.until}
        return {**named, "renews": str(renewal.persons), "promise": self._promise()[0]}

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
        other tables stay free. A source that is to stay as it was, and is not, is refused.

        The owner's act: old and new versions hold the same persons, so the budget goes on. Gives the names of those
        tables that are not as they were, and says of each what was done: for the owner alone, as it depends on rows and
        costs nothing.

        Raises QuestionError for a table that is not declared, DeclarationError where a source cannot be taken,
        LedgerError.
        """
        known = [self._declaration.table(name) if isinstance(name, str) else None for name in tables]
        anew = [table.name for table in known if table is not None]
        if len(anew) < len(known):
            fix = f"name some of {', '.join(self._declaration.tables)}"
            raise QuestionError("table", "this table is not declared", where="refresh", fix=fix)
        with self._turn:  # after the question that is running
            return self._holdings.refresh(anew or self._declaration.tables)

    @property
    def kept(self) -> Mapping[str, KeptTable]:
        """Where each table is kept, in memory or in a file, with its size; for the owner. Reads no row."""
        return self._holdings.states()

    @property
    def engine_starts(self) -> int:
        """How often the engine's process was started: more than once where a question ended it; for the owner."""
        return self._engine.starts

    def freeze(
        self, analyst: str | None = None, *, tables: Sequence[str] = (), reason: str, by: str | None = None
    ) -> bool:
        """Lets nothing be measured for an analyst until `lift`; without a name, for nobody, whoever asks.

        With `tables` about people, nothing that reads one of them, alone or joined to others. The owner's act, which
        the ledger keeps with its `reason`, and with the account `by` which it came. It costs nothing, and gives nothing
        back. Gives False where they are frozen already.

        Raises QuestionError where there is no such analyst, no such table or no reason, LedgerError.
        """
        name = TOTAL if analyst is None else self._account(analyst)
        about = [one.name for one in self._declaration.tables.values() if not one.public]
        return bool(self._ledger.stop(name, self._chosen(tables, about), **reasoned(reason, by)))

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
        said = reasoned(reason, by)
        name = TOTAL if analyst is None else analyst
        check_text(name)
        known = {*self._declaration.tables, *self._ledger.tables(), *(table for _, table in self._ledger.stopped)}
        chosen = self._chosen(tables, sorted(known - {EVERY_TABLE}))
        suspended = self._ledger.lift(name, chosen, **said)
        thawed = self._ledger.go(name, chosen, **said)
        return tuple(sorted({*suspended, *thawed} - {EVERY_TABLE}))

    def _chosen(self, tables: Sequence[str], known: Sequence[str]) -> list[str]:
        """Tables by their names as they are declared. Raises QuestionError where one is none of the known ones."""
        named = [None] if isinstance(tables, str) or not isinstance(tables, Sequence) else tables
        found = [self._declaration.table(name) if isinstance(name, str) else None for name in named]
        chosen = [name if table is None else table.name for name, table in zip(named, found, strict=True)]
        if not all(isinstance(name, str) and name in known for name in chosen):
            fix = f"give a list of some of {', '.join(known)}"
            raise QuestionError("table", "no table about people has this name", where="tables", fix=fix)
        return list(dict.fromkeys(map(str, chosen)))

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
        self._door.close()
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

    def _asked(self, question: Askable, dialect: str | None) -> Asked:
        """A question as it is asked now."""
        return Asked.of(as_text(question), dialect, self._declaration)

    def _planned_layers(self, text: Asked, account: str) -> PlannedLayers:
        """A question without its price, as it was planned for the same account before, or anew."""
        key = (account, text, self._public_snapshots())
        found = self._plans.get(key)
        if found is None:
            found = self._plan(text)
            if found.small:
                self._plans.keep(key, found)
        return found

    def _priced_layers(
        self,
        text: Asked,
        epsilon: Number | None,
        delta: Number | None,
        within: Within | None,
        account: str,
        request: str | None = None,
        *,
        load: bool = False,
        default_price: bool = True,
    ) -> PricedLayers:
        """A question at the price that is named, as it was planned for the same account before, or anew; where none is,
        as `curator.unpriced` says. With `load`, answers are looked for of the tables as they are loaded now. Without
        `default_price`, the price that is declared for all is none."""
        if epsilon is None and delta is None and within is None:
            planned = self._planned_layers(text, account)
            if planned.layers.measured and not names_price(planned.layers):
                numbers = (lambda table: self._holdings.held(table).numbers) if load else self._snapshots
                stored = self._stored_layers(planned, account, request, numbers)
                if stored is None and self._declaration.usual_price(account, for_all=default_price is True) is None:
                    raise self._no_price(planned, account)
                return stored or self._at(planned, None, None, None, account)
            return self._at(planned, None, None, None, account)
        price = asked_price(epsilon, delta, within)
        key = None if price is None else (account, text, price, self._public_snapshots())
        found = self._prices.get(key)
        if found is None:
            found = self._at(self._plan(text), epsilon, delta, within, account)
            if found.planned.small:
                self._prices.keep(key, found)
        return found

    def _public_snapshots(self) -> tuple[object, ...]:
        """What a plan follows from beside the question and the declaration."""
        public = [table.name for table in self._declaration.tables.values() if table.public]
        return tuple(map(self._ledger.snapshot, public))

    def _no_price(self, planned: PlannedLayers, account: str) -> QuestionError:
        """The refusal of a question without a price: what prices would buy that whoever asks has left. Raises
        QuestionError where the question would be refused at each of them."""
        balance = self.balance(account)
        whole = balance.total if balance.own is None else balance.own
        found: list[tuple[Fraction, PricedLayers]] = []
        refused: QuestionError | None = None
        for price in (*(floor(whole.epsilon * share, 1) for share in SHARES), floor(balance.prices[0], 2)):
            if price and len(found) < len(SHARES) and not (found and price <= found[-1][0]):
                try:
                    asked = self._at(planned, price, None, None, account)
                except QuestionError as error:
                    refused = error
                    continue
                if balance.more(asked.loss):
                    found.append((price, asked))
        if refused is not None and not found:
            return refused
        means = [name for _, asked in found for part in asked.parts for name in by_size(part.measured)]
        own = account if account in self._declaration.analysts else TOTAL
        return no_price(own, [(price, asked.expected) for price, asked in found], means)

    def _plan(self, text: Asked) -> PlannedLayers:
        """A question without its price: its measured tables, and its outer query, which was tried on tables without
        rows."""
        found, outer, values = self._read(text)
        if outer is None:
            return PlannedLayers(text, found)
        tables = released_tables(found, self._declaration)
        data = {name: computing.rows_of(tables[name], group.rows) for name, group in found.groups.items()}
        for name in {name for query in (outer, *values.values()) for name in query.tables}:
            declared = self._declaration.table(tables[name].name)
            if declared is not None and declared.public:
                data[name] = computing.rows_of(tables[name], self._holdings.public_rows(declared))
        known = self._foreseen(found, values, tables, data)
        kinds = self._outer.compute(outer, tables, {}).kinds
        return PlannedLayers(text, found, outer, values, tables, data, known, kinds)

    def _at(
        self, planned: PlannedLayers, epsilon: Number | None, delta: Number | None, within: Within | None, account: str
    ) -> PricedLayers:
        """A question at a price, each of its measured tables at its part of it."""
        prices = shared(planned.layers, self._declaration, epsilon, delta, within, account)
        parts = []
        for one, (own_epsilon, own_delta) in zip(planned.layers.measured, prices, strict=True):
            price = self._price(one.question, own_epsilon, own_delta, within, account)
            priced = measurement(one.question.plan, price)
            self._least.check(priced.loss)
            parts.append(PricedPart(one, priced))
        return PricedLayers(planned, tuple(parts))

    def _foreseen(
        self,
        found: Layers,
        values: Mapping[str, OuterQuery],
        tables: Mapping[str, ReleasedTable],
        data: Mapping[str, computing.Columns],
    ) -> dict[str, Sequence[Value | None]]:
        """The values that public tables alone give; the others are tried by their types. Raises QuestionError on what
        will not fit, before anything is paid."""
        known: dict[str, Sequence[Value | None]] = {}
        kinds: dict[str, str] = {}
        for name, query in values.items():
            free = not any(one.name in query.tables for one in found.measured)
            computed = self._outer.compute(query, tables, data if free else {})
            kinds[name] = computing.kind_of(query, computed)
            if free:
                if not found.values[name].many and len(computed.rows) > 1:
                    raise several_rows()
                known[name] = computing.value_of(computed, many=found.values[name].many)
        for one in found.measured:
            for number in range(2) if one.waits else ():
                tried = {name: known.get(name, (stand_in(kinds[name], number),)) for name in one.waits}
                try:
                    filled(one, tried, self._declaration, self._holdings.public_values)
                except QuestionError as error:
                    if error.code != "no-group" and (number == 0 or error.code == "type"):
                        raise
        return known

    def _read(self, text: Asked) -> tuple[Layers, OuterQuery | None, dict[str, OuterQuery]]:
        """The layers of a question, held against all that can be known before a price; the outer query, and those that
        give values to measured tables."""
        found = layers(self._reading.tree(text), self._declaration, self._holdings.public_values, text.day)
        for one in found.measured:
            self._admitted(one.question)
        if found.outer is None:
            return found, None, {}
        tables = released_tables(found, self._declaration)
        made = {name: outer_query(one.query, ("*",), tables, chosen.OUTER) for name, one in found.values.items()}
        return found, outer_query(found.outer, found.names, tables, chosen.OUTER), made

    def _price(
        self,
        question: Question,
        epsilon: Number | None,
        delta: Number | None,
        within: Within | None,
        account: str = TOTAL,
    ) -> Price:
        enough: Callable[[Measurement], bool] = lambda priced: self._least.admits(priced.loss)  # noqa: E731
        return priced_at(question, self._declaration, epsilon, delta, within, enough, account)

    def _lowered(self, question: str | Asked) -> tuple[Question, Table]:
        """A question that is one measured table."""
        asked = question if isinstance(question, Asked) else self._asked(question, None)
        tree = self._reading.tree(asked)  # refuses what takes too much to be read, lowered or written
        checked = lower_tree(tree, self._declaration, self._holdings.public_values, asked.day)
        self._admitted(checked)
        return checked, checked.table

    def _admitted(self, checked: Question) -> None:
        """Refuses what the engine would have to do too much for, or cannot do."""
        declared = list(self._declaration.tables.values())
        bound(checked.plan.roots, checked.table, self._declaration.limits, declared, self._holdings)
        if checked.plan.ranges and frames(checked.plan.roots) + _FURTHER > room():
            raise too_deep()  # once bounds are found, the rest is planned and written further down, and is paid for
        try:  # what is too deep for this call of the caller's, or the engine cannot compute, is refused for nothing
            self._twin.hold(checked.plan.roots, checked.table)
        except RecursionError:
            raise too_deep() from None

    def _statements(self, checked: Question) -> str:
        return ";\n\n".join(self._engine.sql(root, checked.table) for root in checked.plan.roots)

    def _account(self, analyst: str | None) -> str:
        """The account of whoever asks. Raises QuestionError where that must be said and is not."""
        declared = self._declaration.analysts
        if analyst is None and (self._owner or not declared):
            return TOTAL
        if not isinstance(analyst, str) or not analyst or (declared and analyst not in declared):
            fix = f"name one of {', '.join(declared)}" if declared else 'write analyst="ana"'
            if analyst is None:
                fix += "; the owner opens it with owner=True, or says --owner"
                raise QuestionError("analyst", "analysts are declared: say who asks", where="analyst", fix=fix)
            raise QuestionError("analyst", "this analyst is not declared", where="analyst", fix=fix)
        return analyst

    def _key(self, table: Table, priced: Measurement, numbers: str) -> str:
        """What makes two questions the same: what is measured, with which noise, of which snapshots, those of exactly
        the tables that are read.

        Where the source's file lies is no part of it: the snapshot says what was read.
        """
        return f"{self._frame(table, priced.plan, numbers)}{priced.price.epsilon} {digest(measured(priced))}"

    def _frame(self, table: Table, plan: Plan, numbers: str) -> str:
        """How keys begin that are of the same rows and groups: declared alike, of the same snapshots, in one engine."""
        return digest(frame(plan), *declared(*table.bases), numbers, self._engine.name) + " "


_FEW_VALUES = 10_000
"""Plans with more values of public tables and declared groups are not kept."""

_FURTHER = 40
"""Calls in each other from where a question is tried to where it is measured are fewer than this."""


def _together(parts: Sequence[PricedPart]) -> Loss:
    """What parts of a question lose together."""
    return Batch(tuple(loss for part in parts for loss in part.measured.loss.parts))


def _written(value: Number) -> Number:
    """A number that Python gives as text, as a declaration's file would have it."""
    try:
        return fraction(value) if isinstance(value, str) else value
    except ValueError:
        return value  # the declaration names the fault


def _named(given: Any, read: Callable[[Any], Any]) -> Any:
    """What a mapping names, as a declaration's file would have it; the declaration names the fault of all else."""
    return {name: read(value) for name, value in given.items()} if isinstance(given, Mapping) else [given]


def _wanted(within: Mapping[str, Number] | None, confidence: Number, together: bool) -> Within | None:
    """The wanted errors. Raises QuestionError on an argument without effect, and on one that names no column."""
    fix = 'write within={"n": 100}, or --within n=100'
    if within is None:
        if together or str(confidence) != "0.95":
            name = "together" if together else "confidence"
            raise QuestionError("within", f"{name} has no effect without within", where=name, fix=fix)
        return None
    if not isinstance(within, Mapping) or not within or not all(isinstance(name, str) for name in within):
        raise QuestionError("within", "within maps names of columns to wanted errors", where="within", fix=fix)
    return Within(within, confidence, together)


def _unit(table: Table, renewal: Renewal | None) -> Unit:
    """Who counts as a person. Where the budget renews for new ones, how a source is read is a part of that: read in
    another way, an id is another, and whoever was seen seems new."""
    person = table.column(table.person) if table.person is not None and not table.path else None
    kind = [str(person.type)] if person is not None else []
    if renewal is not None and renewal.persons is Renews.NEW_PERSONS:
        source = table.source
        kind += [f"from {source.kind}", *([source.dates, source.encoding] if source.kind == "csv" else [])]
    return Unit(table.unit, table.rows_per_person or 1, ", ".join(kind))


def caps_of(budget: Budget) -> Caps:
    """The caps of a declared budget."""
    return Caps(budget.epsilon, budget.delta, budget.keys_delta)


def allowances_of(budget: Budget) -> dict[str, Caps]:
    """What an analyst may spend in one window of each declared length: so much ε, and as much δ as ever."""
    lengths = {"day": budget.day, "month": budget.month}
    return {name: Caps(most, budget.delta, budget.keys_delta) for name, most in lengths.items() if most is not None}


def renewal_of(declaration: Declaration) -> dict[str, str] | None:
    """How a declared budget renews, as the ledger has it."""
    renewal = declaration.budget.renewal
    if renewal is None:
        return None
    said = {"length": renewal.length, "persons": str(renewal.persons)}
    if renewal.who is None:
        return said
    return said | {"who": f"{renewal.who.casefold()}.{_unit(declaration.tables[renewal.who], renewal).person}"}
