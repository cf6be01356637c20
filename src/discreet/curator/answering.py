"""A question, answered: its tables measured one after another, and its outer query computed from what they release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from discreet.catalog import Declaration, Table
from discreet.curator.balances import Balances
from discreet.curator.by_state import ByState
from discreet.curator.lookup import Lookup
from discreet.curator.measurements import Measurements
from discreet.curator.measuring import Measuring
from discreet.curator.options import AskOptions
from discreet.curator.planning import PlannedLayers, Planner
from discreet.curator.prices import PricedLayers, Prices, cost_of, loss_of
from discreet.curator.request_ids import RequestIds, piece, whole
from discreet.curator.warned import warn
from discreet.errors import QuestionError
from discreet.ledger import Ledger
from discreet.ledger.refusal import asked_otherwise
from discreet.ledger.words import check_text
from discreet.plan.measurement import Measurement
from discreet.postprocessing import computing
from discreet.pricing import assumed
from discreet.release import Release
from discreet.release.content import FREE, Cost, ReleaseContent
from discreet.schedule import Slot
from discreet.sql.asked import Asked
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_a.table import SourceKind


@dataclass(frozen=True, eq=False, repr=False)
class QuestionAnswering:
    """Answers questions at their prices."""

    declaration: Declaration
    ledger: Ledger
    outer: computing.OuterEngine
    planner: Planner
    measurements: Measurements
    prices: Prices
    lookup: Lookup
    by_state: ByState
    request_ids: RequestIds
    measuring: Measuring
    balances: Balances

    def answer(self, text: Asked, options: AskOptions, slot: Slot) -> Release:
        """The answer, with what is said beside it."""
        asked = self.prices.of(text, options, load=True)
        slot.take(sum(len(one.plan.roots) for one in asked.measured))
        options = asked.named_in(options)
        free = (self.by_state.answers(one.measured, one.table, options) for one in asked.parts)
        if not asked.stored and not all(free):
            self.balances.warn(asked.loss)
        for one in asked.measured:
            for words in assumed(one.plan, options.within):
                warn(words)
        if asked.planned.outer is None:
            (only,) = asked.parts
            self.request_ids.hold_alone(options.account, options.request)
            answered = self.measuring.measured(
                text.kept, only.measured, only.table, options, stored=asked.stored, by_state=asked.by_state
            )
        else:
            answered = self._computed(asked, options, slot)
        content, charged, loss = answered
        return self.balances.release(content, loss, charged, options.account, text)

    def _computed(self, asked: PricedLayers, options: AskOptions, slot: Slot) -> tuple[ReleaseContent, Cost, Batch]:
        """Measures the tables of a question one after another, and computes its outer query from what they release."""
        planned, outer = asked.planned, asked.planned.outer
        account, request = options.account, options.request
        assert outer is not None
        if self.ledger.requested(account, request) is not None:
            raise asked_otherwise()  # it belongs to a question without an outer query
        self.request_ids.hold_whole(planned, options)
        tables, data, losses = planned.tables, dict(planned.data), [one.loss for one in asked.measured]
        parts: list[ReleaseContent] = []
        charged = Cost(FREE)
        values = dict(planned.known)
        notes: list[str] = []
        priced = list(asked.parts)  # without those that the synthetic state answers
        looks: list[Callable[[], object]] = []
        room_held = False
        texts = [part.layer.text for part in asked.parts] + ([] if request is None else [planned.asked.kept])
        check_text(*texts, f"{whole(request or '')}{len(asked.parts)}")
        bases = (base for part in asked.parts for base in part.table.bases)
        self.ledger.check([base.name for base in bases if not base.public], account)  # before the first is paid

        def of_piece(place: int) -> AskOptions:
            return replace(options, request=piece(request, place))

        def costs(measured: Measurement, table: Table, own: AskOptions) -> bool:
            answered = asked.by_state or self.by_state.answers(measured, table, own)
            return not answered and self.lookup.found(measured, table, own, stored=asked.stored) is None

        def hold_room(place: int) -> None:
            """What comes from here on is held against the budget as it is measured."""
            self.balances.hold_room(loss_of(asked.measured[place:]), account, keep=True)

        for place, part in enumerate(asked.parts):  # before a name is written down, of those that are known
            if not part.layer.waits and costs(part.measured, part.table, of_piece(place)):
                hold_room(place)
                room_held = not any(one.layer.waits for one in asked.parts[:place])  # of those nothing is held yet
                break
        for place, part in enumerate(asked.parts):
            one = part.layer
            notes += self.planner.release_values(planned, one, data, values)
            measured, table, text = part.measured, part.table, one.text
            if one.waits:
                try:
                    question = self.planner.filled(one, values)
                    measured, table = self.measurements.at(question, part.measured.price, account), question.table
                    text = one.text_with(values)
                    check_text(text)
                except QuestionError as error:  # it follows from a released value: the first stage is paid
                    data[one.name] = {}
                    notes.append(f"a table that waits for a released value has no row, and is free: {error.message}")
                    continue
            own = of_piece(place)
            if not room_held and costs(measured, table, own):
                hold_room(place)
                room_held = True
            slot.part(len(measured.plan.roots))
            content, paid, losses[place] = self.measuring.measured(
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
            if not parts:  # before more is paid, or anything is shown
                self.request_ids.keep_whole(planned, options, own.request)
            data[one.name] = computing.data_of(content, tables[one.name])
            parts.append(content)
            if "synthetic_state" in content.more:
                priced.remove(part)
            charged = Cost({name: charged[name] + paid[name] for name in charged})
        computed = self.outer.compute(outer, tables, data, paid=bool(parts))
        for look in looks:  # nothing can fail any more
            look()
        compared = bool(values) and bool(parts)
        cost = cost_of([part.measured for part in priced])
        content = computing.content(outer, computed, parts, cost, compared=compared, notes=notes)
        content = _with_errors(content, planned, self.declaration, free=not parts)
        state = self.by_state.state
        if asked.parts and not priced and state is not None:
            content = replace(content, more={"synthetic_state": f"from the synthetic state; {state.used()}"})
        loss = Batch(tuple(one for each in losses for one in each.parts))
        return content, charged if charged else FREE, loss


def _with_errors(
    content: ReleaseContent, planned: PlannedLayers, declaration: Declaration, *, free: bool
) -> ReleaseContent:
    """The answer with what is known of the errors of published synthetic tables that its outer query reads."""
    read = [declaration.table(planned.tables[name].name) for name in planned.outer.tables] if planned.outer else []
    kinds = (SourceKind.FRAME, SourceKind.PARQUET, SourceKind.DATABASE)
    public = [one for one in read if one is not None and one.public and one.source.kind in kinds]
    if not public:
        return content
    from discreet.synthesis.database import bounds_of
    from discreet.synthesis.query import with_errors

    found = {one.name: known for one in public if (known := bounds_of(one, declaration.tables.values())) is not None}
    plain = free and not planned.asked.dialect  # else it is read otherwise, or not of these tables alone
    return with_errors(content, planned.asked.text if plain else "", found) if found else content
