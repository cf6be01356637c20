"""The curator's core: opens a declaration, answers questions, prices them, and reports the budget."""

from __future__ import annotations

import copy
import datetime
import itertools
import json
import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from discreet.accounting import Loss
from discreet.accounting.balance import Balance
from discreet.catalog import Declaration, Table, declare
from discreet.catalog.charged_once import secret_file
from discreet.catalog.listing import Tables, listed
from discreet.catalog.price import hold_part
from discreet.catalog.sources import together
from discreet.curator.accounts import accounts_of
from discreet.curator.combining import Missing, Wanted, enough, missing, of_all_cells
from discreet.curator.measurements import Measurements, variants
from discreet.curator.options import AskOptions, wanted
from discreet.curator.planning import PlannedLayers, Planner
from discreet.curator.plans import Plans
from discreet.curator.plans import price_of as asked_price
from discreet.curator.registered import assigning_of, register, renewal_of
from discreet.curator.stored_answers import Found, Sought, StoredAnswers, base, described, holds, not_yet
from discreet.curator.unpriced import SHARES, no_price
from discreet.curator.warned import warn
from discreet.engines import chosen
from discreet.errors import BudgetError, DeclarationError, Fault, QuestionError
from discreet.explanation import BudgetState, Explanation
from discreet.finishing import finishing
from discreet.holdings import Holdings, KeptTable, Refreshed, typed, unfit
from discreet.intervals.expected import by_size, expected_errors
from discreet.intervals.noise import CONFIDENCE, three_digits
from discreet.ledger import TOTAL, Ledger
from discreet.ledger.refusal import asked_otherwise
from discreet.ledger.store import EVERY_TABLE
from discreet.ledger.words import check_request, check_text, reasoned
from discreet.locks import Lock
from discreet.odds import best_guess
from discreet.plan.left_out import advice
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.outputs import OutputKind
from discreet.plan.split import measurement
from discreet.plan.whole import whole
from discreet.postprocessing import computing
from discreet.pricing import Within, assumed, complete, names_price, shared, widths
from discreet.procedures.progress import progress
from discreet.procedures.run import declared, digest, released
from discreet.reading import Reading
from discreet.release import Release, answer
from discreet.release.combined import CombinedMeasurement
from discreet.release.content import FREE, Cost, ReleaseContent
from discreet.release.estimate import mechanisms
from discreet.release.foreseen import ESTIMATE, column_types
from discreet.release.left_out import may_be_left_out
from discreet.release.limit_advice import choices
from discreet.release.reused import MOST_READ, MOST_TRIED, ReusableMeasurement, frame
from discreet.release.stored import measured, price_of, read, written
from discreet.schedule import Slot, engine_time_over, on_schedule
from discreet.sql import Question
from discreet.sql.asked import Asked
from discreet.sql.compiled import Askable, as_text
from discreet.sql.layers import MeasuredTable
from discreet.sql.scope import numbered
from discreet.trusted.ledger.ledger import PIECE
from discreet.trusted.ring_a.exact import Number, floor, fraction, show
from discreet.trusted.ring_a.gate import WHOLE, Door
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_a.sensitivity import cell_count
from discreet.trusted.ring_a.table import SourceKind, Value
from discreet.trusted.ring_b.listed_groups import group_count
from discreet.trusted.ring_b.questions import Groups, Noisy

