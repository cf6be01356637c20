"""Requests for more of an analyst's own budget, and what the owner decided: entries of the ledger, with who and why.

An approved amount is the owner's word, as a declaration is: what an account may spend is its declared cap and all that
was approved, within the whole budget, whichever is opened later. So an approval outlives a restart, and no registration
takes it back or counts it twice. The whole budget is never raised here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.errors import LedgerError, QuestionError
from discreet.ledger.refusal import explained
from discreet.texts import visible
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import TOTAL, Caps
from discreet.trusted.ledger.ledger import BudgetLedger, _check_raise
from discreet.trusted.ledger.transaction import Transaction
from discreet.trusted.ring_a.exact import floor, show

MOST_OPEN = 3
"""How many requests of one analyst are open at once."""

LONGEST_REASON = 500
"""Characters of a reason."""

_DIGITS = 6
_SELECT = f"{chain.SELECT} WHERE e.kind = 'service' AND e.seq > $1 ORDER BY e.seq"


@dataclass(frozen=True)
class MoreRequest:
    """A request for more, by the number of its entry. `state` is "open", "approved" or "denied"; `approved` is the
    amount that was, `answer` why, `decided` when and `decided_by` by whom."""

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

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values, as JSON has them."""
        approved = None if self.approved is None else show(self.approved)
        return {**vars(self), "epsilon": show(self.epsilon), "approved": approved}


def reason_of(text: object, where: str = "reason") -> str:
    """A reason, made fit to be printed. Raises QuestionError."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_REASON:
        message = f"a reason is a text of 1 to {LONGEST_REASON} characters"
        raise QuestionError("reason", message, where=where, fix="say in a sentence what it is for")
    return visible(text.strip())


class RequestsLedger(BudgetLedger):
    """A ledger with requests for more."""

    def requests(self, analyst: str | None = None) -> tuple[MoreRequest, ...]:
        """All requests, or those of an analyst, in order; each entry verified."""
        with self._file.read() as transaction:
            found = _requests(transaction)
        return tuple(one for one in found.values() if analyst in (None, one.analyst))

    def approved(self) -> dict[str, Fraction]:
        """How much was approved for each analyst, above the declared caps."""
        found: dict[str, Fraction] = {}
        for one in self.requests():
            if one.approved is not None:
                found[one.analyst] = found.get(one.analyst, Fraction(0)) + one.approved
        return found

    def request_more(self, analyst: str, epsilon: Fraction, reason: str, by: str = "") -> MoreRequest:
        """Enter that an analyst asks for so much more. The same again, while it is open, is the same request.

        Raises QuestionError where the analyst has no account of its own, asks for more than the whole budget leaves
        beside it, or has too many open."""
        reason, epsilon = reason_of(reason), floor(epsilon, _DIGITS)
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

        Raises QuestionError where there is no such request, it was decided otherwise, or the cap would be above the
        whole budget; LedgerError "apart" as where a declaration raises it."""
        reason = reason_of(reason)
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
            facts: dict[str, object] = {"request": number, "analyst": found.analyst, "by": by, "reason": reason}
            if amount is not None:
                known, wanted = _room(transaction, found.analyst, amount)
                try:
                    _check_raise(transaction, found.analyst, known, wanted, raising=True)
                except LedgerError as error:
                    raise explained(error, {}) from None
                registered = transaction.find("e.kind = 'register' ORDER BY e.seq DESC")
                assert registered is not None
                transaction.append("service", {"act": "approve", "facts": {**facts, "epsilon": str(amount)}})
                changes = [(found.analyst, known.to_json(), wanted.to_json())]
                said = {"changes": changes, "declaration": registered.body["declaration"]}
                transaction.append("register", said)
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
    ) -> bool:
        """Make accounts and set their caps, `BudgetLedger.register`: the declared ones, and what was approved."""
        begins, known = False, dict.fromkeys(caps, Fraction(0))
        more = known | self._approved_of(caps)
        names, word = list(caps), raising
        while True:  # once, even without accounts: who counts as a person is held against the answers so far
            whole = caps[TOTAL].epsilon if TOTAL in caps else None
            wanted = {name: with_approved(caps[name], more[name], whole) for name in names}
            begins |= super().register(
                wanted, declaration, persons=persons, raising=word, allowances=allowances, renewal=renewal
            )
            known, more = more, more | self._approved_of(caps)
            names, word = [name for name in names if more[name] != known[name]], True  # approved meanwhile
            if not names:
                return begins

    def _approved_of(self, caps: Mapping[str, Caps]) -> dict[str, Fraction]:
        with self._file.read() as transaction:
            if ("account", TOTAL) not in transaction.texts:
                return {}  # a new ledger
        return {name: amount for name, amount in self.approved().items() if name in caps and name != TOTAL}


def with_approved(cap: Caps, more: Fraction | None, whole: Fraction | None) -> Caps:
    """A declared cap, and what was approved; within the ε of the whole budget."""
    if not more:
        return cap
    most = cap.epsilon + more
    return replace(cap, epsilon=most if whole is None else max(cap.epsilon, min(most, whole)))


def _room(transaction: Transaction, analyst: str, epsilon: Fraction) -> tuple[Caps, Caps]:
    """An analyst's cap, and the same with so much more. Raises QuestionError where it cannot have that."""
    known, whole = transaction.caps(analyst), transaction.caps(TOTAL)
    if known is None or whole is None or analyst == TOTAL:
        fix = "the owner declares [analysts] with budgets of their own"
        raise QuestionError("analyst", "there is no account of this analyst to raise", where="analyst", fix=fix)
    wanted = replace(known, epsilon=known.epsilon + epsilon)
    if epsilon <= 0 or wanted.epsilon > whole.epsilon:
        most = whole.epsilon - known.epsilon
        message = f"an analyst's budget is at most the whole one, ε {show(whole.epsilon)}, and this one is {known}"
        fix = f"name at most epsilon = {show(floor(most, _DIGITS))}" if most > 0 else "nothing can be added"
        raise QuestionError("more", message, where="epsilon", fix=fix)
    return known, wanted


def _requests(transaction: Transaction) -> dict[int, MoreRequest]:
    """All requests and what became of them, by number."""
    found: dict[int, MoreRequest] = {}
    for row in transaction.connection.execute(_SELECT, (0,)).fetchall():
        record = chain.read(row)
        act, facts = record.body["act"], record.body["facts"]
        if record.body["kind"] != "service":
            raise chain.broken(record.seq)
        if act == "request":
            amount = Fraction(facts["epsilon"])
            time = record.body["time"]
            found[record.seq] = MoreRequest(record.seq, time, facts["analyst"], facts["by"], amount, facts["reason"])
        elif act in ("approve", "deny"):
            found[facts["request"]] = replace(
                found[facts["request"]],
                state="approved" if act == "approve" else "denied",
                approved=Fraction(facts["epsilon"]) if act == "approve" else None,
                answer=facts["reason"],
                decided=record.body["time"],
                decided_by=facts["by"],
            )
    return found
