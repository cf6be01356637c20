"""The stored answer that a measured table of a question is answered from; or what is measured, where there is none."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.catalog import Table
from discreet.curator.combining import Missing, WantedPrecision, enough, missing, of_all_cells
from discreet.curator.measurements import variants
from discreet.curator.options import AskOptions
from discreet.curator.planning import Planner
from discreet.curator.stored_answers import FoundAnswer, Sought, StoredAnswers, base, holds
from discreet.holdings import Holdings
from discreet.intervals.expected import expected_errors
from discreet.intervals.noise import CONFIDENCE
from discreet.ledger import Ledger
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.outputs import OutputKind
from discreet.plan.whole import whole
from discreet.pricing import Within, widths
from discreet.procedures.run import declared, digest
from discreet.release import answer
from discreet.release.combined import CombinedMeasurement
from discreet.release.content import ReleaseContent
from discreet.release.reused import ReusableMeasurement, frame
from discreet.release.stored import measured, read
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.least import Least
from discreet.trusted.ring_a.sensitivity import cell_count

CHOSEN = (
    "some of this noise was seen before: the ± hold whatever is asked for after that, so they are wider; asked afresh,"
    " at a price, they are as usual"
)
"""What is said of an answer whose intervals are not those of its price."""

WIDER = Fraction(3, 2)
"""How much wider a free answer may print than the price that was named would alone, because its noise was seen. Where
it would print wider, the price is paid: who names one is told as much as it buys."""


@dataclass(frozen=True)
class Bought:
    """What is measured for a question, and its key; where less is bought than is asked for, what is `missing`."""

    measured: Measurement
    key: str
    missing: Missing | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Lookup:
    """Looks for stored answers, of the rows of snapshots, that are `kept_under` a name."""

    ledger: Ledger
    holdings: Holdings
    planner: Planner
    answers: StoredAnswers
    least: Least
    kept_under: str

    def key(self, table: Table, priced: Measurement, numbers: str) -> str:
        """What makes two questions the same: what is measured, with which noise, of which snapshots, those of exactly
        the tables that are read.

        Where the source's file lies is no part of it: the snapshot says what was read.
        """
        return f"{self.frame(table, priced.plan, numbers)}{priced.price.epsilon} {digest(measured(priced))}"

    def frame(self, table: Table, plan: Plan, numbers: str) -> str:
        """How keys begin that are of the same rows and groups: declared alike, of the same snapshots, in one engine."""
        return digest(frame(plan), *declared(*table.bases), numbers, self.kept_under) + " "

    def sought(self, priced: Measurement, table: Table, numbers: str) -> Sought:
        """A measurement, as stored ones are looked for that hold it."""
        parts = (*declared(*table.bases), numbers, self.kept_under)
        frame, cells = self.frame(table, priced.plan, numbers), base(table, priced.plan, *parts)
        return Sought(priced, table, numbers, self.key(table, priced, numbers), frame, cells)

    def found(
        self,
        priced: Measurement,
        table: Table,
        options: AskOptions,
        *,
        numbers: str | None = None,
        shown: bool = False,
        stored: bool = False,
    ) -> FoundAnswer | None:
        """The stored answer that a question is answered from for nothing; None where it is to be measured, or debited.
        `numbers` are the snapshots, of tables that need not be loaded. Where it is `shown` before anybody asks, only
        from what whoever asks may know to be there. Where no price was named for what is `stored`, however wide its
        intervals are.

        Where limits were chosen by what is known of the table's persons, also by what was known before: what was free
        then, stays free."""
        numbers = numbers or self.holdings.held(table).numbers
        self.answers.read()
        found: FoundAnswer | None = None
        for one in variants(priced):
            asked = self.sought(one, table, numbers)
            now = self._found_as(asked, options, shown=shown, earlier=one is not priced, stored=stored)
            if now is not None and now.look is None:
                return now
            found = found or now
        return found

    def _found_as(
        self, asked: Sought, options: AskOptions, *, shown: bool, earlier: bool, stored: bool
    ) -> FoundAnswer | None:
        """`found` of this very measurement. One that follows from what was known `earlier` is taken from what costs
        nothing alone: what is debited is measured at the limits that are best now."""
        priced, account, within, reuse = asked.priced, options.account, options.within, options.reuse
        known = self.ledger.requested(account, options.request)
        if known is not None:  # a retry: from what the request belongs to
            return self.answers.retried(asked, known[0], account)
        precise: Callable[[FoundAnswer], bool] = lambda one: stored or _fits(one, priced, within)  # noqa: E731
        exact = self.answers.exact(asked, account)
        if exact is not None and precise(exact):
            return exact
        met, others = self.answers.of_key(asked.key), not shown and self.ledger.answer(asked.key, account) is not None
        more = met is not None and bool(met.asked)  # it was measured for another question, of which it shows a part
        if others and not more and not self.ledger.has_account(account):
            return FoundAnswer(asked.key, ReusableMeasurement.whole(priced))
        if not reuse and not more:
            return None
        names = () if within is None else tuple(within.errors)
        found = self.answers.found(asked, account, names, precise) if reuse else None
        if found is None and reuse:
            found = enough(asked, self.answers.unseen(asked, account), _needed(priced, within))
        if found is not None or shown or earlier or (others and not more):  # what is another's is debited
            return found
        bought = self.bought(asked, replace(options, request=None))
        met = self.answers.of_key(bought.key) if bought.missing is None else None
        return None if met is None else self.answers.repeated(met, asked, account)

    def bought(self, asked: Sought, options: AskOptions) -> Bought:
        """What is measured for a question that no stored answer holds: its own measurement, or that of all cells of its
        public keys where it costs the same; or less of it, and what that is put together with. Where just this was
        measured, and the noise was seen, so that its interval would be too wide, it is measured once more, under the
        next key."""
        account, within, reuse = options.account, options.within, options.reuse
        met = self.answers.of_key(asked.key)
        known = self.ledger.requested(account, options.request)
        more = None
        if met is None and self.ledger.answer(asked.key, account) is None:
            more = whole(asked.priced, asked.table) if reuse or known is not None else None
        measured, key = asked.priced, asked.key
        if more is not None and holds(more, asked) and self.planner.computes(more, asked.table):
            measured, key = more, self.key(asked.table, more, asked.numbers)
        free = None
        for one in _keys(key):
            met = self.answers.of_key(one)
            found = None if met is None else self.answers.repeated(met, asked, account)
            if found is None or _fits(found, asked.priced, within):
                free, key = found, one
                break
        lacking = self.missing(asked, account, within) if free is None and reuse else None
        own = key
        if lacking is not None:
            own = self.key(asked.table, lacking.bought, asked.numbers)
            own = next(
                one
                for one in _keys(own)
                if self.answers.of_key(one) is None and self.ledger.answer(one, account) is None
            )
        if known is not None and known[0] != own:  # a retry of what has no answer: its very measurement, or none
            return Bought(asked.priced, asked.key) if known[0] == asked.key else Bought(measured, key)
        return Bought(measured, key) if lacking is None else Bought(lacking.bought, own, lacking)

    def missing(self, asked: Sought, account: str, within: Within | None) -> Missing | None:
        """What is bought where some of a question's precision is stored, and was not seen."""
        stored = self.answers.unseen(asked, account)
        found = missing(asked, stored, _needed(asked.priced, within), lambda one: self.least.admits(one.loss))
        more = None if found is None else whole(found.bought, asked.table)
        if found is None or more is None or not self.planner.computes(more, asked.table):
            return found
        return of_all_cells(found, more, asked) or found

    def stored(self, priced: Measurement, table: Table, numbers: str, account: str, *, together: int) -> ReleaseContent:
        """What is stored for a measured table at this price."""
        found = self.found(priced, table, AskOptions(account=account), numbers=numbers, stored=True)
        kept = self.ledger.answer(self.key(table, priced, numbers) if found is None else found.key, account)
        assert kept is not None
        return self.made(priced, table, account, kept, found, together=together)

    def made(
        self, priced: Measurement, table: Table, account: str, kept: bytes, found: FoundAnswer | None, *, together: int
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
            stored = self.ledger.answer(key, account, reserve)
            assert stored is not None
            each.append(read(json.loads(stored), one.measured))
        content = answer(found.held.made, found.held.of(*each), table, found.held.asked, together=together)
        if found.look is not None:  # nothing was bought
            return replace(content, bounds=[*content.bounds, f"put together of {found.answers} earlier answers"])
        said = together_with(len(found.others), found.held.measured.price, priced.price)
        return replace(content, bounds=[*content.bounds, said])


def together_with(others: int, paid: Price, named: Price) -> str:
    """What is said of an answer that is made of what was bought for it and of others."""
    several = "s" if others > 1 else ""
    return (
        f"ε {show(paid.epsilon)} instead of ε {show(named.epsilon)}: put together with {others} earlier answer{several}"
    )


def _keys(key: str) -> Iterator[str]:
    """A measurement's key, and those under which the same is measured once more."""
    return itertools.chain([key], (f"{key} {number}" for number in itertools.count(2)))


def _fits(found: FoundAnswer, priced: Measurement, within: Within | None) -> bool:
    """Whether the printed errors are within the wanted ones, or nearly those that the price would print alone."""
    if isinstance(found.held, CombinedMeasurement):
        return _needed(priced, within).met(priced, found.held, again=True)
    if found.release is None and within is None:
        return True  # it was held against the price where it was found or bought
    share = _share(found)
    made = found.held.made
    if within is None:
        alone, printed = _all_errors(priced), _all_errors(made, (1 - CONFIDENCE) * (share or 1))
        return all(error <= WIDER * alone[name] for name, error in printed.items() if name in alone)
    miss = _miss(priced, within) if share is None else (1 - float(within.confidence)) * share
    return all(
        expected_errors(made, miss, group)[name] <= width for name, (width, group) in widths(made.plan, within).items()
    )


def _needed(priced: Measurement, within: Within | None) -> WantedPrecision:
    """How precise an answer is to be."""
    if within is None:
        return WantedPrecision({}, 1 - CONFIDENCE)
    errors = {name: width for name, (width, _) in widths(priced.plan, within).items()}
    return WantedPrecision(errors, _miss(priced, within))


def errors_of(made: Measurement, found: FoundAnswer | None) -> dict[str, float]:
    """The expected error of each column of a measured table, as it is made, or answered from what was found."""
    share = None if found is None else _share(found)
    return expected_errors(made, (1 - CONFIDENCE) * (share or 1))


def _share(found: FoundAnswer) -> float | None:
    """The share of the failures that one number of a stored answer has."""
    return found.share(_groups(found.held.measured))


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


def _groups(measured: Measurement) -> int:
    """How many groups a stored answer has; 1 where they are private."""
    return cell_count(measured.plan.keys) or 1