if TYPE_CHECKING:
    from discreet.synthesis.state import StateQuestion, SyntheticState
    from discreet.trusted.ring_c.interactive import Reply
    from discreet.workload import Workload


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
class PricedLayers:
    """A question at its price. Where it is `stored`, the parts are at prices of answers that are stored for whoever
    asks, and nothing is to be measured for it. Where it is answered `by_state`, nobody has named a price, and the parts
    are at that of the synthetic state."""

    planned: PlannedLayers
    parts: tuple[PricedPart, ...]
    stored: bool = False
    by_state: bool = False

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
        return _cost([part.measured for part in self.parts])

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
        self._accounts = accounts_of(self._declaration, self._ledger, owner=owner)
        self._door = self._opened_door()
        self._ledger.settle()
        self._synthetic = self._opened_state()
        self._holdings = Holdings(
            self._declaration,
            self._engine,
            self._ledger,
            renewal_of(self._declaration),
            assigns=assigning_of(self._declaration),
        )
        self._outer = computing.OuterEngine()
        self._arrange()
        declared = self._declaration.budget.parts
        for part in () if declared is None else declared.values:
            self._open_part(part)
        if load:
            self._load()

    def _arrange(self) -> None:
        """Puts together what plans, prices and answers, over the rows that are held."""
        declaration, ledger, accounts = self._declaration, self._ledger, self._accounts
        self._plans = Plans[PlannedLayers]()
        self._prices = Plans[PricedLayers]()
        self._planner = Planner(declaration, self._reading, self._holdings, self._twin, self._outer)
        self._measurements = Measurements(
            declaration, ledger, self._holdings, self._planner, accounts.least, self._kept_under
        )
        replan, hear = self._measurements.replanned, self._measurements.hear
        self._answers = StoredAnswers(ledger, replan, hear, shared=declaration.share_answers)

    def _open_part(self, part: str) -> None:
        """Makes the curator of the rows of a part's persons alone. It has an engine and answers of its own, and all
        else with this one: also its turn, and what is open at the door or failed there."""
        one = cast("Self", copy.copy(self))
        one._accounts, one._of_parts, one._synthetic = self._accounts.parts[part], {}, None
        one._engine = chosen.engine(self._declaration.limits)
        one._door = copy.copy(self._door)
        one._door._engine = one._engine
        one._holdings = self._holdings.of_part(part, one._engine)
        one._arrange()
        self._of_parts[part] = one

    def _about(self, part: str | None) -> Self:
        """The curator of the rows of a part's persons alone; without a part, of all. Raises QuestionError where there
        is no such part."""
        if part is None:
            return self
        hold_part(self._declaration, part)
        return self._of_parts[part]

    @property
    def _kept_under(self) -> str:
        """What answers are kept under, with the snapshots: those of a part's rows under another name than of all."""
        part = self._accounts.part
        return self._engine.name if part is None else f"{self._engine.name} of {part!r}"

    def _opened_door(self) -> Door:
        known, failures = self._declaration.tables.values(), self._declaration.limits.failures
        least, keep = self._accounts.least, self._accounts.kept
        return Door(self._ledger, self._engine, known, failures=failures, least=least, keep=keep, within=finishing)

    def _opened_state(self) -> SyntheticState | None:
        """The declared synthetic state. Raises DeclarationError where it does not go with its source."""
        one, beside = self._declaration.state, self._declaration.beside
        if one is None or beside is None:
            return None
        try:
            from discreet.synthesis.state import SyntheticState, declared_state
            from discreet.trusted.ring_c.interactive import Answering, SecretFile
        except ImportError:
            fault = Fault("synthesis.interactive", "it needs cryptography", 'run pip install "discreet[streams]"')
            raise DeclarationError([fault], file=str(self._declaration.file or "")) from None
        whole = declared_state(self._declaration)
        assert whole is not None
        file = SecretFile(secret_file(beside, whole.name[:8], "state"), one.key.absolute())
        return SyntheticState(Answering(self._door, whole, file), self._engine.cells, Price(one.epsilon))

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
            errors, account = wanted(within, confidence, together), one._accounts.of(analyst)
            options = AskOptions(epsilon, delta, errors, account, request, default_price, reuse)
            return one._answered(one._planner.asked(question, dialect), options, slot)

    def _answered(self, text: Asked, options: AskOptions, slot: Slot) -> Release:
        asked = self._priced_layers(text, options, load=True)
        slot.take(sum(len(one.measured.plan.roots) for one in asked.parts))
        options = replace(options, named=_named_price(asked, options))
        by_state = [self._by_state(one.measured, one.table, options) for one in asked.parts]
        if not asked.stored and None in by_state:
            self._accounts.warn(asked.loss)
        for one in asked.parts:
            for words in assumed(one.measured.plan, options.within):
                warn(words)
        if asked.planned.outer is None:
            (only,) = asked.parts
            self._hold_alone(options.account, options.request)
            kept, stored = asked.planned.asked.kept, asked.stored
            content, charged, loss = self._measured(
                kept, only.measured, only.table, options, stored=stored, by_state=asked.by_state
            )
            return self._accounts.release(content, loss, charged, options.account, text)
        return self._computed(asked, options, slot)

    def _computed(self, asked: PricedLayers, options: AskOptions, slot: Slot) -> Release:
        """Measures the tables of a question one after another, and computes its outer query from what they release."""
        planned, outer = asked.planned, asked.planned.outer
        account, request = options.account, options.request
        assert outer is not None
        if self._ledger.requested(account, request) is not None:
            raise asked_otherwise()  # it belongs to a question without an outer query
        self._hold_whole(planned, options)
        tables, data, losses = planned.tables, dict(planned.data), [one.measured.loss for one in asked.parts]
        parts: list[ReleaseContent] = []
        charged = Cost(FREE)
        values = dict(planned.known)
        notes: list[str] = []
        priced = list(asked.parts)  # without those that the synthetic state answers
        looks: list[Callable[[], object]] = []
        room_held = False
        texts = [part.layer.text for part in asked.parts] + ([] if request is None else [planned.asked.kept])
        check_text(*texts, f"{request or ''}{PIECE}{len(asked.parts)}")
        bases = (base for part in asked.parts for base in part.table.bases)
        self._ledger.check([base.name for base in bases if not base.public], account)  # before the first is paid

        def piece(place: int) -> AskOptions:
            return replace(options, request=None if request is None else f"{request}{PIECE}{place + 1}")

        def costs(measured: Measurement, table: Table, own: AskOptions) -> bool:
            answered = asked.by_state or self._by_state(measured, table, own) is not None
            return not answered and self._found(measured, table, own, stored=asked.stored) is None

        def hold_room(place: int) -> None:
            """What comes from here on is held against the budget as it is measured."""
            self._accounts.hold_room(_together(asked.parts[place:]), account, keep=True)

        for place, part in enumerate(asked.parts):  # before a name is written down, of those that are known
            if not part.layer.waits and costs(part.measured, part.table, piece(place)):
                hold_room(place)
                room_held = not any(one.layer.waits for one in asked.parts[:place])  # of those nothing is held yet
                break
        for place, part in enumerate(asked.parts):
            one = part.layer
            notes += self._planner.release_values(planned, one, data, values)
            measured, table, text = part.measured, part.table, one.text
            if one.waits:
                try:
                    measured, table = self._second(part, values, account)
                    text = one.text_with(values)
                    check_text(text)
                except QuestionError as error:  # it follows from a released value: the first stage is paid
                    data[one.name] = {}
                    notes.append(f"a table that waits for a released value has no row, and is free: {error.message}")
                    continue
            own = piece(place)
            if not room_held and costs(measured, table, own):
                hold_room(place)
                room_held = True
            slot.part(len(measured.plan.roots))
            content, paid, losses[place] = self._measured(
                text,
                measured,
                table,
                own,
                together=len(asked.parts),
                stored=asked.stored,
                by_state=asked.by_state,
                looks=looks,
            )
            slot.rest()
            if own.request is not None and not parts:  # before more is paid, or anything is shown
                self._ledger.name_again(account, own.request, f"{request}{PIECE}", planned.asked.kept)
                self._hold_whole(planned, options)  # another process may have asked another question meanwhile
            data[one.name] = computing.data_of(content, tables[one.name])
            parts.append(content)
            if "synthetic_state" in content.more:
                priced.remove(part)
            charged = Cost({name: charged[name] + paid[name] for name in charged})
        computed = self._outer.compute(outer, tables, data, paid=bool(parts))
        for look in looks:  # nothing can fail any more
            look()
        compared = bool(values) and bool(parts)
        cost = _cost([part.measured for part in priced])
        content = computing.content(outer, computed, parts, cost, compared=compared, notes=notes)
        content = self._with_errors(content, planned, free=not parts)
        if asked.parts and not priced and self._synthetic is not None:
            content = replace(content, more={"synthetic_state": f"from the synthetic state; {self._synthetic.used()}"})
        loss = Batch(tuple(one for each in losses for one in each.parts))
        return self._accounts.release(content, loss, charged if charged else FREE, account, planned.asked)

    def _with_errors(self, content: ReleaseContent, planned: PlannedLayers, *, free: bool) -> ReleaseContent:
        """The answer with what is known of the errors of published synthetic tables that its outer query reads."""
        read = (
            [self._declaration.table(planned.tables[name].name) for name in planned.outer.tables]
            if planned.outer
            else []
        )
        kinds = (SourceKind.FRAME, SourceKind.PARQUET, SourceKind.DATABASE)
        public = [one for one in read if one is not None and one.public and one.source.kind in kinds]
        if not public:
            return content
        from discreet.synthesis.database import bounds_of
        from discreet.synthesis.query import with_errors

        found = {
            one.name: known
            for one in public
            if (known := bounds_of(one, self._declaration.tables.values())) is not None
        }
        plain = free and not planned.asked.dialect  # else it is read otherwise, or not of these tables alone
        return with_errors(content, planned.asked.text if plain else "", found) if found else content

    def _second(
        self, part: PricedPart, values: Mapping[str, Sequence[Value | None]], account: str
    ) -> tuple[Measurement, Table]:
        """What is measured of a part once the values are released that it waits for. Raises QuestionError where nothing
        is, as where no group can be equal to such a value."""
        question = self._planner.filled(part.layer, values)
        return self._measurements.at(question, part.measured.price, account), question.table

    def _measured(
        self,
        question: str,
        priced: Measurement,
        table: Table,
        options: AskOptions,
        *,
        together: int = 1,
        stored: bool = False,
        by_state: bool = False,
        looks: list[Callable[[], object]] | None = None,
    ) -> tuple[ReleaseContent, Cost, Batch]:
        """One measurement through the door, what was charged for it now, and its loss; one of several `together`, with
        the `looks` that are to be written down before the answer to all is shown. One that is `stored` is not measured:
        what has an answer once, has it for ever. Nor is one whose price nobody has named, where the synthetic state is
        to answer it. Raises QuestionError where it has no answer, as where somebody took a new snapshot since it was
        looked for."""
        snapshots, account, request = self._holdings.held(table), options.account, options.request
        self._hold_request(question, priced, table, snapshots.numbers, options)
        found = self._found(priced, table, options, numbers=snapshots.numbers, stored=stored)
        said: list[str] = []
        if found is None and not stored:
            asked_state = self._state_question(priced, table, options)
            retries = self._ledger.requested(account, request) is not None
            if retries and self._state_again(asked_state, options) is None:
                asked_state = None
            replied = None if asked_state is None else self._replied(question, priced, asked_state, options, together)
            if replied is not None:
                return *replied, priced.loss
            said = [] if asked_state is None else self._why_not()
            if by_state:
                fix = "name a price, as with epsilon=0.1 or --epsilon 0.1"
                raise QuestionError("price", "the synthetic state answers no more, and no price is named", fix=fix)
        if (
            stored
            and found is None
            and self._ledger.answer(self._key(table, priced, snapshots.numbers), account) is None
        ):
            raise QuestionError("price", "a new snapshot was taken meanwhile; nothing was spent", fix="ask again")
        asked = self._sought(priced, table, snapshots.numbers)
        lacking: Missing | None = None
        if found is not None:
            measured, key = found.held.measured, found.key
        else:
            measured, key, lacking = self._bought(asked, options)
        said_first = partial(described, measured, asked, key, None if lacking is None else lacking.described)
        first = said_first() if found is None else None  # before the price; what is stored already is not described

        def stored_as(noisy: Noisy, one: Measurement) -> bytes:
            whole = {"cells": said_first() if first is None else first, **written(noisy, one)}
            return json.dumps(whole, ensure_ascii=False).encode()

        def through_the_door(one: Measurement, key: str, name: str | None) -> tuple[bytes, bool]:
            return released(
                self._door,
                Groups(one, table),
                lambda noisy: stored_as(noisy, one),
                analyst=account,
                question=question,
                key=key,
                request=name,
                rows=snapshots.rows,
                due=engine_time_over,
            )

        others = lacking.others if lacking is not None else found.others if found is not None and found.look else ()
        if lacking is not None:  # nothing is seen for a question that cannot be paid
            self._accounts.hold_room(measured.loss, account, keep=False)  # no more than the charge asks for
        for other in others:  # what it is put together with is seen from now on
            through_the_door(other.held.measured, other.key, other.look)
        charged = False
        look = None if found is None else found.look
        if look is not None and looks is not None:
            looks.append(partial(through_the_door, measured, key, look))
            look = not_yet(look)
        names = [name for name in (look, request) if name is not None]
        for name in names or (None,):  # the look is written down before anything is shown
            kept, paid = through_the_door(measured, key, name)
            charged = charged or paid
        if not charged:  # another process may have asked something else under this name meanwhile
            self._hold_request(question, priced, table, snapshots.numbers, options)
        if found is None:
            self._answers.remember(measured.plan, table)
            self._answers.read()
            met = self._answers.of_key(key)
            if not charged and met is not None and (key != asked.key or met.asked):  # another process was faster
                again = replace(options, named=True)
                return self._measured(question, priced, table, again, together=together, looks=looks)
            if key != asked.key:
                met = self._answers.of_key(key, asked.key)
                found = None if met is None else self._answers.repeated(met, asked, account)
                assert found is not None  # `_bought` has seen that it holds what is asked
        content = self._made(priced, table, account, kept, found, together)
        if found is not None and found.look is not None:
            content = replace(content, more={**content.more, "earlier_answers": found.answers})
        if said:
            content = replace(content, bounds=[*content.bounds, *said])
        loss = priced.loss if found is None or not found.others else measured.loss
        return content, content.cost if charged else FREE, loss

    def _hold_alone(self, account: str, request: str | None) -> None:
        """Raises QuestionError where a request belongs to a question with an outer query. Such a question has names of
        its own for its tables and for the whole, made of the request's, and nothing under the request's own name."""
        if request is not None:
            for name in (f"{request}{PIECE}", f"{request}{PIECE}1"):
                if self._ledger.requested(account, name) is not None:
                    raise asked_otherwise()

    def _hold_whole(self, planned: PlannedLayers, options: AskOptions) -> None:
        """Raises QuestionError where the request belongs to another question with an outer query, also where both are
        computed from the same tables. Another spelling is the same question. What the tables measure, and at which
        price, is held for each of them: `_hold_request`."""
        if options.request is None:
            return
        known = self._ledger.requested(options.account, f"{options.request}{PIECE}")
        if known is None or known[1] == planned.asked.kept:
            return
        try:
            asked = self._planner.read(Asked.read(known[1]))
        except QuestionError:  # it cannot be asked any more
            raise asked_otherwise() from None
        if asked.computed != planned.computed:
            raise asked_otherwise()

    def _hold_request(self, text: str, priced: Measurement, table: Table, numbers: str, options: AskOptions) -> None:
        """Raises QuestionError where the request belongs to a question that measures something else, also where one
        stored answer holds both. The ledger keeps the text that was asked under its name; another text is the same
        question where it measures the same at the same price: one is written in many ways, and what else is made of the
        same numbers is free."""
        known = self._ledger.requested(options.account, options.request)
        if known is None or known[1] == text:
            return
        before = self._measurements.replanned(known[1], priced.price, options.account)
        key = self._key(table, priced, numbers)
        if before is None or self._key(before[1], measurement(before[0], priced.price), numbers) != key:
            raise asked_otherwise()

    def _made(
        self, priced: Measurement, table: Table, account: str, kept: bytes, found: Found | None, together: int
    ) -> ReleaseContent:
        """The answer from what is stored of it: its own measurement, or what was found."""
        if found is None:
            return answer(priced, read(json.loads(kept), priced), table, together=together)
        if isinstance(found.held, ReusableMeasurement):
            noisy = read(json.loads(kept), found.held.measured)
            share = found.share(len(noisy.keys))
            held = found.held
            content = answer(held.made, held.of(noisy), table, held.asked, together=together, share=share)
            return content if share is None else replace(content, bounds=[*content.bounds, CHOSEN])
        each = []
        for one, key, reserve in zip(
            found.held.held,
            (found.key, *(one.key for one in found.others)),
            (found.reserve, *(one.reserve for one in found.others)),
            strict=True,
        ):
            stored = self._ledger.answer(key, account, reserve)
            assert stored is not None
            each.append(read(json.loads(stored), one.measured))
        content = answer(found.held.made, found.held.of(*each), table, found.held.asked, together=together)
        if found.look is not None:  # nothing was bought
            return replace(content, bounds=[*content.bounds, f"put together of {found.answers} earlier answers"])
        said = _together_with(len(found.others), found.held.measured.price, priced.price)
        return replace(content, bounds=[*content.bounds, said])

    def _state_question(self, priced: Measurement, table: Table, options: AskOptions) -> StateQuestion | None:
        """A question that the synthetic state answers as whoever asks wants it, while it answers: in its form, for who
        has no account of his own, and as precise as the price that is `named` would be, or within the wanted errors.
        For whoever names one of these it does not begin: no other price is charged."""
        state, account, within, named = self._synthetic, options.account, options.within, options.named
        if state is None or not options.reuse or (account != TOTAL and self._ledger.has_account(account)):
            return None
        if (named or within is not None) and not state.begun:
            return None
        from discreet.synthesis.state import state_question

        question = state_question(priced.plan, table, state.whole)
        if question is None:
            return None
        if within is not None:
            errors = state.errors(priced, 1 - float(within.confidence))
            fits = all(errors[name] <= width for name, (width, _) in widths(priced.plan, within).items())
        else:
            own = expected_errors(priced) if named else {}
            fits = not named or all(error <= own[name] for name, error in state.errors(priced).items())
        return question if fits else None

    def _by_state(self, priced: Measurement, table: Table, options: AskOptions) -> StateQuestion | None:
        """The same, where the state still answers, as far as can be known before, or has answered this very one."""
        question = self._state_question(priced, table, options)
        if question is None or not self._why_not() or self._state_again(question, options) is not None:
            return question
        assert self._synthetic is not None
        numbers = self._holdings.numbers(table)
        known = None if numbers is None else self._synthetic.known(question, self._state_numbers(table, numbers))
        return None if known is None else question

    def _state_again(self, question: StateQuestion | None, options: AskOptions) -> Reply | None:
        """The reply of the synthetic state that a request got for this very question, whatever rows are there now."""
        known = None if question is None else self._ledger.requested(options.account, options.request)
        if known is None or question is None or self._synthetic is None:
            return None
        return self._synthetic.got(question, known[0])

    def _state_numbers(self, table: Table, numbers: str) -> str:
        """Which rows a reply of the synthetic state is of."""
        return digest(*declared(table), numbers)

    def _why_not(self) -> list[str]:
        """Why the synthetic state answers no new question, in words; nothing where it does."""
        assert self._synthetic is not None
        if self._synthetic.over:
            return [f"the synthetic state answers no more ({self._synthetic.used()}): questions have their own price"]
        if not self._synthetic.begun and not self._accounts.admits(self._synthetic.whole.loss):
            return ["the synthetic state has not begun, and its price is more than is left: questions have their own"]
        return []

    def _replied(
        self, text: str, priced: Measurement, question: StateQuestion, options: AskOptions, together: int
    ) -> tuple[ReleaseContent, Cost] | None:
        """The synthetic state's answer, and what was charged for it now: the price of all its answers, when it begins;
        None where it gives none. A request gets what it got."""
        state, snapshots = self._synthetic, self._holdings.held(question.table)
        account, request = options.account, options.request
        assert state is not None
        self._ledger.check([question.table.name], account)  # also before what it has answered
        again = self._state_again(question, options)
        if again is not None:
            return state.content(question, again, priced, together), FREE
        numbers = self._state_numbers(question.table, snapshots.numbers)
        charged = FREE
        with finishing():
            if self._why_not():
                reply = state.known(question, numbers) if state.begun else None
            else:
                try:
                    begins = state.begin(question, snapshots.rows)
                except BudgetError:
                    return None
                charged = Cost(epsilon=float(state.price.epsilon), delta=0.0) if begins else FREE
                reply = state.reply(
                    question,
                    text=text,
                    analyst=account,
                    numbers=numbers,
                    rows=snapshots.rows,
                    due=engine_time_over,
                )
            if reply is not None and request is not None:
                try:
                    state.remember(reply, request=request, text=text, analyst=account)
                except QuestionError:  # another process was faster: what it was told, if it asked the same
                    reply = self._state_again(question, options)
                    if reply is None:
                        raise
        return None if reply is None else (state.content(question, reply, priced, together), charged)

    def _kept_content(
        self,
        priced: Measurement,
        table: Table,
        account: str,
        numbers: Callable[[Table], str | None],
        together: int,
    ) -> ReleaseContent:
        """What is stored for a measured table at this price."""
        found = self._found(priced, table, AskOptions(account=account), numbers=numbers(table), stored=True)
        key = self._key(table, priced, numbers(table) or "") if found is None else found.key
        kept = self._ledger.answer(key, account)
        assert kept is not None
        return self._made(priced, table, account, kept, found, together)

    def _sought(self, priced: Measurement, table: Table, numbers: str) -> Sought:
        """A measurement, as stored ones are looked for that hold it."""
        parts = (*declared(*table.bases), numbers, self._kept_under)
        frame, cells = self._frame(table, priced.plan, numbers), base(table, priced.plan, *parts)
        return Sought(priced, table, numbers, self._key(table, priced, numbers), frame, cells)

    def _found(
        self,
        priced: Measurement,
        table: Table,
        options: AskOptions,
        *,
        numbers: str | None = None,
        shown: bool = False,
        stored: bool = False,
    ) -> Found | None:
        """The stored answer that a question is answered from for nothing; None where it is to be measured, or debited.
        `numbers` are the snapshots, of tables that need not be loaded. Where it is `shown` before anybody asks, only
        from what whoever asks may know to be there. Where no price was named for what is `stored`, however wide its
        intervals are.

        Where limits were chosen by what is known of the table's persons, also by what was known before: what was free
        then, stays free."""
        numbers = numbers or self._holdings.held(table).numbers
        self._answers.read()
        found: Found | None = None
        for one in variants(priced):
            asked = self._sought(one, table, numbers)
            now = self._found_as(asked, options, shown=shown, earlier=one is not priced, stored=stored)
            if now is not None and now.look is None:
                return now
            found = found or now
        return found

    def _found_as(
        self,
        asked: Sought,
        options: AskOptions,
        *,
        shown: bool,
        earlier: bool,
        stored: bool,
    ) -> Found | None:
        """`_found` of this very measurement. One that follows from what was known `earlier` is taken from what costs
        nothing alone: what is debited is measured at the limits that are best now."""
        priced, account, within, reuse = asked.priced, options.account, options.within, options.reuse
        known = self._ledger.requested(account, options.request)
        if known is not None:  # a retry: from what the request belongs to
            return self._answers.retried(asked, known[0], account)
        fits: Callable[[Found], bool] = lambda one: stored or _fits(one, priced, within)  # noqa: E731
        exact = self._answers.exact(asked, account)
        if exact is not None and fits(exact):
            return exact
        met, others = self._answers.of_key(asked.key), not shown and self._ledger.answer(asked.key, account) is not None
        more = met is not None and bool(met.asked)  # it was measured for another question, of which it shows a part
        if others and not more and not self._ledger.has_account(account):
            return Found(asked.key, ReusableMeasurement.whole(priced))
        if not reuse and not more:
            return None
        names = () if within is None else tuple(within.errors)
        found = self._answers.found(asked, account, names, fits) if reuse else None
        if found is None and reuse:
            found = enough(asked, self._answers.unseen(asked, account), _as_wanted(priced, within))
        if found is not None or shown or earlier or (others and not more):  # what is another's is debited
            return found
        _, key, lacking = self._bought(asked, replace(options, request=None))
        met = self._answers.of_key(key) if lacking is None else None
        return None if met is None else self._answers.repeated(met, asked, account)

    def _bought(self, asked: Sought, options: AskOptions) -> tuple[Measurement, str, Missing | None]:
        """What is measured for a question that no stored answer holds, and its key: its own measurement, or that of all
        cells of its public keys where it costs the same; or less of it, and what that is put together with. Where just
        this was measured, and the noise was seen, so that its interval would be too wide, it is measured once more,
        under the next key."""
        account, within, reuse = options.account, options.within, options.reuse
        met = self._answers.of_key(asked.key)
        known = self._ledger.requested(account, options.request)
        more = None
        if met is None and self._ledger.answer(asked.key, account) is None:
            more = whole(asked.priced, asked.table) if reuse or known is not None else None
        measured, key = asked.priced, asked.key
        if more is not None and holds(more, asked) and self._planner.computes(more, asked.table):
            measured, key = more, self._key(asked.table, more, asked.numbers)
        free = None
        for one in _keys(key):
            met = self._answers.of_key(one)
            found = None if met is None else self._answers.repeated(met, asked, account)
            if found is None or _fits(found, asked.priced, within):
                free, key = found, one
                break
        lacking = self._missing(asked, account, within) if free is None and reuse else None
        own = key
        if lacking is not None:
            own = self._key(asked.table, lacking.bought, asked.numbers)
            own = next(
                one
                for one in _keys(own)
                if self._answers.of_key(one) is None and self._ledger.answer(one, account) is None
            )
        if known is not None and known[0] != own:  # a retry of what has no answer: its very measurement, or none
            plain = (asked.priced, asked.key) if known[0] == asked.key else (measured, key)
            return *plain, None
        return (measured, key, None) if lacking is None else (lacking.bought, own, lacking)

    def _missing(self, asked: Sought, account: str, within: Within | None) -> Missing | None:
        """What is bought where some of a question's precision is stored, and was not seen."""
        stored = self._answers.unseen(asked, account)
        found = missing(
            asked, stored, _as_wanted(asked.priced, within), lambda one: self._accounts.least.admits(one.loss)
        )
        more = None if found is None else whole(found.bought, asked.table)
        if found is None or more is None or not self._planner.computes(more, asked.table):
            return found
        return of_all_cells(found, more, asked) or found

    def _stored_layers(
        self, planned: PlannedLayers, options: AskOptions, numbers: Callable[[Table], str | None]
    ) -> PricedLayers | None:
        """A question without a price, at the prices of the answers that are stored for whoever asks; None where one is
        missing. Nothing is written. `numbers` says which snapshots a table has, None where it has none."""
        data, values = dict(planned.data), dict(planned.known)
        account, request = options.account, options.request
        parts: list[PricedPart] = []
        for place, one in enumerate(planned.layers.measured):
            self._planner.release_values(planned, one, data, values)
            own = f"{request}{PIECE}{place + 1}" if request is not None and planned.outer is not None else request
            try:
                question = self._planner.filled(one, values) if one.waits else one.question
            except QuestionError:  # it has no row, at any price
                if not parts:
                    return None
                data[one.name] = {}
                parts.append(PricedPart(one, self._measurements.at(one.question, parts[-1].measured.price, account)))
                continue
            found = self._dearest(one.question.plan, question, account, own, numbers(question.table))
            if found is None:
                return None
            price, _ = found
            parts.append(PricedPart(one, self._measurements.at(one.question, price, account)))
            if any(later.waits for later in planned.layers.measured[place + 1 :]):
                priced = self._measurements.at(question, price, account)
                content = self._kept_content(priced, question.table, account, numbers, len(planned.layers.measured))
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
        if any(key.startswith(WHOLE) for key in known):  # a retry of what the synthetic state has answered
            return None
        self._answers.read()
        more = {} if request is not None and known else self._answers.asked(prefix, account)
        amounts = {key: Fraction(key.split()[1]) for key in (*known, *more)}

        def key_at(price: Price, among: Container[str]) -> str | None:
            priced = self._measurements.at(question, price, account)
            keys = (self._key(question.table, one, numbers) for one in variants(priced))
            return next((key for key in keys if key in among), None)

        best: tuple[Price, str] | None = None
        for epsilon in sorted(set(amounts.values()), reverse=True)[:MOST_TRIED]:
            price = complete(priced, self._declaration, epsilon, None)
            if (key := key_at(price, amounts)) is not None:
                best = price, key
                break
        least = Fraction(0) if best is None else best[0].epsilon
        dearer = sorted((key for key in amounts if amounts[key] > least), key=lambda key: -amounts[key])
        for key in dearer[:MOST_TRIED]:
            paid = more.get(key) or self._paid(key, account)
            if paid is not None and key_at(paid, {key}) is not None:
                return paid, key
        return best

    def _paid(self, key: str, account: str) -> Price | None:
        """The price of a stored answer."""
        content = self._ledger.answer(key, account)
        return None if content is None else price_of(json.loads(content))

    def balance(self, account: str = TOTAL, part: str | None = None) -> Balance:
        """Says how much of the budget is left to the analyst whose `account` it is, or to the owner.

        With `part`, of what is asked of the rows of that part's persons alone: its own budget pays for that. Raises
        QuestionError where nobody of that name is declared, or no such part, LedgerError.
        """
        accounts = self._about(part)._accounts
        return accounts.balance(account if account == TOTAL else accounts.of(account))

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
        account, question = one._accounts.of(analyst), as_text(question)
        if not isinstance(question, str):
            from discreet.workload.answers import answering

            wanted(within, confidence, together)
            call = answering(one._declaration, question, epsilon, delta, within)
            return Explanation(
                price=call.cost,
                expected_error=call.expected_error,
                mechanisms=tuple(call.mechanisms),
                bounds=(*call.bounds, *one._accounts.pays()),
                **one._accounts.takes(call.loss, account),
            )
        with one._on_schedule():
            errors = wanted(within, confidence, together)
            options = AskOptions(epsilon, delta, errors, account, None, default_price, reuse)
            return one._explained(one._planner.asked(question, dialect), options)

    def _explained(self, text: Asked, options: AskOptions) -> Explanation:
        asked = self._priced_layers(text, options)
        parts = [(part.measured, part.table) for part in asked.parts]
        options = replace(options, named=_named_price(asked, options))
        ready = [self._foretold(priced, table, options, stored=asked.stored) for priced, table in parts]
        questions = [
            None if one.found is not None else self._state_question(priced, table, options)
            for (priced, table), one in zip(parts, ready, strict=True)
        ]
        why_not = self._why_not() if any(questions) else []
        by_state = [one is not None and not why_not for one in questions]
        ready = [_Foretold() if state else one for one, state in zip(ready, by_state, strict=True)]
        paid = [
            priced if one.lacking is None else one.lacking.bought for (priced, _), one in zip(parts, ready, strict=True)
        ]
        loss = Batch(tuple(part for one in paid for part in one.loss.parts))
        takes = self._accounts.takes(loss, options.account)
        if self._synthetic is not None and any(questions) and not why_not and None not in questions:
            takes["odds"] = best_guess(self._synthetic.whole.loss)  # after all its answers
        synthetic = self._synthetic.said_before() if self._synthetic is not None and any(by_state) else ""
        found = [one.found for one in ready if one.found is not None]
        free = len(found) + sum(by_state) == len(parts) > 0
        remarks = tuple(dict.fromkeys(one for part in parts for one in may_be_left_out(*part)))
        words = [
            line
            for priced, table in parts
            for line in (*assumed(priced.plan, options.within), *advice(priced.plan, table))
        ]
        words += [line for one in paid for line in self._accounts.at_least(one.loss)]
        words += [one.words for one in ready if one.words]
        words += why_not + ([f"in part {synthetic}"] if synthetic and not free else [])
        made = [
            self._synthetic.foretold(priced) if state and self._synthetic is not None else one.made or priced
            for (priced, _), one, state in zip(parts, ready, by_state, strict=True)
        ]
        return Explanation(
            price=_cost(paid),
            expected_error=_expected([(priced, one.found) for priced, one in zip(made, ready, strict=True)]),
            mechanisms=tuple(one for used in made for one in mechanisms(used)),
            bounds=(
                *dict.fromkeys(one.line for one in remarks),
                *text.said(self._declaration),
                *self._accounts.pays(),
            ),
            advice=tuple(dict.fromkeys(words)),
            means=tuple(name for priced, _ in parts for name in by_size(priced)),
            left_out=remarks,
            choices=tuple(one for part in parts for one in choices(*part)),
            stored=asked.stored,
            earlier=sum({one.key: one.answers for one in found}.values()) if free else 0,
            synthetic=synthetic if free else "",
            columns=asked.columns,
            **takes,
        )

    def _foretold(self, priced: Measurement, table: Table, options: AskOptions, *, stored: bool) -> _Foretold:
        """What would answer a measured table for nothing; or what would be measured beside it, or less of it."""
        numbers = self._holdings.numbers(table)
        if numbers is not None:
            found = self._found(priced, table, options, numbers=numbers, shown=True, stored=stored)
            if found is not None and found.look is not None:  # exact repeats are not told
                return _Foretold(found)
        asked = self._sought(priced, table, numbers or "")
        lacking = (
            None if numbers is None or not options.reuse else self._missing(asked, options.account, options.within)
        )
        if lacking is not None and found is None:
            errors = ", ".join(f"±{three_digits(error)}" for error in expected_errors(lacking.made.made).values())
            said = _together_with(len(lacking.others), lacking.bought.price, priced.price)
            return _Foretold(None, f"{said}{errors and ', ' + errors}", lacking)
        more = whole(priced, table) if options.reuse else None
        if more is None or not holds(more, asked):
            return _Foretold()
        names, size = ", ".join(key.name for key in more.plan.keys), group_count(more.plan.keys, table.relation)
        return _Foretold(
            None, f"at this price all {size:,} groups of {names} are measured: the others are kept for later questions"
        )

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
        errors, account = wanted(within, confidence, together), one._accounts.of(analyst)
        options = AskOptions(epsilon, delta, errors, account, default_price=default_price)
        return one._priced_layers(one._planner.asked(question, dialect), options).columns

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
        account = self._accounts.of(analyst)
        with self._on_schedule():
            errors = wanted(within, confidence, together)
            options = AskOptions(epsilon, delta, errors, account)
            asked = self._priced_layers(self._planner.asked(question, dialect), options)
            return self._accounts.balance(account).more(asked.loss)

    @property
    def budget(self) -> BudgetState:
        """The whole budget and how much of it is used, and the same of each declared analyst. Raises LedgerError."""
        return self._accounts.state()

    def budget_of(self, analyst: str) -> BudgetState:
        """Says how much of one analyst's own budget is used, as `budget` does; and of each part, what both leave.

        Raises QuestionError where nobody of that name is declared, LedgerError.
        """
        return self._accounts.state_of(self._accounts.of(analyst))

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
        name = TOTAL if analyst is None else self._accounts.of(analyst)
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

    def _planned_layers(self, text: Asked, account: str) -> PlannedLayers:
        """A question without its price, as it was planned for the same account before, or anew."""
        key = (account, text, self._public_snapshots())
        found = self._plans.get(key)
        if found is None:
            found = self._planner.plan(text)
            if found.small:
                self._plans.keep(key, found)
        return found

    def _priced_layers(self, text: Asked, options: AskOptions, *, load: bool = False) -> PricedLayers:
        """A question at the price that is named, as it was planned for the same account before, or anew; where none is,
        as `curator.unpriced` says. With `load`, answers are looked for of the tables as they are loaded now. Without
        `default_price`, the price that is declared for all is none."""
        self._answers.read()
        epsilon, delta, within, account = options.epsilon, options.delta, options.within, options.account
        if epsilon is None and delta is None and within is None:
            planned = self._planned_layers(text, account)
            if planned.layers.measured and not names_price(planned.layers):
                numbers = (lambda table: self._holdings.held(table).numbers) if load else self._holdings.numbers
                stored = self._stored_layers(planned, options, numbers)
                for_all = options.default_price is True
                if stored is None and self._declaration.usual_price(account, for_all=for_all) is None:
                    by_state = self._all_by_state(planned, options, told=load)
                    if by_state is None:
                        raise self._no_price(planned, account)
                    return by_state
                return stored or self._at(planned, options)
            return self._at(planned, options)
        price = asked_price(epsilon, delta, within)
        key = (
            None
            if price is None
            else (account, text, price, self._public_snapshots(), self._measurements.known(account))
        )
        found = self._prices.get(key)
        if found is None:
            found = self._at(self._planner.plan(text), options)
            if found.planned.small:
                self._prices.keep(key, found)
        return found

    def _all_by_state(self, planned: PlannedLayers, given: AskOptions, *, told: bool) -> PricedLayers | None:
        """A question without a price, where the synthetic state answers all its parts; what it has answered before, to
        anybody, is not `told` before the question is asked."""
        if self._synthetic is None:
            return None
        account, request = given.account, given.request
        options = AskOptions(epsilon=self._synthetic.price.epsilon, account=account, named=False)
        asked = self._at(planned, options)
        for place, one in enumerate(asked.parts):
            own = f"{request}{PIECE}{place + 1}" if request is not None and planned.outer is not None else request
            if self._by_state(one.measured, one.table, replace(options, request=own)) is None:
                return None
        return replace(asked, by_state=True) if told or not self._why_not() else None

    def _public_snapshots(self) -> tuple[object, ...]:
        """What a plan follows from beside the question and the declaration."""
        public = [table.name for table in self._declaration.tables.values() if table.public]
        return tuple(map(self._ledger.snapshot, public))

    def _no_price(self, planned: PlannedLayers, account: str) -> QuestionError:
        """The refusal of a question without a price: what prices would buy that whoever asks has left. Raises
        QuestionError where the question would be refused at each of them."""
        balance = self._accounts.balance(account)
        whole = balance.total if balance.own is None else balance.own
        found: list[tuple[Fraction, PricedLayers]] = []
        refused: QuestionError | None = None
        for price in (*(floor(whole.epsilon * share, 1) for share in SHARES), floor(balance.prices[0], 2)):
            if price and len(found) < len(SHARES) and not (found and price <= found[-1][0]):
                try:
                    asked = self._at(planned, AskOptions(price, account=account))
                except QuestionError as error:
                    refused = error
                    continue
                if balance.more(asked.loss):
                    found.append((price, asked))
        if refused is not None and not found:
            return refused
        means = [name for _, asked in found for part in asked.parts for name in by_size(part.measured)]
        return no_price(self._accounts.own(account), [(price, asked.expected) for price, asked in found], means)

    def _at(self, planned: PlannedLayers, options: AskOptions) -> PricedLayers:
        """A question at a price, each of its measured tables at its part of it."""
        within, account = options.within, options.account
        prices = shared(planned.layers, self._declaration, options.epsilon, options.delta, within, account)
        parts = []
        for one, (own_epsilon, own_delta) in zip(planned.layers.measured, prices, strict=True):
            price = self._measurements.price(one.question, own_epsilon, own_delta, within, account)
            priced = self._measurements.at(one.question, price, account)
            self._accounts.least.check(priced.loss)
            parts.append(PricedPart(one, priced))
        return PricedLayers(planned, tuple(parts))

    def _key(self, table: Table, priced: Measurement, numbers: str) -> str:
        """What makes two questions the same: what is measured, with which noise, of which snapshots, those of exactly
        the tables that are read.

        Where the source's file lies is no part of it: the snapshot says what was read.
        """
        return f"{self._frame(table, priced.plan, numbers)}{priced.price.epsilon} {digest(measured(priced))}"

    def _frame(self, table: Table, plan: Plan, numbers: str) -> str:
        """How keys begin that are of the same rows and groups: declared alike, of the same snapshots, in one engine."""
        return digest(frame(plan), *declared(*table.bases), numbers, self._kept_under) + " "


