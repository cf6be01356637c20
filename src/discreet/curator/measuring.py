"""One measured table of a question, answered: from what is stored, by the synthetic state, or through the door."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from discreet.catalog import Table
from discreet.curator.balances import Balances
from discreet.curator.by_state import ByState
from discreet.curator.lookup import Bought, Lookup
from discreet.curator.options import AskOptions
from discreet.curator.request_ids import RequestIds
from discreet.curator.stored_answers import StoredAnswers, described, not_yet
from discreet.errors import QuestionError
from discreet.holdings import Holdings
from discreet.ledger import Ledger
from discreet.plan.measurement import Measurement
from discreet.procedures.run import released
from discreet.release.content import FREE, Cost, ReleaseContent
from discreet.release.stored import written
from discreet.schedule import engine_time_over
from discreet.trusted.ring_a.gate import Door
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_b.questions import Groups, Noisy


@dataclass(frozen=True, eq=False, repr=False)
class Measuring:
    """Measures through the `door` what has no answer yet."""

    ledger: Ledger
    door: Door
    holdings: Holdings
    answers: StoredAnswers
    lookup: Lookup
    by_state: ByState
    request_ids: RequestIds
    balances: Balances

    def measured(
        self,
        text: str,
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
        snapshots, account, request = self.holdings.held(table), options.account, options.request
        self.request_ids.hold(text, priced, table, snapshots.numbers, options)
        found = self.lookup.found(priced, table, options, numbers=snapshots.numbers, stored=stored)
        said: list[str] = []
        if found is None and not stored:
            question = self.by_state.question(priced, table, options)
            retries = self.ledger.requested(account, request) is not None
            if question is not None and not (retries and self.by_state.again(question, options) is None):
                replied = self.by_state.reply(text, priced, question, options, together)
                if replied is not None:
                    return *replied, priced.loss
                said = self.by_state.why_not()
            if by_state:
                fix = "name a price, as with epsilon=0.1 or --epsilon 0.1"
                raise QuestionError("price", "the synthetic state answers no more, and no price is named", fix=fix)
        asked = self.lookup.sought(priced, table, snapshots.numbers)
        if stored and found is None and self.ledger.answer(asked.key, account) is None:
            raise QuestionError("price", "a new snapshot was taken meanwhile; nothing was spent", fix="ask again")
        bought = self.lookup.bought(asked, options) if found is None else Bought(found.held.measured, found.key)
        measured, key, lacking = bought.measured, bought.key, bought.missing
        said_first = partial(described, measured, asked, key, None if lacking is None else lacking.described)
        first = said_first() if found is None else None  # before the price; what is stored already is not described

        def stored_as(noisy: Noisy, one: Measurement) -> bytes:
            whole = {"cells": said_first() if first is None else first, **written(noisy, one)}
            return json.dumps(whole, ensure_ascii=False).encode()

        def through_the_door(one: Measurement, key: str, name: str | None) -> tuple[bytes, bool]:
            return released(
                self.door,
                Groups(one, table),
                lambda noisy: stored_as(noisy, one),
                analyst=account,
                question=text,
                key=key,
                request=name,
                rows=snapshots.rows,
                due=engine_time_over,
            )

        others = lacking.others if lacking is not None else found.others if found is not None and found.look else ()
        if lacking is not None:  # nothing is seen for a question that cannot be paid
            self.balances.hold_room(measured.loss, account, keep=False)  # no more than the charge asks for
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
            self.request_ids.hold(text, priced, table, snapshots.numbers, options)
        if found is None:
            self.answers.remember(measured.plan, table)
            self.answers.read()
            met = self.answers.of_key(key)
            if not charged and met is not None and (key != asked.key or met.asked):  # another process was faster
                again = replace(options, named=True)
                return self.measured(text, priced, table, again, together=together, looks=looks)
            if key != asked.key:
                met = self.answers.of_key(key, asked.key)
                found = None if met is None else self.answers.repeated(met, asked, account)
                assert found is not None  # `bought` has seen that it holds what is asked
        content = self.lookup.made(priced, table, account, kept, found, together=together)
        if found is not None and found.look is not None:
            content = replace(content, more={**content.more, "earlier_answers": found.answers})
        if said:
            content = replace(content, bounds=[*content.bounds, *said])
        loss = priced.loss if found is None or not found.others else measured.loss
        return content, content.cost if charged else FREE, loss
