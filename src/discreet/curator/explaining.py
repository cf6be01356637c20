"""What a question would cost and how far off its answer would be. Nothing is spent, and no row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.catalog import Declaration
from discreet.curator.balances import Balances
from discreet.curator.by_state import ByState
from discreet.curator.combining import Missing
from discreet.curator.lookup import Lookup, errors_of, together_with
from discreet.curator.options import AskOptions
from discreet.curator.prices import PricedPart, Prices, by_column, cost_of, loss_of
from discreet.curator.stored_answers import FoundAnswer, holds
from discreet.explanation import Explanation
from discreet.holdings import Holdings
from discreet.intervals.expected import by_size, expected_errors
from discreet.intervals.noise import three_digits
from discreet.odds import best_guess
from discreet.plan.left_out import advice
from discreet.plan.measurement import Measurement
from discreet.plan.whole import whole
from discreet.pricing import assumed
from discreet.release.estimate import mechanisms
from discreet.release.left_out import may_be_left_out
from discreet.release.limit_advice import choices
from discreet.sql.asked import Asked
from discreet.trusted.ring_b.listed_groups import group_count

if TYPE_CHECKING:
    from discreet.synthesis.state import SyntheticState
    from discreet.workload.answers import PlannedWorkload


@dataclass(frozen=True)
class _Foretold:
    """How a measured table would be answered at its price: by what was found for nothing, by the synthetic state, or by
    what is bought and put together with earlier answers; in words, what else there is to be said."""

    priced: Measurement
    found: FoundAnswer | None = None
    words: str = ""
    lacking: Missing | None = None
    state: SyntheticState | None = None

    @property
    def paid(self) -> Measurement:
        """What would be bought."""
        return self.priced if self.lacking is None else self.lacking.bought

    @property
    def made(self) -> Measurement:
        """What the answer would be made of."""
        if self.state is not None:
            return self.state.foretold(self.priced)
        if self.lacking is not None:
            return self.lacking.made.made
        return self.priced if self.found is None else self.found.held.made


@dataclass(frozen=True, eq=False, repr=False)
class Explaining:
    """Explains questions at their prices. Of answers that others paid for it tells nothing."""

    declaration: Declaration
    holdings: Holdings
    prices: Prices
    lookup: Lookup
    by_state: ByState
    balances: Balances

    def explain(self, text: Asked, options: AskOptions) -> Explanation:
        """What a question would cost."""
        asked = self.prices.of(text, options)
        options = asked.named_in(options)
        parts = [(part.measured, part.table) for part in asked.parts]
        ready = [self._foretold(part, options, stored=asked.stored) for part in asked.parts]
        questions = [
            None if one.found is not None else self.by_state.question(priced, table, options)
            for (priced, table), one in zip(parts, ready, strict=True)
        ]
        why_not = self.by_state.why_not() if any(questions) else []
        ready = [
            one if question is None or why_not else _Foretold(one.priced, state=self.by_state.state)
            for question, one in zip(questions, ready, strict=True)
        ]
        states = [one.state for one in ready if one.state is not None]
        paid, made = [one.paid for one in ready], [one.made for one in ready]
        takes = self.balances.takes(loss_of(paid), options.account)
        if states and len(states) == len(ready):
            takes["odds"] = best_guess(states[0].whole.loss)  # after all its answers
        synthetic = states[0].said_before() if states else ""
        found = [one.found for one in ready if one.found is not None]
        free = len(found) + len(states) == len(parts) > 0
        remarks = tuple(dict.fromkeys(one for part in parts for one in may_be_left_out(*part)))
        words = [
            line
            for priced, table in parts
            for line in (*assumed(priced.plan, options.within), *advice(priced.plan, table))
        ]
        words += [line for one in paid for line in self.balances.at_least(one.loss)]
        words += [one.words for one in ready if one.words]
        words += why_not + ([f"in part {synthetic}"] if synthetic and not free else [])
        lines = (*dict.fromkeys(one.line for one in remarks), *text.said(self.declaration), *self.balances.pays())
        return Explanation(
            price=cost_of(paid),
            expected_error=by_column(errors_of(one, each.found) for one, each in zip(made, ready, strict=True)),
            mechanisms=tuple(one for used in made for one in mechanisms(used)),
            bounds=lines,
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

    def explain_workload(self, call: PlannedWorkload, account: str) -> Explanation:
        """What a workload would cost."""
        return Explanation(
            price=call.cost,
            expected_error=call.expected_error,
            mechanisms=tuple(call.mechanisms),
            bounds=(*call.bounds, *self.balances.pays()),
            advice=(),
            means=(),
            **self.balances.takes(call.loss, account),
        )

    def _foretold(self, part: PricedPart, options: AskOptions, *, stored: bool) -> _Foretold:
        """What would answer a measured table for nothing; or what would be measured beside it, or less of it."""
        priced, table = part.measured, part.table
        numbers, found = self.holdings.numbers(table), None
        if numbers is not None:
            found = self.lookup.found(priced, table, options, numbers=numbers, shown=True, stored=stored)
            if found is not None and found.look is not None:  # exact repeats are not told
                return _Foretold(priced, found)
        asked = self.lookup.sought(priced, table, numbers or "")
        lacking = None
        if numbers is not None and options.reuse:  # also for an exact repeat, which the time does not tell either
            lacking = self.lookup.missing(asked, options.account, options.within)
        if lacking is not None and found is None:
            errors = [f", ±{three_digits(error)}" for error in expected_errors(lacking.made.made).values()]
            said = together_with(len(lacking.others), lacking.bought.price, priced.price)
            return _Foretold(priced, None, said + "".join(errors), lacking)
        more = whole(priced, table) if options.reuse else None
        if more is None or not holds(more, asked):
            return _Foretold(priced)
        names, size = ", ".join(key.name for key in more.plan.keys), group_count(more.plan.keys, table.relation)
        said = f"at this price all {size:,} groups of {names} are measured: the others are kept for later questions"
        return _Foretold(priced, None, said)