CHOSEN = (
    "some of this noise was seen before: the ± hold whatever is asked for after that, so they are wider; asked afresh,"
    " at a price, they are as usual"
)
"""What is said of an answer whose intervals are not those of its price."""


WIDER = Fraction(3, 2)
"""How much wider a free answer may print than the price that was named would alone, because its noise was seen. Where
it would print wider, the price is paid: who names one is told as much as it buys."""


def _fits(found: Found, priced: Measurement, within: Within | None) -> bool:
    """Whether the printed errors are within the wanted ones, or nearly those that the price would print alone."""
    if isinstance(found.held, CombinedMeasurement):
        return _as_wanted(priced, within).met(priced, found.held, again=True)
    if found.release is None and within is None:
        return True  # it was held against the price where it was found or bought
    share = found.share(_groups(found.held.measured))
    made = found.held.made
    if within is None:
        alone, printed = _all_errors(priced), _all_errors(made, (1 - CONFIDENCE) * (share or 1))
        return all(error <= WIDER * alone[name] for name, error in printed.items() if name in alone)
    miss = _miss(priced, within) if share is None else (1 - float(within.confidence)) * share
    return all(
        expected_errors(made, miss, group)[name] <= width for name, (width, group) in widths(made.plan, within).items()
    )


def _all_errors(measured: Measurement, miss: float = 1 - CONFIDENCE) -> dict[str, float]:
    """The expected errors by the places of the columns, also of those that formulas are made of."""
    outputs = [replace(one, hidden=False, name=str(place)) for place, one in enumerate(measured.plan.outputs)]
    return expected_errors(replace(measured, plan=replace(measured.plan, outputs=tuple(outputs))), miss)


