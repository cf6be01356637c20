"""A text at its price: the one that is named, that of the answers that are stored, or the declared one."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.accounting import Loss
from discreet.catalog import Declaration, Table
from discreet.curator.balances import Balances
from discreet.curator.by_state import ByState
from discreet.curator.lookup import Lookup
from discreet.curator.measurements import Measurements, variants
from discreet.curator.options import AskOptions
from discreet.curator.planning import PlannedLayers, Planner
from discreet.curator.plans import Plans, price_of
from discreet.curator.request_ids import piece
from discreet.curator.stored_answers import StoredAnswers
from discreet.curator.unpriced import SHARES, no_price
from discreet.errors import QuestionError
from discreet.holdings import Holdings
from discreet.intervals.expected import by_size, expected_errors
from discreet.ledger import Ledger
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.postprocessing import computing
from discreet.pricing import complete, names_price, shared
from discreet.release.content import Cost
from discreet.release.foreseen import ESTIMATE, column_types
from discreet.release.reused import MOST_READ, MOST_TRIED
from discreet.release.stored import price_of as stored_price
from discreet.sql import Question
from discreet.sql.asked import Asked
from discreet.sql.layers import MeasuredTable
from discreet.sql.scope import numbered
from discreet.trusted.ring_a.exact import floor
from discreet.trusted.ring_a.gate import WHOLE
from discreet.trusted.ring_a.loss import Batch


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
        return loss_of(self.measured)

    @property
    def measured(self) -> list[Measurement]:
        """The measurements of its parts."""
        return [part.measured for part in self.parts]

    def named_in(self, options: AskOptions) -> AskOptions:
        """What is said beside it, with whether a price or an error is named there or in the question."""
        said = (options.epsilon, options.delta, options.within)
        return replace(options, named=any(one is not None for one in said) or names_price(self.planned.layers))


@dataclass(frozen=True, eq=False, repr=False)
class Prices:
    """Prices texts. What was planned and priced lately is kept: `curator.plans`."""

    declaration: Declaration
    ledger: Ledger
    holdings: Holdings
    planner: Planner
    measurements: Measurements
    answers: StoredAnswers
    lookup: Lookup
    by_state: ByState
    balances: Balances
    _planned: Plans[PlannedLayers] = field(default_factory=Plans)
    _priced: Plans[PricedLayers] = field(default_factory=Plans)

    def of(self, text: Asked, options: AskOptions, *, load: bool = False) -> PricedLayers:
        """A question at the price that is named, as it was planned for the same account before, or anew; where none is,
        as `curator.unpriced` says. With `load`, answers are looked for of the tables as they are loaded now. Without
        `default_price`, the price that is declared for all is none."""
        self.answers.read()
        epsilon, delta, within, account = options.epsilon, options.delta, options.within, options.account
        if epsilon is None and delta is None and within is None:
            planned = self._plan(text, account)
            if not planned.layers.measured or names_price(planned.layers):
                return self._at(planned, options)
            stored = self._stored(planned, options, load=load)
            for_all = options.default_price is True
            if stored is None and self.declaration.usual_price(account, for_all=for_all) is None:
                by_state = self._by_state(planned, options, told=load)
                if by_state is None:
                    raise self._no_price(planned, account)
                return by_state
            return stored or self._at(planned, options)
        price = price_of(epsilon, delta, within)
        known = self._public_snapshots(), self.measurements.known(account)
        key = None if price is None else (account, text, price, known)
        found = self._priced.get(key)
        if found is None:
            found = self._at(self.planner.plan(text), options)
            if found.planned.small:
                self._priced.keep(key, found)
        return found

    def _plan(self, text: Asked, account: str) -> PlannedLayers:
        """A question without its price, as it was planned for the same account before, or anew."""
        key = (account, text, self._public_snapshots())
        found = self._planned.get(key)
        if found is None:
            found = self.planner.plan(text)
            if found.small:
                self._planned.keep(key, found)
        return found

    def _public_snapshots(self) -> tuple[object, ...]:
        """What a plan follows from beside the question and the declaration."""
        public = [table.name for table in self.declaration.tables.values() if table.public]
        return tuple(map(self.ledger.snapshot, public))

    def _at(self, planned: PlannedLayers, options: AskOptions) -> PricedLayers:
        """A question at a price, each of its measured tables at its part of it."""
        within, account = options.within, options.account
        prices = shared(planned.layers, self.declaration, options.epsilon, options.delta, within, account)
        parts = []
        for one, (own_epsilon, own_delta) in zip(planned.layers.measured, prices, strict=True):
            price = self.measurements.price(one.question, own_epsilon, own_delta, within, account)
            priced = self.measurements.at(one.question, price, account)
            self.balances.least.check(priced.loss)
            parts.append(PricedPart(one, priced))
        return PricedLayers(planned, tuple(parts))

    # where no price is named

    def _stored(self, planned: PlannedLayers, options: AskOptions, *, load: bool) -> PricedLayers | None:
        """A question without a price, at the prices of the answers that are stored for whoever asks; None where one is
        missing. Nothing is written."""
        numbers: Callable[[Table], str | None] = (
            (lambda table: self.holdings.held(table).numbers) if load else self.holdings.numbers
        )
        data, values = dict(planned.data), dict(planned.known)
        account, measured = options.account, planned.layers.measured
        parts: list[PricedPart] = []
        for place, one in enumerate(measured):
            self.planner.release_values(planned, one, data, values)
            try:
                question = self.planner.filled(one, values) if one.waits else one.question
            except QuestionError:  # it has no row, at any price
                if not parts:
                    return None
                data[one.name] = {}
                parts.append(PricedPart(one, self.measurements.at(one.question, parts[-1].measured.price, account)))
                continue
            taken = numbers(question.table)
            request = piece(options.request, place) if planned.outer is not None else options.request
            price = self._dearest(one.question.plan, question, account, request, taken) if taken is not None else None
            if taken is None or price is None:
                return None
            parts.append(PricedPart(one, self.measurements.at(one.question, price, account)))
            if any(later.waits for later in measured[place + 1 :]):
                priced = self.measurements.at(question, price, account)
                content = self.lookup.stored(priced, question.table, taken, account, together=len(measured))
                data[one.name] = computing.data_of(content, planned.tables[one.name])
        return PricedLayers(planned, tuple(parts), stored=True)

    def _dearest(
        self, priced: Plan, question: Question, account: str, request: str | None, numbers: str
    ) -> Price | None:
        """The price of the dearest answer to a measured table that costs whoever asks nothing. A δ that was not named
        follows from ε and from the plan that was `priced`, before it was filled; others are read."""
        prefix = self.lookup.frame(question.table, question.plan, numbers)
        known = [key for key, _ in self.ledger.answered(prefix, account, request, MOST_READ, theirs=True)]
        if any(key.startswith(WHOLE) for key in known):  # a retry of what the synthetic state has answered
            return None
        self.answers.read()
        more = {} if request is not None and known else self.answers.asked(prefix, account)
        amounts = {key: Fraction(key.split()[1]) for key in (*known, *more)}

        def among(keys: Container[str], price: Price) -> bool:
            priced = self.measurements.at(question, price, account)
            return any(self.lookup.key(question.table, one, numbers) in keys for one in variants(priced))

        best: Price | None = None
        for epsilon in sorted(set(amounts.values()), reverse=True)[:MOST_TRIED]:
            price = complete(priced, self.declaration, epsilon, None)
            if among(amounts, price):
                best = price
                break
        least = Fraction(0) if best is None else best.epsilon
        dearer = sorted((key for key in amounts if amounts[key] > least), key=lambda key: -amounts[key])
        for key in dearer[:MOST_TRIED]:
            paid = more.get(key) or self._paid(key, account)
            if paid is not None and among({key}, paid):
                return paid
        return best

    def _paid(self, key: str, account: str) -> Price | None:
        """The price of a stored answer."""
        content = self.ledger.answer(key, account)
        return None if content is None else stored_price(json.loads(content))

    def _by_state(self, planned: PlannedLayers, given: AskOptions, *, told: bool) -> PricedLayers | None:
        """A question without a price, where the synthetic state answers all its parts; what it has answered before, to
        anybody, is not `told` before the question is asked."""
        state = self.by_state.state
        if state is None:
            return None
        options = AskOptions(epsilon=state.price.epsilon, account=given.account, named=False)
        asked = self._at(planned, options)
        for place, one in enumerate(asked.parts):
            request = piece(given.request, place) if planned.outer is not None else given.request
            if not self.by_state.answers(one.measured, one.table, replace(options, request=request)):
                return None
        return replace(asked, by_state=True) if told or not self.by_state.why_not() else None

    def _no_price(self, planned: PlannedLayers, account: str) -> QuestionError:
        """The refusal of a question without a price: what prices would buy that whoever asks has left. Where it would
        be refused at each of them, that refusal."""
        balance = self.balances.balance(account)
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
        means = [name for _, asked in found for one in asked.measured for name in by_size(one)]
        buys = [(price, by_column(map(expected_errors, asked.measured))) for price, asked in found]
        return no_price(self.balances.own(account), buys, means)


def loss_of(parts: Sequence[Measurement]) -> Batch:
    """What the parts of a question lose together."""
    return Batch(tuple(loss for part in parts for loss in part.loss.parts))


def cost_of(parts: Sequence[Measurement]) -> Cost:
    """The price of the parts of a question together."""
    prices = [part.price for part in parts]
    return Cost(epsilon=float(sum(one.epsilon for one in prices)), delta=float(sum(one.delta for one in prices)))


def by_column(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The expected errors of the columns of all parts of a question."""
    found: dict[str, float] = {}
    for part in parts:
        for name, error in part.items():
            found[next(one for one in numbered(name) if one not in found)] = error
    return found
