"""Requests for more of an analyst's own budget, and what the owner decided: entries of the ledger, with who and why.

An approved amount is the owner's word, as a declaration is: what an account may spend is its declared cap and all that
was approved, within the whole budget, whichever is opened later. So an approval outlives a restart, and no registration
takes it back or counts it twice. Where the budget renews, it counts in the period in which it was approved, and no
longer; what was approved before the first period counts in that. The ledger itself keeps what the cap is without it
(`accounts`), so it ends whatever is declared where the next period begins. The whole budget is never raised here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.errors import LedgerError, QuestionError
from discreet.ledger.refusal import explained
from discreet.ledger.words import reason_of
from discreet.texts import visible
from discreet.trusted.allowances import by_calendar
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import TOTAL, Caps
from discreet.trusted.ledger.ledger import BudgetLedger, Lasting, _check_raise
from discreet.trusted.ledger.periods import Period
from discreet.trusted.ledger.transaction import Transaction
from discreet.trusted.ring_a.exact import floor, show

MOST_OPEN = 3
"""How many requests of one analyst are open at once."""

_DIGITS = 6
_LEAST = Fraction(1, 10**_DIGITS)
_SELECT = f"{chain.SELECT} WHERE e.kind IN ('service', 'period') ORDER BY e.seq"


@dataclass(frozen=True)
class MoreRequest:
    """A request for more, by the number of its entry. `state` is "open", "approved" or "denied"; `approved` is the
    amount that was, `answer` why, `decided` when and `decided_by` by whom, `period` the one in which that was and
    in which alone it counts; empty where the budget does not renew."""

    number: int
    time: str
    analyst: str
    by: str
    epsilon: Fraction
    reason: str
    state: str = "open"
    approved: Fraction | None = None
    answer: str = ""
    decided: str = ""
    decided_by: str = ""
    period: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values, as JSON has them."""
        approved = None if self.approved is None else whole(self.approved)
        return {**vars(self), "epsilon": whole(self.epsilon), "approved": approved}


def whole(amount: Fraction) -> str:
    """An amount that was asked for or approved, with all its digits: what is written is that very amount."""
    return show(amount, 15)


class RequestsLedger(BudgetLedger):
    """A ledger with requests for more."""

    def requests(self, analyst: str | None = None) -> tuple[MoreRequest, ...]:
        """All requests, or those of an analyst, in order; each entry verified."""
        with self._file.read() as transaction:
            found = _requests(transaction)
        return tuple(one for one in found.values() if analyst in (None, one.analyst))

    def approved(self) -> dict[str, Fraction]:
        """How much was approved for each analyst, above the declared caps; in this period, where the budget renews."""
        with self._file.read() as transaction:
            return _approved(transaction)

    def request_more(self, analyst: str, epsilon: Fraction, reason: str, by: str = "") -> MoreRequest:
        """Enter that an analyst asks for so much more. The same again, while it is open, is the same request.

        Raises QuestionError where the analyst has no account of its own, asks for more than the whole budget leaves
        beside it, or has too many open."""
        reason, epsilon = visible(reason_of(reason)), floor(epsilon, _DIGITS)
        with self._file.write() as transaction:
            _room(transaction, analyst, epsilon)
            open_ = [one for one in _requests(transaction).values() if one.analyst == analyst and one.state == "open"]
            for one in open_:
                if (one.epsilon, one.reason) == (epsilon, reason):
                    return one
            if len(open_) >= MOST_OPEN:
                message = f"{MOST_OPEN} requests of this analyst are open"
                raise QuestionError("open", message, where="request", fix="wait until the owner has decided")
            facts = {"analyst": analyst, "by": by, "epsilon": str(epsilon), "reason": reason}
            transaction.append("service", {"act": "request", "facts": facts})
            return _requests(transaction)[transaction.head.seq]

    def decide(
        self, number: int, *, approve: bool, reason: str, epsilon: Fraction | None = None, by: str = ""
    ) -> MoreRequest:
        """Enter that the owner approves a request, with `epsilon` or what was asked for, which raises the analyst's own
        cap at once; or denies it. The same decision again changes nothing.

        Raises QuestionError where there is no such request, it was decided otherwise, less was asked for, or the cap
        would be above the whole budget; LedgerError "apart" as where a declaration raises it."""
        reason = visible(reason_of(reason))
        with self._file.write() as transaction:
            found = _requests(transaction).get(number)
            if found is None:
                raise QuestionError("request", "there is no such request", where="request", fix="see all requests")
            amount = None
            if approve:
                amount = floor(found.epsilon if epsilon is None else epsilon, _DIGITS)
            if found.state != "open":
                if found.approved == amount:
                    return found
                message = f"request {number} is {found.state} already"
                raise QuestionError("decided", message, where="request", fix="the analyst makes a new request")
            if amount is not None and amount > found.epsilon:
                message, fix = f"request {number} asks for less", f"name at most epsilon = {whole(found.epsilon)}"
                raise QuestionError("more", message, where="epsilon", fix=fix)
            facts: dict[str, object] = {"request": number, "analyst": found.analyst, "by": by, "reason": reason}
            if amount is not None:
                known, wanted = _room(transaction, found.analyst, amount)
                try:
                    _check_raise(transaction, found.analyst, known, wanted, raising=True)
                except LedgerError as error:
                    raise explained(error, {}) from None
                transaction.append("service", {"act": "approve", "facts": {**facts, "epsilon": str(amount)}})
                change = (found.analyst, known.to_json(), wanted.to_json())
                _change(transaction, [change], [(found.analyst, str(transaction.lasting(found.analyst).epsilon))])
            else:
                transaction.append("service", {"act": "deny", "facts": facts})
            return _requests(transaction)[number]

    def register(
        self,
        caps: Mapping[str, Caps],
        declaration: str,
        *,
        persons: Mapping[str, Sequence[str]],
        raising: bool,
        allowances: Mapping[str, Mapping[str, Caps]] = {},
        renewal: Mapping[str, str] | None = None,
        parts: Sequence[str] = (),
    ) -> bool:
        """Make accounts and set their caps, `BudgetLedger.register_accounts`: the declared ones, and what was approved.
        `allowances` are what accounts may spend in one day or month, lowered and raised as caps are; of an account that
        is not named, none."""
        try:
            return super().register_accounts(
                caps,
                declaration,
                persons=persons,
                raising=raising,
                besides=lambda transaction: by_calendar.registered(transaction, caps, allowances, raising),
                renewal=renewal,
                parts=parts,
            )
        except LedgerError as error:
            raise _of_declared(error, caps) from None

    def _given(self, transaction: Transaction, caps: Mapping[str, Caps]) -> tuple[Mapping[str, Caps], Lasting]:
        """With what was approved and holds in the present period alone."""
        more = _approved(transaction)
        whole = caps[TOTAL].epsilon if TOTAL in caps else None
        wanted = {name: with_approved(cap, more.get(name), whole) for name, cap in caps.items()}
        return wanted, {name: cap.epsilon for name, cap in caps.items() if name in more}

    def lasting(self, account: str) -> Fraction:
        """The ε that an account's cap has from the next period on. Raises LedgerError "account" where there is none."""
        with self._file.read() as transaction:
            return transaction.lasting(account).epsilon


