"""What each account has left of the budget for the persons whose rows are asked about, and what is promised of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from discreet.accounting import Loss
from discreet.accounting.balance import Balance, ends, percent_of, promise, published, used
from discreet.catalog import Declaration
from discreet.curator.registration import caps_of
from discreet.curator.warned import warn
from discreet.errors import QuestionError
from discreet.explanation import BudgetState
from discreet.ledger import TOTAL, Ledger
from discreet.ledger.store import until
from discreet.odds import ALMOST_SURE, best_guess, best_guess_of_budget, chance
from discreet.release import Release
from discreet.release.content import Cost, ReleaseContent
from discreet.sql.asked import Asked
from discreet.trusted.ledger.accounts import PART
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.filter import PrivacyFilter
from discreet.trusted.ring_a.least import Least


def balances_of(declaration: Declaration, ledger: Ledger, *, owner: bool) -> Balances:
    """The accounts of a declaration."""
    whole = caps_of(declaration.budget).filter()
    kept, parts = declaration.budget.publish, declaration.budget.parts
    least = Least.of(whole, declaration.least_epsilon)
    made = Balances(declaration, ledger, least, published(whole, kept) if kept else None, owner)
    of_parts = {name: replace(made, part=ledger.parts[name]) for name in (() if parts is None else parts.values)}
    return replace(made, parts=of_parts)


@dataclass(frozen=True, eq=False, repr=False)
class Balances:
    """The accounts of a ledger: of all persons, whose budget is that of all `parts` together, or of those in one `part`
    alone. `least` is what a charge is at least, `kept` what is kept of the budget for publishing."""

    declaration: Declaration
    ledger: Ledger
    least: Least
    kept: Loss | None
    owner: bool
    """Whether who names no analyst is the owner."""
    part: str | None = None
    """The part's account."""
    parts: Mapping[str, Balances] = field(default_factory=dict)

    def of(self, analyst: str | None) -> str:
        """The account of whoever asks. Raises QuestionError where that must be said and is not."""
        declared = self.declaration.analysts
        if analyst is None and (self.owner or not declared):
            return TOTAL
        if not isinstance(analyst, str) or not analyst or (declared and analyst not in declared):
            fix = f"name one of {', '.join(declared)}" if declared else 'write analyst="ana"'
            if analyst is None:
                fix += "; the owner opens it with owner=True, or says --owner"
                raise QuestionError("analyst", "analysts are declared: say who asks", where="analyst", fix=fix)
            raise QuestionError("analyst", "this analyst is not declared", where="analyst", fix=fix)
        return analyst

    def own(self, account: str) -> str:
        """The account that has a budget of its own: of whoever has none, the whole."""
        return account if account in self.declaration.analysts else TOTAL

    @property
    def whole(self) -> PrivacyFilter:
        """What is spent of the whole budget."""
        return self.ledger.whole(self.part)

    def balance(self, account: str) -> Balance:
        """What is left to an account."""
        if account not in self.declaration.analysts:
            return Balance(self.whole, account, None, self.kept)
        windows = {length: one.account for length, one in self.ledger.allowances(account).items()}
        return Balance(self.whole, account, self.ledger.filter(account), self.kept, windows)

    def admits(self, loss: Loss) -> bool:
        """Whether the whole budget admits a loss, beside what is kept for publishing."""
        free = self.whole if self.kept is None else self.whole.after(self.kept)
        return free.admits(loss)

    def hold_room(self, loss: Loss, account: str, *, keep: bool) -> None:
        """Raises BudgetError where the budget, or the account of whoever asks, does not admit a loss; with `keep`,
        beside what is kept for publishing."""
        self.ledger.hold_room(loss, self.own(account), self.kept if keep else None, self.part)

    # in words

    @property
    def part_name(self) -> str:
        """The name of the part; empty of all."""
        return (self.part or "").removeprefix(PART)

    def pays(self) -> list[str]:
        """Which parts' budgets pay."""
        parts = self.declaration.budget.parts
        if self.part is not None:
            return [f"of the part {self.part_name} alone: its own budget pays"]
        return [] if parts is None else [f"of all rows: the budgets of all {len(parts.values)} parts pay"]

    def at_least(self, loss: Loss) -> list[str]:
        """Whether a charge is the least one."""
        return ["this is the least price: a larger error costs the same"] if self.least.met(loss) else []

    def promised(self) -> list[str]:
        """What is promised of a budget that renews."""
        renewal = self.declaration.budget.renewal
        if renewal is None:
            return []
        total = self.whole  # another process may have lowered or raised it
        return [renewal.in_words(total.epsilon, total.promised_delta)]

    def warn(self, loss: Loss) -> None:
        """Says what a charge is about to end. It depends on prices alone."""
        total = self.whole
        after = total.after(loss)
        if after.alive and (ended := ends(total, after)):
            warn(f"once this is charged, {ended}")

    def takes(self, loss: Loss, account: str) -> dict[str, Any]:
        """What an `Explanation` says of a charge: what it takes of the whole budget, in percent, and of the analyst's
        own account; how many like it fit; an attacker's odds, after it and after the whole budget; and what it would
        leave and end."""
        balance = self.balance(account)
        total, after = balance.total, balance.after(loss)
        words = (after.left, ends(total, after.total)) if after.alive else ()
        return {
            "percent": percent_of(total, loss),
            "more": balance.more(loss),
            "odds": best_guess(loss),
            "odds_of_budget": best_guess_of_budget(total.epsilon, total.delta),
            "after": "; ".join(filter(None, words)),
            "analyst": balance.account(loss),
        }

    def release(
        self, content: ReleaseContent, loss: Loss, charged: Cost, account: str, asked: Asked | None = None
    ) -> Release:
        """An answer, with what is said beside it and what it leaves."""
        if self.part is not None:  # its files outlive the notes of this answer
            content = replace(content, more={**content.more, "part": self.part_name})
        kept = self.declaration.budget.publish
        notes = [] if asked is None else [*asked.said(self.declaration)]
        notes += [*self.promised(), *self.pays(), *self.at_least(loss)]
        notes += [f"of it ε {show(kept)} is kept for publishing"] if kept else []
        if (odds := best_guess(loss)) > ALMOST_SURE:
            notes.append(
                f"hides almost nothing about a person: an attacker's guess is right {chance(odds)} of the time"
            )
        notes += [] if self.declaration.ledger else ["ledger in memory: it ends with this curator"]
        return Release(content, charged, self.balance(account), loss, tuple(notes))

    # as values

    def state(self) -> BudgetState:
        """The whole budget, that of each declared analyst, and that of each part."""
        more = {name: show(amount) for name, amount in self.ledger.approved().items()}
        own = {name: self._state(name, more.get(name, "0")) for name in self.declaration.analysts}
        parts = {name: one._state(TOTAL) for name, one in self.parts.items()}
        return replace(self._state(TOTAL), analysts=own, parts=parts)

    def state_of(self, account: str) -> BudgetState:
        """One analyst's own budget, and what it leaves of that of each part."""
        more = show(self.ledger.approved().get(account, Fraction(0)))
        return replace(
            self._state(account, more), parts={name: one._state(account, more) for name, one in self.parts.items()}
        )

    def _state(self, account: str, approved: str = "0") -> BudgetState:
        balance = self.balance(account)
        own = balance.total if balance.own is None else balance.own
        keys = own.spent.keys / own.keys_delta if own.keys_delta else Fraction(0)
        windows = self.ledger.allowances(account) if account != TOTAL else {}
        return BudgetState(
            {**promise(own), "keys_delta": show(own.keys_delta)},
            used(own),
            float(keys * 100),
            self.declaration.ledger is not None,
            balance.left,
            windows={
                length: {"epsilon": show(one.account.epsilon), "used": used(one.account), "until": one.until}
                for length, one in windows.items()
            },
            prices={name: show(one) for name, one in zip(("questions", "publishing"), balance.prices, strict=True)},
            whole=None if balance.own is None else {**promise(balance.total), "used": balance.used},
            period=self._period(),
            approved=approved,
        )

    def _period(self) -> dict[str, str] | None:
        """The period that runs, where the budget renews."""
        renewal, running = self.declaration.budget.renewal, self.ledger.running
        if renewal is None:
            return None
        named = {"name": "", "until": ""} if running is None else {"name": running.name, "until": until(running)}
        return {**named, "renews": str(renewal.persons), "promise": self.promised()[0]}
