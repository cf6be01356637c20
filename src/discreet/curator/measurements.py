"""What a question measures at a price, at the limits that are best by what was released of the table's persons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from discreet.catalog import Declaration, Table
from discreet.curator.planning import Planner
from discreet.errors import QuestionError
from discreet.holdings import Holdings
from discreet.ledger import Ledger
from discreet.plan.left_out import one_table
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.profile import Histogram, Profile
from discreet.plan.split import measurement
from discreet.pricing import Within, priced_at
from discreet.procedures.arguments import with_owners
from discreet.profile.call import PROFILE, profile_key, released_histograms
from discreet.release.chosen_limits import at_best_limits
from discreet.release.content import ReleaseContent
from discreet.release.reused import MOST_READ
from discreet.sql import Question
from discreet.sql.asked import Asked
from discreet.trusted.ring_a.exact import Number
from discreet.trusted.ring_a.least import Least


@dataclass(eq=False, repr=False)
class Measurements:
    """Makes measurements of planned questions. Released profiles are read from the ledger, of the snapshots that stand
    there, and as they are `kept_under`."""

    declaration: Declaration
    ledger: Ledger
    holdings: Holdings
    planner: Planner
    least: Least
    kept_under: str
    profiled: bool = False
    """Whether the ledger keeps a profile, of whatever table and for whomever."""
    _histograms: dict[str, tuple[Histogram, ...]] = field(default_factory=dict)

    def hear(self, key: str) -> None:
        """Hears of what the ledger keeps, by its key."""
        self.profiled |= key.startswith(PROFILE)

    def at(self, question: Question, price: Price, account: str) -> Measurement:
        """A question's measurement at a price."""
        if question.request is None or not self.profiled:
            return measurement(question.plan, price)
        profiles = self._profiles(question.table, account)
        return measurement(at_best_limits(question.plan, question.request, profiles, price), price)

    def replanned(self, text: str, price: Price, account: str) -> tuple[Plan, Table] | None:
        """The plan of a stored answer's question at its price, by what is known of the table's persons to whom it was
        measured for; None where it cannot be asked any more."""
        try:
            checked = self.planner.lowered(Asked.read(text))
        except QuestionError:
            return None
        return self.at(checked, price, account).plan, checked.table

    def price(
        self, question: Question, epsilon: Number | None, delta: Number | None, within: Within | None, account: str
    ) -> Price:
        """The price of a question that is one measured table. Raises QuestionError."""
        enough: Callable[[Measurement], bool] = lambda priced: self.least.admits(priced.loss)  # noqa: E731

        def at(plan: Plan) -> Price:
            return priced_at(replace(question, plan=plan), self.declaration, epsilon, delta, within, enough, account)

        price = at(question.plan)
        if within is None or not within.errors:
            return price
        # narrower limits have less noise: the price at those that are best at the declared ones' price, if what is best
        # at that price has no larger error than is wanted
        plan = self.at(question, price, account).plan
        if plan is question.plan:
            return price
        less = at(plan)
        return less if less != price and at(self.at(question, less, account).plan).epsilon <= less.epsilon else price

    def known(self, account: str) -> tuple[str, ...]:
        """What limits follow from beside declarations, texts and prices."""
        if not self.profiled:
            return ()
        about = [table for table in self.declaration.tables.values() if not table.public]
        return tuple(key for table in about for key in self._profile_keys(table, account))

    def _profiles(self, table: Table, account: str) -> Sequence[Profile]:
        """What was released, for whoever asks, of the persons of the one table whose rows a question reads: each holds
        what was released before it."""
        plain = one_table(table)
        if plain is None or plain.public:
            return ()
        known, found = Profile(), []
        for key in self._profile_keys(plain, account):
            if key not in self._histograms:
                content = self.ledger.answer(key, account)
                assert content is not None
                self._histograms[key] = released_histograms(ReleaseContent.from_json(content))
            known = known.and_later(self._histograms[key])
            found.append(known)
        return found

    def _profile_keys(self, table: Table, account: str) -> list[str]:
        """The keys of the profiles of a declared table as it is loaded, the oldest first."""
        table = with_owners(self.declaration, self.declaration.tables[table.name])
        numbers = self.holdings.numbers(table)
        if numbers is None:
            return []
        prefix = profile_key(table, numbers, self.kept_under)
        return [key for key, _ in self.ledger.answered(prefix, account, None, MOST_READ)]


def variants(priced: Measurement) -> Iterator[Measurement]:
    """A measurement; then those of the same question at the same price, with the limits that were best by what was
    known of the table's persons before, the latest first."""
    yield priced
    for plan in priced.plan.all_at(priced.price):
        if plan != priced.plan:
            yield measurement(plan, priced.price)