def with_approved(cap: Caps, more: Fraction | None, whole: Fraction | None) -> Caps:
    """A declared cap, and what was approved; within the ε of the whole budget."""
    if not more:
        return cap
    most = cap.epsilon + more
    return replace(cap, epsilon=most if whole is None else max(cap.epsilon, min(most, whole)))


def tell_lasting(transaction: Transaction) -> None:
    """Says of caps that an earlier version raised what they are without it: that version kept it with the declaration
    of whoever begins the next period."""
    told = []
    for name, amount in _approved(transaction).items():
        cap = transaction.caps(name)
        if cap is not None and transaction.state("lasting", name) is None:
            told.append((name, str(max(cap.epsilon - amount, _LEAST))))
    _change(transaction, [], told)


def _change(transaction: Transaction, changes: Sequence[object], lasting: Sequence[tuple[str, str]]) -> None:
    """Gives accounts other caps, under the declaration that holds, with what stays of them."""
    registered = transaction.find("e.kind = 'register' ORDER BY e.seq DESC")
    if (changes or lasting) and registered is not None:
        said = {"changes": changes, "declaration": registered.body["declaration"], "lasting": lasting}
        transaction.append("register", said)


def _of_declared(error: LedgerError, caps: Mapping[str, Caps]) -> LedgerError:
    """The same error, which also knows what is declared, where that is less than what the account would have."""
    name, wanted = error.facts.get("account"), error.facts.get("wanted")
    if error.code == "raised" and "window" not in error.facts and name in caps and wanted != caps[str(name)]:
        error.facts = {**error.facts, "declared": caps[str(name)]}
    return error


def _room(transaction: Transaction, analyst: str, epsilon: Fraction) -> tuple[Caps, Caps]:
    """An analyst's cap, and the same with so much more. Raises QuestionError where it cannot have that."""
    known, total = transaction.caps(analyst), transaction.caps(TOTAL)
    if known is None or total is None or analyst == TOTAL:
        fix = "the owner declares [analysts] with budgets of their own"
        raise QuestionError("analyst", "there is no account of this analyst to raise", where="analyst", fix=fix)
    wanted = replace(known, epsilon=known.epsilon + epsilon)
    if epsilon <= 0 or wanted.epsilon > total.epsilon:
        most = total.epsilon - known.epsilon
        message = f"an analyst's budget is at most the whole one, ε {show(total.epsilon)}, and this one is {known}"
        fix = f"name at most epsilon = {whole(floor(most, _DIGITS))}" if most > 0 else "nothing can be added"
        raise QuestionError("more", message, where="epsilon", fix=fix)
    return known, wanted


def _approved(transaction: Transaction) -> dict[str, Fraction]:
    """How much was approved for each analyst, as far as it counts now."""
    found: dict[str, Fraction] = {}
    for one in _requests(transaction).values():
        if one.approved is not None and one.period == transaction.period:
            found[one.analyst] = found.get(one.analyst, Fraction(0)) + one.approved
    return found


def _requests(transaction: Transaction) -> dict[int, MoreRequest]:
    """All requests and what became of them, by number."""
    found: dict[int, MoreRequest] = {}
    period = ""
    for row in transaction.connection.execute(_SELECT).fetchall():
        record = chain.read(row)
        body = record.body
        if body["kind"] == "period":
            begun = Period(body["length"], body["start"]).name
            if not period:
                found = {number: replace(one, period=one.decided and begun) for number, one in found.items()}
            period = begun
            continue
        act, facts = body["act"], body["facts"]
        if act == "request":
            amount = Fraction(facts["epsilon"])
            asked = MoreRequest(record.seq, body["time"], facts["analyst"], facts["by"], amount, facts["reason"])
            found[record.seq] = asked
        elif act in ("approve", "deny"):
            found[facts["request"]] = replace(
                found[facts["request"]],
                state="approved" if act == "approve" else "denied",
                approved=Fraction(facts["epsilon"]) if act == "approve" else None,
                answer=facts["reason"],
                decided=body["time"],
                decided_by=facts["by"],
                period=period,
            )
    return found
