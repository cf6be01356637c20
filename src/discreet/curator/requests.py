"""Requests for more of an analyst's own budget: asked for, approved with an amount, or denied with a reason."""

from __future__ import annotations

from fractions import Fraction

from discreet.catalog.declare import MINIMUM_EPSILON
from discreet.curator.core import Asking
from discreet.errors import QuestionError
from discreet.ledger.requests import MoreRequest
from discreet.ledger.words import check_text
from discreet.procedures.arguments import amount
from discreet.trusted.ring_a.exact import Number


class Requesting(Asking):
    """A curator of which analysts ask for more. What is asked and decided are entries of the ledger."""

    def request_more(self, epsilon: Number, reason: str, *, analyst: str | None = None, by: str = "") -> MoreRequest:
        """Requests so much more of the budget of `analyst` from the owner, with a reason; nothing is spent.

        The same again is the same request, while it is open. `by` is whose account asks, where there are such.
        Raises QuestionError, LedgerError.
        """
        account, wanted = self._balances.of(analyst), _amount(epsilon)
        check_text(_name(by))
        return self._ledger.request_more(account, wanted, reason, by)

    def requests(self, analyst: str | None = None) -> tuple[MoreRequest, ...]:
        """Lists the requests for more, of an analyst or of all, and what was decided.

        Raises QuestionError where nobody of that name is declared, LedgerError.
        """
        return self._ledger.requests(None if analyst is None else self._balances.of(analyst))

    def approve(self, number: int, reason: str, *, epsilon: Number | None = None, by: str = "") -> MoreRequest:
        """Approves a request, with `epsilon` or what was asked for.

        The owner's act: it raises the analyst's own cap, within the whole budget; for good, or where the budget renews,
        in the period that runs. Caps by day and month stay as they are. Once more with the same amount changes nothing.
        Raises QuestionError where it was decided otherwise, less was asked for, or the whole budget is smaller,
        LedgerError.
        """
        wanted = None if epsilon is None else _amount(epsilon)
        check_text(_name(by))
        return self._ledger.decide(_number(number), approve=True, reason=reason, epsilon=wanted, by=by)

    def deny(self, number: int, reason: str, *, by: str = "") -> MoreRequest:
        """Denies a request, and says why.

        The owner's act. Raises QuestionError where there is none, or it was approved, LedgerError.
        """
        check_text(_name(by))
        return self._ledger.decide(_number(number), approve=False, reason=reason, by=by)


def _amount(epsilon: Number) -> Fraction:
    found = amount("epsilon", epsilon, "epsilon=0.2")
    if found < MINIMUM_EPSILON:
        raise QuestionError("number", "epsilon must be above 0", where="epsilon", fix="write epsilon=0.2")
    return found


def _number(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        fix = "write the number that the list of requests says"
        raise QuestionError("request", "a request has a number", where="number", fix=fix)
    return number


def _name(by: object) -> str:
    if not isinstance(by, str):
        raise QuestionError("by", "this is no name of an account", where="by", fix="leave it out")
    return by