def _miss(priced: Measurement, within: Within) -> float:
    """How often an interval may fail of which an error is wanted."""
    miss = 1 - float(within.confidence)
    if not within.together:
        return miss
    shown = sum(one.kind is not OutputKind.KEY and not one.hidden for one in priced.plan.outputs)
    return miss / max(1, _groups(priced) * shown)


def _as_wanted(priced: Measurement, within: Within | None) -> Wanted:
    """How precise an answer is to be."""
    if within is None:
        return Wanted({}, 1 - CONFIDENCE)
    errors = {name: width for name, (width, _) in widths(priced.plan, within).items()}
    return Wanted(errors, _miss(priced, within))


def _together_with(others: int, paid: Price, named: Price) -> str:
    """What is said of an answer that is made of what was bought for it and of others."""
    several = "s" if others > 1 else ""
    return (
        f"ε {show(paid.epsilon)} instead of ε {show(named.epsilon)}: put together with {others} earlier answer{several}"
    )


def _keys(key: str) -> Iterator[str]:
    """A measurement's key, and those under which the same is measured once more."""
    return itertools.chain([key], (f"{key} {number}" for number in itertools.count(2)))


def _groups(measured: Measurement) -> int:
    """How many groups a stored answer has; 1 where they are private."""
    return cell_count(measured.plan.keys) or 1


@dataclass(frozen=True)
class _Foretold:
    """What would answer a measured table for nothing, or what of it would be bought and put together; in words, what
    else there is to be said."""

    found: Found | None = None
    words: str = ""
    lacking: Missing | None = None

    @property
    def made(self) -> Measurement | None:
        """What the answer would be made of, where that is not its own measurement."""
        if self.lacking is not None:
            return self.lacking.made.made
        return None if self.found is None else self.found.held.made


def _cost(parts: Sequence[Measurement]) -> Cost:
    """The price of all parts of a question together."""
    prices = [part.price for part in parts]
    return Cost(epsilon=float(sum(one.epsilon for one in prices)), delta=float(sum(one.delta for one in prices)))


def _expected(parts: Sequence[tuple[Measurement, Found | None]]) -> dict[str, float]:
    """The expected error of each column of measured tables, each as it is made, or answered from what is stored."""
    found: dict[str, float] = {}
    for made, one in parts:
        share = None if one is None else one.share(_groups(one.held.measured))
        for name, error in expected_errors(made, (1 - CONFIDENCE) * (share or 1)).items():
            found[next(known for known in numbered(name) if known not in found)] = error
    return found


def _named_price(asked: PricedLayers, options: AskOptions) -> bool:
    """Whether whoever asks has named a price or an error, beside the question or in it."""
    said = (options.epsilon, options.delta, options.within)
    return any(one is not None for one in said) or names_price(asked.planned.layers)


"""Plans with more values of public tables and declared groups are not kept."""

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
